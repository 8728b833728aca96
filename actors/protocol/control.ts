// What may be said to the control actor, which serves src/api: events to publish to subscribers of `/events`.

import type { JsonObject } from '../../src/domain/json.js'

export interface PublicEvent {
  /** `task.created`, `task.updated`, `task.completed`, `session.state_changed`, `session.progressed`. */
  readonly type: string
  readonly data: JsonObject
}

export type ControlMessage = { readonly type: 'publish-event'; readonly event: PublicEvent }

// What may be said to the control actor, which serves src/api: events to publish to subscribers of `/events`.

import type { ErrorData } from '../../src/domain/errors.js'
import type { JsonObject } from '../../src/domain/json.js'
import type { ActorRef } from '../system/ref.js'

export interface PublicEvent {
  /** `task.created`, `task.updated`, `task.completed`, `session.state_changed`, `session.progressed`. */
  readonly type: string
  readonly data: JsonObject
}

export type ControlMessage =
  | { readonly type: 'publish-event'; readonly event: PublicEvent }
  /** Answered once the port listens, or cannot. */
  | { readonly type: 'control-described'; readonly replyTo: ActorRef<ControlReply> }

export type ControlReply =
  | { readonly type: 'control-listens'; readonly url: string; readonly port: number; readonly subscribers: number }
  | { readonly type: 'control-failed'; readonly error: ErrorData }

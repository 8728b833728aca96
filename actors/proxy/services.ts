// What the parts of a proxy share: the plan, the upstreams, the link to the merge thread, time. Made once per server.

import type { Plan } from '../../src/config/plan.js'
import type { Clock } from '../../src/domain/clock.js'
import type { CompletionId } from '../../src/domain/ids.js'
import type { RulesOff } from '../../src/domain/rules.js'
import type { HttpClient } from '../../src/http/client.js'
import type { UpstreamObstacle } from '../protocol/prober.js'
import type { Logger } from '../system/behavior.js'
import type { CaptureSender } from '../threads/port-link.js'
import type { UpstreamTarget } from './models.js'
import type { PauseGate } from './pause-gate.js'
import type { SessionBook } from './sessions.js'
import type { AskFeeds } from './template-feeds.js'
import type { TokenFacts } from './token-facts.js'

export interface ProxyServices {
  readonly plan: Plan
  readonly targets: ReadonlyMap<string, UpstreamTarget>
  /** Base URLs of all upstreams: no harness is told them. */
  readonly addresses: readonly string[]
  readonly client: HttpClient
  readonly sender: CaptureSender
  readonly clock: Clock
  readonly log: Logger
  readonly facts: TokenFacts
  readonly sessions: SessionBook
  readonly gate: PauseGate
  readonly rulesOff: RulesOff
  readonly askFeeds: AskFeeds
  /** Of upstreams that are probed: why what they give may not be trained on; null = it may. */
  readonly obstacles: ReadonlyMap<string, UpstreamObstacle | null>
  /** To be told of an upstream that could not be connected to. */
  readonly onLost: (upstream: string) => void
  readonly newCompletionId: () => CompletionId
}

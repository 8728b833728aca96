// What may be said to the stages actor, which owns the INIT, RUNNING and POSTRUN pools and the READY buffer.

import type { SessionLedger } from '../../src/domain/completion.js'
import type { SessionId } from '../../src/domain/ids.js'
import type { AgentResult, SessionSpec } from '../../src/domain/session.js'
import type { RuntimeHandle } from '../../src/runtimes/base.js'
import type { ActorRef } from '../system/ref.js'
import type { SessionMessage } from './session.js'

export type { PostrunOutcome } from './outcomes.js'

export interface InitJob {
  readonly spec: SessionSpec
  readonly sessionDir: string
  readonly timeoutMs: number
}

export interface RunJob {
  readonly spec: SessionSpec
  readonly sessionDir: string
  readonly runtime: RuntimeHandle
  readonly harnessInstallDir: string | null
  /** Base URL of the session's proxy. */
  readonly gatewayUrl: string
  readonly sessionKey: string
  /** The smaller of the two decides; a tie counts as the session's. */
  readonly sessionBudgetMs: number
  readonly agentBudgetMs: number | null
}

export interface PostrunJob {
  readonly spec: SessionSpec
  readonly sessionDir: string
  readonly runtime: RuntimeHandle | null
  readonly agentResult: AgentResult
  /** Typed arrays are transferred. */
  readonly ledger: SessionLedger
  /** Reason that masks the whole session before evaluation, or null. */
  readonly sessionError: string | null
  readonly timedOut: boolean
  readonly cancelled: boolean
  readonly truncated: string | null
  /** False where no reward can mean anything: INIT failed, the run crashed, cancelled. */
  readonly evaluate: boolean
}

export type StagesMessage =
  /** The session waits for INIT; order is priority, then first in first out. */
  | {
      readonly type: 'init-requested'
      readonly sessionId: SessionId
      readonly priority: number
      readonly job: InitJob
      readonly session: ActorRef<SessionMessage>
    }
  | { readonly type: 'start-run'; readonly sessionId: SessionId; readonly job: RunJob }
  | { readonly type: 'release-run-slot'; readonly sessionId: SessionId }
  | {
      readonly type: 'postrun-requested'
      readonly sessionId: SessionId
      readonly job: PostrunJob
      readonly session: ActorRef<SessionMessage>
    }
  /** Takes the session out of whatever it is in: queued, READY, or its running task (which is told to stop). Idempotent. */
  | {
      readonly type: 'cancel-stage'
      readonly sessionId: SessionId
      readonly stage: 'init' | 'ready' | 'running' | 'postrun'
    }
  /** No further INIT is granted; what has begun goes on to its end. */
  | { readonly type: 'drain-stages' }
  /** Kills one pool thread (tests, `kill` of the service); `index` from 1. The runs on it are reported crashed. */
  | { readonly type: 'kill-pool-thread'; readonly pool: 'init' | 'running' | 'postrun'; readonly index: number }
  | { readonly type: 'stages-described'; readonly replyTo: ActorRef<StagesDescription> }

export interface StagesDescription {
  readonly type: 'stages-description'
  /** The contract's NodeStageMetrics, plus the highest READY ever seen. */
  readonly initQueueDepth: number
  readonly initInflight: number
  readonly readyDepth: number
  readonly readyHighWater: number
  readonly runInflight: number
  readonly postrunQueueDepth: number
  readonly postrunInflight: number
}

/**
 * What stages tells rollout: work pulling. `count` = INIT grants that stages could make beyond the sessions it has, told
 * whenever it changes (0 included), and again every half second. It is a level, not an increment: rollout keeps the number of its sessions that are
 * still REGISTERED at or below the last `count`, and looks again when one of them leaves REGISTERED.
 */
export type StagesReport = { readonly type: 'init-slots-free'; readonly count: number }

// What may be said to a session actor. Facts come from stages, the pair and the clock; commands from rollout.

import type { ErrorData } from '../../src/domain/errors.js'
import type { SessionId } from '../../src/domain/ids.js'
import type { AgentResult, SessionResult, SessionStatus } from '../../src/domain/session.js'
import type { RuntimeHandle } from '../../src/runtimes/base.js'
import type { ActorRef } from '../system/ref.js'
import type { PostrunCrash, PostrunOutcome } from './outcomes.js'

export type SessionMessage =
  /** Idempotent. `reason` is kept in the result's metadata; the error text is always `session cancelled`. */
  | { readonly type: 'cancel-session'; readonly reason: string }
  /** The service stops before the session has ended: it ends as it would after a restart, with what it has. */
  | { readonly type: 'stop-session' }
  /** From stages: this session's INIT task runs. `atMs` here and below: milliseconds since the epoch, stamped by stages. */
  | { readonly type: 'init-started'; readonly atMs: number }
  /** Exactly one for each `init-requested`, also for one that was cancelled or never started. */
  | {
      readonly type: 'init-finished'
      /** Also set after a failure, when something was made that POSTRUN must tear down. */
      readonly runtime: RuntimeHandle | null
      readonly harnessInstallDir: string | null
      /** Keys of TIMING_KEYS. */
      readonly timing: Readonly<Record<string, number>>
      readonly error: ErrorData | null
      readonly timedOut: boolean
      readonly atMs: number
    }
  /** From stages: a run slot is this session's; it answers with `start-run` or `release-run-slot`. */
  | { readonly type: 'run-slot-granted'; readonly atMs: number }
  | { readonly type: 'run-progress'; readonly stage: 'setup' | 'exec' | 'postprocess' }
  | { readonly type: 'process-started'; readonly pid: number; readonly startTime: string | null }
  /** Exactly one of `run-finished` and `run-crashed` for each `start-run`. */
  | {
      readonly type: 'run-finished'
      readonly result: AgentResult
      readonly timing: Readonly<Record<string, number>>
      readonly atMs: number
    }
  /** The pool thread died under the run (what it left is killed already), or the run would not stop. */
  | { readonly type: 'run-crashed'; readonly error: ErrorData; readonly atMs: number }
  | { readonly type: 'postrun-started'; readonly atMs: number }
  | { readonly type: 'postrun-progress'; readonly stage: 'build' | 'evaluate' | 'teardown' }
  /** Exactly one of `postrun-finished` and `postrun-crashed` for each `postrun-requested`. */
  | { readonly type: 'postrun-finished'; readonly outcome: PostrunOutcome; readonly atMs: number }
  /** The pool thread died under the task; stages has torn the runtime down itself. */
  | { readonly type: 'postrun-crashed'; readonly crash: PostrunCrash; readonly atMs: number }
  /** From merge through main: a call of that number goes to an engine. */
  | { readonly type: 'call-started'; readonly sequence: number }
  /** From merge through main: one more completion is safe. Sums over all that are; `turns`: those that are no side calls. */
  | {
      readonly type: 'completion-recorded'
      readonly calls: number
      readonly turns: number
      readonly promptTokens: number
      readonly sampledTokens: number
    }
  /** From proxy: a limit of the task ended the session. */
  | { readonly type: 'limit-reached'; readonly limit: string }
  /** From proxy: a call of the session waits for the end of a pause, so its budgets stand still; then: none waits any more. */
  | { readonly type: 'calls-held'; readonly atMs: number }
  | { readonly type: 'calls-released'; readonly atMs: number }
  /** From the host of pair-k: a thread of the pair was restarted (`proxy`: the session registers again; `merge`: its records are gone). */
  | { readonly type: 'pair-restarted'; readonly part: 'proxy' | 'merge' }
  | { readonly type: 'session-described'; readonly replyTo: ActorRef<SessionDescription> }

export interface SessionDescription {
  readonly type: 'session-description'
  readonly sessionId: SessionId
  readonly status: SessionStatus
  readonly calls: number
  readonly sampledTokens: number
}

/** What a session tells rollout. */
export type SessionReport =
  | { readonly type: 'session-status-changed'; readonly sessionId: SessionId; readonly status: SessionStatus }
  | {
      readonly type: 'session-progressed'
      readonly sessionId: SessionId
      readonly calls: number
      readonly sampledTokens: number
    }
  | { readonly type: 'session-ended'; readonly sessionId: SessionId; readonly result: SessionResult }

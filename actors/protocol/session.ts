// What may be said to a session actor. Facts come from stages, the pair and the clock; commands from rollout.

import type { ErrorData } from '../../src/domain/errors.js'
import type { SessionId } from '../../src/domain/ids.js'
import type { AgentResult, SessionResult, SessionStatus } from '../../src/domain/session.js'
import type { RuntimeHandle, TeardownReport } from '../../src/runtimes/base.js'
import type { ActorRef } from '../system/ref.js'
import type { PostrunOutcome } from './outcomes.js'

export type SessionMessage =
  | { readonly type: 'cancel-session'; readonly reason: string }
  /** From stages: this session's INIT task runs. */
  | { readonly type: 'init-started' }
  | {
      readonly type: 'init-finished'
      readonly runtime: RuntimeHandle | null
      readonly harnessInstallDir: string | null
      readonly prepareMs: number
      readonly error: ErrorData | null
      readonly timedOut: boolean
    }
  /** From stages: a run slot is this session's; it answers with `start-run` or `release-run-slot`. */
  | { readonly type: 'run-slot-granted' }
  | { readonly type: 'run-progress'; readonly stage: 'setup' | 'exec' | 'postprocess' }
  | { readonly type: 'process-started'; readonly pid: number; readonly startTime: string | null }
  | { readonly type: 'run-finished'; readonly result: AgentResult; readonly timing: Readonly<Record<string, number>> }
  /** The pool thread died under the run. */
  | { readonly type: 'run-crashed'; readonly error: ErrorData }
  | { readonly type: 'postrun-started' }
  | { readonly type: 'postrun-progress'; readonly stage: 'build' | 'evaluate' | 'teardown' }
  | { readonly type: 'postrun-finished'; readonly outcome: PostrunOutcome }
  | { readonly type: 'postrun-crashed'; readonly error: ErrorData }
  | { readonly type: 'runtime-destroyed'; readonly report: TeardownReport }
  /** From merge through main: one more completion is safe. */
  | { readonly type: 'completion-recorded'; readonly calls: number; readonly sampledTokens: number }
  /** From proxy: a limit of the task ended the session. */
  | { readonly type: 'limit-reached'; readonly limit: string }
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

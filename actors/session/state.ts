// What a session actor knows, what it says to itself and what it asks of the world: types and the first state.
// Times are milliseconds since the epoch; they arrive in messages, the machine reads no clock.

import type { SessionLedger } from '../../src/domain/completion.js'
import type { ErrorData } from '../../src/domain/errors.js'
import type { AgentResult, FailureClass, SessionResult, SessionSpec, SessionStatus } from '../../src/domain/session.js'
import type { RuntimeHandle, TeardownReport } from '../../src/runtimes/base.js'
import type { LimitsUsed } from '../protocol/proxy.js'
import type { SessionDescription, SessionMessage } from '../protocol/session.js'
import type { PostrunJob } from '../protocol/stages.js'
import type { ActorRef } from '../system/ref.js'
import { type Held, NOT_HELD } from './held.js'

/** What is fixed for the life of the session. Plain data. */
export interface SessionSetup {
  readonly spec: SessionSpec
  /** Folder of the session below stateDir. */
  readonly sessionDir: string
  readonly nodeId: string
  readonly createdAtMs: number
  readonly budgets: { readonly buildMs: number; readonly evaluateMs: number; readonly teardownMs: number }
  /** How long a stage may take to stop after it was told to; beyond it the session goes on without its answer. */
  readonly stopMs: number
  /** A process that is gone ran it: all that is left to do is to build what it captured. */
  readonly isOrphan: boolean
}

export type Phase =
  | 'registering'
  | 'queued'
  | 'initializing'
  | 'stopping-init'
  | 'ready'
  | 'starting'
  | 'running'
  | 'stopping-run'
  | 'closing'
  | 'sealing'
  | 'postrun-queued'
  | 'postrun'
  | 'ended'

/** Why a session will not end COMPLETED. The first one stays; a cancel stands above it. */
export type Verdict =
  | { readonly kind: 'timeout'; readonly source: 'session' | 'agent'; readonly stage: TimeoutStage }
  | { readonly kind: 'error'; readonly error: string; readonly failureClass: FailureClass }
export type TimeoutStage = 'init' | 'setup' | 'exec' | 'postprocess'

/** Failed model calls, for the result (life-cycle-26). */
export interface UpstreamFailures {
  readonly count: number
  /** HTTP status -> calls. */
  readonly byStatus: Readonly<Record<string, number>>
  readonly lastError: string | null
  /** The last event of the session was a failure of the inference server. */
  readonly endedOnFailure: boolean
}

export interface SessionState {
  readonly setup: SessionSetup
  readonly phase: Phase
  readonly status: SessionStatus
  readonly cancelled: boolean
  readonly cancelReason: string | null
  readonly verdict: Verdict | null
  /** Name of the task's limit that stopped the run, or null. */
  readonly truncated: string | null
  readonly gatewayUrl: string | null
  readonly runtime: RuntimeHandle | null
  readonly harnessInstallDir: string | null
  readonly agentResult: AgentResult | null
  readonly runStage: 'setup' | 'exec' | 'postprocess' | null
  /** The newest process of the run. */
  readonly process: { readonly pid: number; readonly startTime: string | null } | null
  /** Known from `completion-recorded`: calls that are safe, and their sampled tokens. */
  readonly calls: number
  readonly sampledTokens: number
  readonly turns: number
  readonly promptTokens: number
  /** Number of the next call: over those of all that began, also of cut and failed ones. */
  readonly nextSequence: number
  readonly held: Held
  /** Counts of what merge lost; null = nothing. */
  readonly lost: { readonly calls: number; readonly sampledTokens: number } | null
  readonly upstream: UpstreamFailures | null
  readonly teardown: TeardownReport | null
  /** The running POSTRUN task was told to stop. */
  readonly postrunStopping: boolean
  /** Its thread died under POSTRUN, and the ledger was asked for again. */
  readonly isRebuilt: boolean
  readonly times: SessionTimes
  /** What the tasks measured; keys of TIMING_KEYS. */
  readonly taskTiming: Readonly<Record<string, number>>
  readonly result: SessionResult | null
}

export interface SessionTimes {
  readonly initStarted: number | null
  readonly initFinished: number | null
  readonly runStarted: number | null
  readonly runFinished: number | null
  readonly postrunStarted: number | null
  /** Time of the latest fact that carried one. */
  readonly latest: number
}

export type DeadlineName = 'init' | 'session' | 'agent' | 'postrun' | 'stop'

/** What the interpreter tells the machine. */
export type SessionSelf =
  | { readonly type: 'proxy-registered'; readonly gatewayUrl: string; readonly atMs: number }
  | { readonly type: 'proxy-unreachable'; readonly error: ErrorData; readonly atMs: number }
  | { readonly type: 'deadline-passed'; readonly deadline: DeadlineName; readonly atMs: number }
  /** Also after a failed close: the proxy is gone, and with it every call. */
  | { readonly type: 'proxy-closed'; readonly error: ErrorData | null; readonly atMs: number }
  | { readonly type: 'ledger-received'; readonly ledger: SessionLedger; readonly atMs: number }
  /** `error` null = merge answered that it knows no such session. */
  | { readonly type: 'ledger-lost'; readonly error: ErrorData | null; readonly atMs: number }
  /** An effect that needs no answer failed. */
  | { readonly type: 'effect-failed'; readonly effect: string; readonly error: ErrorData }

export type SessionInput = SessionMessage | SessionSelf

export type SessionEffect =
  /** session-put at the proxy; answered by `proxy-registered` or `proxy-unreachable`. */
  | {
      readonly type: 'register-at-proxy'
      readonly state: 'registered' | 'running'
      readonly firstSequence: number
      readonly used: LimitsUsed
    }
  /** To the reaper, before anything is made. */
  | { readonly type: 'announce' }
  | { readonly type: 'open-ledger' }
  | { readonly type: 'request-init'; readonly timeoutMs: number }
  | {
      readonly type: 'start-run'
      readonly runtime: RuntimeHandle
      readonly harnessInstallDir: string | null
      readonly gatewayUrl: string
      readonly sessionBudgetMs: number
      readonly agentBudgetMs: number | null
    }
  | { readonly type: 'release-run-slot' }
  | { readonly type: 'cancel-stage'; readonly stage: 'init' | 'ready' | 'running' | 'postrun' }
  | { readonly type: 'close-proxy' }
  | { readonly type: 'seal-ledger' }
  /** As `seal-ledger`, of what a dead process has left in the store. */
  | { readonly type: 'recover-ledger' }
  | { readonly type: 'request-postrun'; readonly job: PostrunJob }
  | { readonly type: 'arm-deadline'; readonly deadline: DeadlineName; readonly afterMs: number }
  | { readonly type: 'report-status'; readonly status: SessionStatus }
  | { readonly type: 'report-progress'; readonly calls: number; readonly sampledTokens: number }
  /** The last effect: rollout gets the result, proxy and merge forget the session. */
  | { readonly type: 'report-end'; readonly result: SessionResult }
  | {
      readonly type: 'describe'
      readonly replyTo: ActorRef<SessionDescription>
      readonly description: SessionDescription
    }

export const initialState = (setup: SessionSetup): SessionState => ({
  setup,
  phase: 'registering',
  status: 'REGISTERED',
  cancelled: false,
  cancelReason: null,
  verdict: null,
  truncated: null,
  gatewayUrl: null,
  runtime: null,
  harnessInstallDir: null,
  agentResult: null,
  runStage: null,
  process: null,
  calls: 0,
  sampledTokens: 0,
  turns: 0,
  promptTokens: 0,
  nextSequence: 0,
  held: NOT_HELD,
  lost: null,
  upstream: null,
  teardown: null,
  postrunStopping: false,
  isRebuilt: false,
  times: {
    initStarted: null,
    initFinished: null,
    runStarted: null,
    runFinished: null,
    postrunStarted: null,
    latest: setup.createdAtMs,
  },
  taskTiming: {},
  result: null,
})

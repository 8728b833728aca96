// What the stages actor knows: one entry per session that is somewhere in INIT, READY, RUNNING or POSTRUN, and the limits.
// A session between the end of its run and its POSTRUN request is with its own actor and in no entry: it holds no slot.

import type { ErrorData } from '../../src/domain/errors.js'
import type { SessionId } from '../../src/domain/ids.js'
import type { AgentResult } from '../../src/domain/session.js'
import type { RuntimeHandle } from '../../src/runtimes/base.js'
import type { PostrunCrash, PostrunOutcome } from '../protocol/outcomes.js'
import type { SessionMessage } from '../protocol/session.js'
import type { InitJob, PostrunJob, RunJob, StagesDescription, StagesMessage } from '../protocol/stages.js'
import type { ActorRef, Address } from '../system/ref.js'

/** Counts of sessions. */
export interface StagesLimits {
  readonly init: number
  readonly ready: number
  readonly running: number
  readonly postrun: number
  /** POSTRUN jobs waiting; at this number INIT grants stop. */
  readonly postrunQueue: number
  /** Sessions waiting for INIT; one more is refused. */
  readonly initQueue: number
}

/** In the order of a session's life. `granted` = holds a run slot, its run has not been asked for yet. */
export type Place = 'init-queued' | 'initializing' | 'ready' | 'granted' | 'running' | 'postrun-queued' | 'postrun'

export interface Entry {
  readonly sessionId: SessionId
  readonly session: ActorRef<SessionMessage>
  readonly place: Place
  readonly priority: number
  /** Grows with each request; breaks ties of priority. */
  readonly order: number
  /** The running task was told to stop, or, in POSTRUN's queue, will be told at its start. */
  readonly cancelled: boolean
  /** The session's actor is gone: nobody will ask for the next stage, so what was made is torn down here. */
  readonly orphaned: boolean
  readonly initJob: InitJob | null
  readonly postrunJob: PostrunJob | null
  readonly runtime: RuntimeHandle | null
}

export interface StagesState {
  readonly limits: StagesLimits
  readonly entries: ReadonlyMap<SessionId, Entry>
  readonly nextOrder: number
  readonly readyHighWater: number
  readonly draining: boolean
  /** Last level told to rollout. */
  readonly toldFree: number
}

/** What the interpreter tells the machine: each task ends in exactly one of these. */
export type StagesSelf =
  | {
      readonly type: 'init-task-ended'
      readonly sessionId: SessionId
      readonly runtime: RuntimeHandle | null
      readonly harnessInstallDir: string | null
      readonly timing: Readonly<Record<string, number>>
      readonly error: ErrorData | null
      readonly timedOut: boolean
    }
  | {
      readonly type: 'run-task-ended'
      readonly sessionId: SessionId
      readonly result: AgentResult
      readonly timing: Readonly<Record<string, number>>
    }
  | { readonly type: 'run-task-crashed'; readonly sessionId: SessionId; readonly error: ErrorData }
  | { readonly type: 'postrun-task-ended'; readonly sessionId: SessionId; readonly outcome: PostrunOutcome }
  | { readonly type: 'postrun-task-crashed'; readonly sessionId: SessionId; readonly crash: PostrunCrash }
  | { readonly type: 'session-terminated'; readonly address: Address }
  /** Time to tell the level again: rollout may have started later, or anew. */
  | { readonly type: 'level-due' }
  /** An effect without an answer failed. */
  | { readonly type: 'effect-failed'; readonly effect: string; readonly error: ErrorData }

export type StagesInput = StagesMessage | StagesSelf

type WithoutTime<M> = M extends { readonly atMs: number } ? Omit<M, 'atMs'> : M
/** A fact for the session; the interpreter stamps the time. */
export type UntimedFact = WithoutTime<
  Extract<
    SessionMessage,
    {
      type:
        | 'init-started'
        | 'init-finished'
        | 'run-slot-granted'
        | 'run-finished'
        | 'run-crashed'
        | 'postrun-started'
        | 'postrun-finished'
        | 'postrun-crashed'
    }
  >
>

export type StagesEffect =
  | { readonly type: 'watch-session'; readonly session: ActorRef<SessionMessage> }
  | { readonly type: 'tell-session'; readonly session: ActorRef<SessionMessage>; readonly fact: UntimedFact }
  | { readonly type: 'tell-free'; readonly count: number }
  | { readonly type: 'arm-level'; readonly afterMs: number }
  | { readonly type: 'run-init-task'; readonly sessionId: SessionId; readonly job: InitJob }
  | {
      readonly type: 'run-run-task'
      readonly sessionId: SessionId
      readonly job: RunJob
      readonly session: ActorRef<SessionMessage>
    }
  | {
      readonly type: 'run-postrun-task'
      readonly sessionId: SessionId
      readonly job: PostrunJob
      readonly session: ActorRef<SessionMessage>
    }
  | { readonly type: 'cancel-task'; readonly sessionId: SessionId; readonly pool: 'init' | 'running' | 'postrun' }
  /** Teardown of an orphan's runtime, from main. */
  | { readonly type: 'destroy-runtime'; readonly runtime: RuntimeHandle }
  | { readonly type: 'kill-thread'; readonly pool: 'init' | 'running' | 'postrun'; readonly index: number }
  | {
      readonly type: 'describe'
      readonly replyTo: ActorRef<StagesDescription>
      readonly description: StagesDescription
    }

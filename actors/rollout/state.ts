// What the rollout actor knows, what it says to itself and what it asks of the world. Times are milliseconds since the epoch; they
// arrive in messages, as do ids.

import type { ErrorData } from '../../src/domain/errors.js'
import type { SessionResult, SessionSpec, SessionStatus } from '../../src/domain/session.js'
import type { RuntimeSpec, TaskRequest } from '../../src/domain/task.js'
import type { KeptOutbox, KeptResult, KeptTask } from '../../src/store/control-records.js'
import type { PublicEvent } from '../protocol/control.js'
import type { RolloutMessage, SubmitReply, TaskList, TaskReply, TaskState, TaskView } from '../protocol/rollout.js'
import type { ActorRef } from '../system/ref.js'

/** What is fixed for the life of the service. */
export interface RolloutSettings {
  readonly nodeId: string
  readonly queuedSessions: number
  /** Runtime of tasks that name none; submit has refused such tasks when it is null. */
  readonly defaultRuntime: RuntimeSpec | null
  /** Sessions of ended tasks that are kept. */
  readonly retainedSessions: number
  readonly retainedMs: number
  /** How long the id of a task that was cancelled before its submission is refused. */
  readonly tombstoneMs: number
  readonly tombstones: number
}

/**
 * `queued` -> `active` (its actor runs) -> `storing` (its result is being written) -> `done`. A session that never began goes from
 * `queued` to `storing`. Exactly one result for each.
 */
export type SessionPhase = 'queued' | 'active' | 'storing' | 'done'

export interface SessionEntry {
  readonly sessionId: string
  readonly phase: SessionPhase
  readonly status: SessionStatus | 'QUEUED'
  readonly calls: number
  readonly sampledTokens: number
  readonly dispatchedAtMs: number | null
  /** Number of the pair that serves it; 0 = none does. */
  readonly pair: number
  /** Early stop of the group has cancelled it. */
  readonly cut: boolean
  /** Let go once the task's end is stored: from then on it is read again when it is asked for. */
  readonly result: SessionResult | null
  /** What the store knows of the result; null = there is none. */
  readonly kept: KeptResult | null
}

/** A result that is on disk, not in memory. */
export interface ResultRef {
  readonly sessionId: string
  readonly index: number
  readonly kept: KeptResult
}

/** A task as it is shown, before the interpreter has read what is only on disk. */
export type TaskFacts = Omit<TaskView, 'results'> & { readonly results: readonly (SessionResult | ResultRef)[] }

export interface TaskEntry {
  readonly request: TaskRequest
  readonly runtime: RuntimeSpec
  readonly generation: number
  readonly status: TaskState
  /** In sample order. */
  readonly sessions: readonly SessionEntry[]
  /** First sample that was not dispatched. */
  readonly next: number
  /** Order of submission. */
  readonly arrival: number
  /** Sessions that count towards early stop. */
  readonly usable: number
  readonly stoppedEarly: boolean
  readonly createdAtMs: number
  readonly updatedAtMs: number
  /** Told when the task has ended: who asked for its cancel. */
  readonly waiters: readonly ActorRef<TaskReply>[]
  readonly deliveryId: string | null
  readonly delivery: TaskView['delivery']
}

/** A task whose submit waits for the store. Nobody else sees it yet. */
export interface Accepting {
  readonly task: TaskEntry
  readonly repliesTo: readonly ActorRef<SubmitReply>[]
}

export interface RolloutState {
  readonly settings: RolloutSettings
  readonly accepting: ReadonlyMap<string, Accepting>
  readonly live: ReadonlyMap<string, TaskEntry>
  /** Ended tasks by id, generations in order; oldest task first. */
  readonly ended: ReadonlyMap<string, readonly TaskEntry[]>
  readonly retained: number
  /** Sessions whose actor runs -> their place. */
  readonly active: ReadonlyMap<
    string,
    { readonly taskId: string; readonly index: number; readonly registered: boolean }
  >
  /** Last level that stages told. */
  readonly slots: number
  readonly queued: number
  readonly tombstones: ReadonlyMap<string, number>
  readonly draining: boolean
  /** Pairs whose records cannot be stored, and why: no task is taken and no session begun. */
  readonly intake: ReadonlyMap<number, ErrorData>
  readonly count: number
  /** Turn at which each run (`metadata.run_id`) was served last; kept for runs with live tasks. */
  readonly served: ReadonlyMap<string, number>
}

/** What the interpreter tells the machine. */
export type RolloutSelf =
  /** Ids are made and the clock is read: the task may be decided on. */
  | {
      readonly type: 'task-prepared'
      readonly request: TaskRequest
      readonly sessionIds: readonly string[]
      readonly deliveryId: string
      readonly atMs: number
      readonly replyTo: ActorRef<SubmitReply>
    }
  | { readonly type: 'task-stored'; readonly taskId: string }
  | { readonly type: 'task-not-stored'; readonly taskId: string; readonly error: ErrorData }
  /** The end of the task, and its place in the outbox, are on disk. */
  | { readonly type: 'task-end-stored'; readonly taskId: string; readonly generation: number }
  | {
      readonly type: 'session-dispatched'
      readonly sessionId: string
      readonly pair: number
      readonly atMs: number
    }
  | { readonly type: 'dispatch-failed'; readonly sessionId: string; readonly error: ErrorData }
  /** The session's actor is gone. */
  | { readonly type: 'session-gone'; readonly sessionId: string; readonly reason: string }
  | {
      readonly type: 'result-stored'
      readonly taskId: string
      readonly index: number
      readonly result: SessionResult
      readonly kept: KeptResult
    }
  /** A dead process had written the session's result file, and was killed before the store knew. */
  | { readonly type: 'result-found'; readonly sessionId: string; readonly kept: KeptResult }
  | { readonly type: 'tombstone-expired'; readonly taskId: string; readonly stone: number }
  | { readonly type: 'effect-failed'; readonly effect: string; readonly error: ErrorData }

export type RolloutInput = RolloutMessage | RolloutSelf

/** What early stop or a cancel says of a session in place of its own result. */
export type Substitute =
  | { readonly kind: 'early-stop'; readonly minimum: number; readonly usable: number }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'crashed'; readonly error: string }

export type RolloutEffect =
  | { readonly type: 'prepare-task'; readonly request: TaskRequest; readonly replyTo: ActorRef<SubmitReply> }
  /** Answered by `task-stored` or `task-not-stored`. */
  | { readonly type: 'store-task'; readonly task: KeptTask }
  /** Told to the store without waiting. */
  | { readonly type: 'note-task'; readonly task: KeptTask }
  /** Until it is stored, whatever it takes; answered by `task-end-stored`. */
  | { readonly type: 'store-end'; readonly task: KeptTask; readonly outbox: KeptOutbox | null }
  | { readonly type: 'forget-tasks'; readonly tasks: readonly KeptTask[] }
  /** Its start is stored first. */
  | { readonly type: 'start-session'; readonly spec: SessionSpec; readonly generation: number }
  /** A session that a dead process ran: what it captured becomes its result; answered by `result-found` if there is one. */
  | {
      readonly type: 'end-orphan'
      readonly spec: SessionSpec
      readonly generation: number
      readonly dispatchedAtMs: number | null
      readonly pair: number
      readonly createdAtMs: number
    }
  | { readonly type: 'stop-session'; readonly sessionId: string }
  | { readonly type: 'cancel-session'; readonly sessionId: string; readonly reason: string }
  /** Stamps rollout's timings, writes the file, stores the result, answers `result-stored`. `result` null = the session never gave one. */
  | {
      readonly type: 'store-result'
      readonly spec: Pick<SessionSpec, 'sessionId' | 'taskId' | 'sampleIndex' | 'metadata' | 'builder'>
      readonly result: SessionResult | null
      readonly substitute: Substitute | null
      readonly generation: number
      readonly pair: number
      /** Of a session whose result has no ledger. */
      readonly counts: { readonly calls: number; readonly sampledTokens: number }
      readonly usable: boolean
      readonly createdAtMs: number
      readonly dispatchedAtMs: number | null
      /** False for sessions of a cancelled task that never began (contract 4.9). */
      readonly write: boolean
    }
  | { readonly type: 'publish'; readonly event: PublicEvent }
  | { readonly type: 'deliver'; readonly task: TaskFacts; readonly outbox: KeptOutbox }
  | {
      readonly type: 'arm-tombstone'
      readonly taskId: string
      readonly stone: number
      readonly afterMs: number
      /** False = the store knows it already. */
      readonly store: boolean
    }
  | { readonly type: 'reply-submit'; readonly replyTo: ActorRef<SubmitReply>; readonly reply: SubmitReply }
  /** `task` null = unknown. */
  | { readonly type: 'reply-task'; readonly replyTo: ActorRef<TaskReply>; readonly task: TaskFacts | null }
  | { readonly type: 'reply-list'; readonly replyTo: ActorRef<TaskList>; readonly reply: TaskList }
  | { readonly type: 'warn'; readonly fields: Readonly<Record<string, string>> }

export const initialState = (settings: RolloutSettings): RolloutState => ({
  settings,
  accepting: new Map(),
  live: new Map(),
  ended: new Map(),
  retained: 0,
  active: new Map(),
  slots: 0,
  queued: 0,
  tombstones: new Map(),
  draining: false,
  intake: new Map(),
  count: 0,
  served: new Map(),
})

// What the rollout actor knows, what it says to itself and what it asks of the world. Times are milliseconds since the epoch; they
// arrive in messages, as do ids.

import type { ErrorData } from '../../src/domain/errors.js'
import type { SessionResult, SessionSpec, SessionStatus } from '../../src/domain/session.js'
import type { RuntimeSpec, TaskRequest } from '../../src/domain/task.js'
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
  /** Early stop of the group has cancelled it. */
  readonly cut: boolean
  readonly result: SessionResult | null
  readonly path: string | null
}

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

export interface RolloutState {
  readonly settings: RolloutSettings
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
  | { readonly type: 'session-dispatched'; readonly sessionId: string; readonly atMs: number }
  | { readonly type: 'dispatch-failed'; readonly sessionId: string; readonly error: ErrorData }
  /** The session's actor is gone. */
  | { readonly type: 'session-gone'; readonly sessionId: string; readonly reason: string }
  | {
      readonly type: 'result-stored'
      readonly taskId: string
      readonly index: number
      readonly result: SessionResult
      /** null = no file: none is wanted, or it could not be written. */
      readonly path: string | null
      readonly atMs: number
    }
  | { readonly type: 'tombstone-expired'; readonly taskId: string; readonly stone: number }
  | { readonly type: 'effect-failed'; readonly effect: string; readonly error: ErrorData }

export type RolloutInput = RolloutMessage | RolloutSelf

/** What early stop or the end of the service says of a session in place of its own result. */
export type Substitute =
  | { readonly kind: 'early-stop'; readonly minimum: number; readonly usable: number }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'stopping' }
  | { readonly kind: 'crashed'; readonly error: string }

export type RolloutEffect =
  | { readonly type: 'prepare-task'; readonly request: TaskRequest; readonly replyTo: ActorRef<SubmitReply> }
  | { readonly type: 'start-session'; readonly spec: SessionSpec }
  | { readonly type: 'cancel-session'; readonly sessionId: string; readonly reason: string }
  /** Stamps rollout's timings, writes the file, answers `result-stored`. `result` null = the session never gave one. */
  | {
      readonly type: 'store-result'
      readonly spec: Pick<SessionSpec, 'sessionId' | 'taskId' | 'sampleIndex' | 'metadata' | 'builder'>
      readonly result: SessionResult | null
      readonly substitute: Substitute | null
      readonly createdAtMs: number
      readonly dispatchedAtMs: number | null
      /** False for sessions of a cancelled task that never began (contract 4.9). */
      readonly write: boolean
    }
  | { readonly type: 'publish'; readonly event: PublicEvent }
  | { readonly type: 'deliver'; readonly task: TaskView; readonly url: string; readonly deliveryId: string }
  | { readonly type: 'arm-tombstone'; readonly taskId: string; readonly stone: number; readonly afterMs: number }
  | { readonly type: 'reply-submit'; readonly replyTo: ActorRef<SubmitReply>; readonly reply: SubmitReply }
  | { readonly type: 'reply-task'; readonly replyTo: ActorRef<TaskReply>; readonly reply: TaskReply }
  | { readonly type: 'reply-list'; readonly replyTo: ActorRef<TaskList>; readonly reply: TaskList }
  | { readonly type: 'warn'; readonly fields: Readonly<Record<string, string>> }

export const initialState = (settings: RolloutSettings): RolloutState => ({
  settings,
  live: new Map(),
  ended: new Map(),
  retained: 0,
  active: new Map(),
  slots: 0,
  queued: 0,
  tombstones: new Map(),
  draining: false,
  count: 0,
  served: new Map(),
})

// What may be said to the rollout actor: tasks in, results out.

import type { TaskResult } from '../../src/api/task-json.js'
import type { ErrorData } from '../../src/domain/errors.js'
import type { SessionStatus } from '../../src/domain/session.js'
import type { TaskRequest } from '../../src/domain/task.js'
import type { ActorRef } from '../system/ref.js'
import type { DeliveryReport } from './callback.js'
import type { SessionReport } from './session.js'
import type { StagesReport } from './stages.js'

export type TaskState = 'running' | 'completed' | 'failed' | 'cancelling' | 'cancelled'

export interface TaskView {
  readonly taskId: string
  /** From 1; a terminal id that is submitted again starts the next one. */
  readonly generation: number
  readonly status: TaskState
  /** null = the task was cancelled before it was submitted. */
  readonly request: TaskRequest | null
  readonly totalSessions: number
  /** In sample order; only sessions that ended. */
  readonly results: readonly TaskResult[]
  readonly sessions: readonly {
    readonly sessionId: string
    readonly sampleIndex: number
    readonly status: SessionStatus | 'QUEUED'
    readonly calls: number
    readonly sampledTokens: number
  }[]
  /** In the order of `results`; only those that were written. */
  readonly resultPaths: readonly string[]
  /** null = the task has no callback, or has not ended. */
  readonly delivery: {
    readonly state: 'pending' | 'delivered' | 'undelivered'
    readonly attempts: number
    readonly error: string | null
  } | null
  readonly createdAtMs: number
  readonly updatedAtMs: number
}

export type SubmitReply =
  | { readonly type: 'task-accepted'; readonly taskId: string; readonly warnings: readonly string[] }
  | { readonly type: 'task-refused'; readonly error: ErrorData }

export type TaskReply = { readonly type: 'task-found'; readonly task: TaskView } | { readonly type: 'task-unknown' }

export type RolloutMessage =
  | { readonly type: 'task-submit-requested'; readonly request: TaskRequest; readonly replyTo: ActorRef<SubmitReply> }
  /** `generation` null = the newest. */
  | {
      readonly type: 'task-requested'
      readonly taskId: string
      readonly generation: number | null
      readonly replyTo: ActorRef<TaskReply>
    }
  /** Replies once every session of the task has ended. */
  | {
      readonly type: 'task-cancel-requested'
      readonly taskId: string
      readonly registerIfMissing: boolean
      readonly replyTo: ActorRef<TaskReply>
    }
  | { readonly type: 'tasks-requested'; readonly replyTo: ActorRef<TaskList> }
  /** Refuses further tasks and begins no further session; those that have begun go on to their end. */
  | { readonly type: 'drain-rollout' }
  /** Ends the sessions that have begun, as a restart of the service would. */
  | { readonly type: 'stop-sessions' }
  /** Whether the records of that pair can be stored: null, or why not. No task is taken meanwhile. */
  | { readonly type: 'intake-set'; readonly pair: number; readonly error: ErrorData | null }
  | DeliveryReport
  | SessionReport
  | StagesReport

export interface TaskList {
  readonly type: 'task-list'
  readonly tasks: readonly { readonly taskId: string; readonly status: TaskState }[]
  /** Sessions whose result is not published yet, queued ones included. */
  readonly pendingSessions: number
  /** Of them, those that have begun. */
  readonly activeSessions: number
}

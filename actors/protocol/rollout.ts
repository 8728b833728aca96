// What may be said to the rollout actor: tasks in, results out.

import type { ErrorData } from '../../src/domain/errors.js'
import type { SessionResult, SessionStatus } from '../../src/domain/session.js'
import type { TaskRequest } from '../../src/domain/task.js'
import type { ActorRef } from '../system/ref.js'
import type { SessionReport } from './session.js'
import type { StagesReport } from './stages.js'

export type TaskState = 'running' | 'completed' | 'failed' | 'cancelling' | 'cancelled'

export interface TaskView {
  readonly taskId: string
  readonly status: TaskState
  readonly request: TaskRequest
  readonly totalSessions: number
  /** In sample order; only sessions that ended. */
  readonly results: readonly SessionResult[]
  readonly sessions: readonly {
    readonly sessionId: string
    readonly sampleIndex: number
    readonly status: SessionStatus | 'QUEUED'
    readonly calls: number
    readonly sampledTokens: number
  }[]
  readonly resultPaths: readonly string[]
  readonly createdAtMs: number
  readonly updatedAtMs: number
}

export type SubmitReply =
  | { readonly type: 'task-accepted'; readonly taskId: string; readonly warnings: readonly string[] }
  | { readonly type: 'task-refused'; readonly error: ErrorData }

export type TaskReply = { readonly type: 'task-found'; readonly task: TaskView } | { readonly type: 'task-unknown' }

export type RolloutMessage =
  | { readonly type: 'task-submit-requested'; readonly request: TaskRequest; readonly replyTo: ActorRef<SubmitReply> }
  | { readonly type: 'task-requested'; readonly taskId: string; readonly replyTo: ActorRef<TaskReply> }
  /** Replies once every session of the task has ended. */
  | {
      readonly type: 'task-cancel-requested'
      readonly taskId: string
      readonly registerIfMissing: boolean
      readonly replyTo: ActorRef<TaskReply>
    }
  | { readonly type: 'tasks-requested'; readonly replyTo: ActorRef<TaskList> }
  | { readonly type: 'drain-rollout' }
  | SessionReport
  | StagesReport

export interface TaskList {
  readonly type: 'task-list'
  readonly tasks: readonly { readonly taskId: string; readonly status: TaskState }[]
  readonly pendingSessions: number
}

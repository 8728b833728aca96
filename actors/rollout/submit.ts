// Deciding on a submitted task: accepted, the same as a live one, or refused. Pure.

import type { ErrorCode } from '../../src/domain/errors.js'
import type { SubmitReply } from '../protocol/rollout.js'
import type { RolloutInput, RolloutState, SessionEntry, TaskEntry } from './state.js'
import type { RolloutStep } from './steps.js'
import { sameJson, taskCreated, withTask } from './tasks.js'

type Prepared = Extract<RolloutInput, { readonly type: 'task-prepared' }>

/**
 * A live id with an identical body is the same task (the answer to the first submit was lost), with another one a conflict. The id
 * of an ended task starts a new generation.
 */
export function submit(state: RolloutState, prepared: Prepared): RolloutStep {
  const { request, replyTo } = prepared
  const taskId = request.task_id
  const answer = (reply: SubmitReply): RolloutStep => ({ state, effects: [{ type: 'reply-submit', replyTo, reply }] })
  const refuse = (code: ErrorCode, message: string) => answer({ type: 'task-refused', error: { code, message } })

  const live = state.live.get(taskId)
  if (live && sameJson(live.request, request)) return answer({ type: 'task-accepted', taskId, warnings: [] })
  if (live)
    return refuse('TASK_CONFLICT', `task ${taskId} is ${live.status} with another body; wanted a task_id of its own`)
  if (state.tombstones.has(taskId)) return refuse('TASK_CONFLICT', `task ${taskId} was cancelled before submission`)
  if (state.draining) return refuse('SERVICE_STOPPING', 'the service is stopping and takes no further tasks')
  const { queuedSessions, defaultRuntime } = state.settings
  if (state.queued + request.num_samples > queuedSessions)
    return refuse(
      'TASK_QUEUE_FULL',
      `${state.queued} sessions are queued and limits.queuedSessions is ${queuedSessions}: no room for ${request.num_samples} more`,
    )
  const runtime = request.runtime ?? defaultRuntime
  if (runtime === null) return refuse('TASK_INVALID', 'runtime: required, since this service has no defaultRuntime')

  const task: TaskEntry = {
    request,
    runtime,
    generation: (state.ended.get(taskId)?.at(-1)?.generation ?? 0) + 1,
    status: 'running',
    sessions: prepared.sessionIds.map(queuedSession),
    next: 0,
    arrival: state.count,
    usable: 0,
    stoppedEarly: false,
    createdAtMs: prepared.atMs,
    updatedAtMs: prepared.atMs,
    waiters: [],
    deliveryId: request.callback_url === null ? null : prepared.deliveryId,
    delivery: null,
  }
  return {
    state: { ...withTask(state, task), count: state.count + 1, queued: state.queued + task.sessions.length },
    effects: [
      taskCreated(task),
      { type: 'reply-submit', replyTo, reply: { type: 'task-accepted', taskId, warnings: [] } },
    ],
  }
}

const queuedSession = (sessionId: string): SessionEntry => ({
  sessionId,
  phase: 'queued',
  status: 'QUEUED',
  calls: 0,
  sampledTokens: 0,
  dispatchedAtMs: null,
  cut: false,
  result: null,
  path: null,
})

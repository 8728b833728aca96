// Deciding on a submitted task: accepted, the same as a live one, or refused. Pure.

import type { ErrorCode, ErrorData } from '../../src/domain/errors.js'
import type { SubmitReply } from '../protocol/rollout.js'
import type { RolloutEffect, RolloutInput, RolloutState, SessionEntry, TaskEntry } from './state.js'
import { just, type RolloutStep } from './steps.js'
import { keptTask, sameJson, taskCreated, withEntry, withoutEntry, withTask } from './tasks.js'

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

  const waiting = state.accepting.get(taskId)
  if (waiting && sameJson(waiting.task.request, request)) {
    const repliesTo = [...waiting.repliesTo, replyTo]
    return just({ ...state, accepting: withEntry(state.accepting, taskId, { ...waiting, repliesTo }) })
  }
  const live = state.live.get(taskId) ?? waiting?.task
  if (live && sameJson(live.request, request)) return answer({ type: 'task-accepted', taskId, warnings: [] })
  if (live)
    return refuse('TASK_CONFLICT', `task ${taskId} is ${live.status} with another body; wanted a task_id of its own`)
  if (state.tombstones.has(taskId)) return refuse('TASK_CONFLICT', `task ${taskId} was cancelled before submission`)
  if (state.draining) return refuse('SERVICE_STOPPING', 'the service is stopping and takes no further tasks')
  const [blocked] = state.intake.values()
  if (blocked) return refuse(blocked.code, `no task is taken while records cannot be stored: ${blocked.message}`)
  const { queuedSessions, defaultRuntime } = state.settings
  const queued = [...state.accepting.values()].reduce((sum, { task }) => sum + task.sessions.length, state.queued)
  if (queued + request.num_samples > queuedSessions)
    return refuse(
      'TASK_QUEUE_FULL',
      `${queued} sessions are queued and limits.queuedSessions is ${queuedSessions}: no room for ${request.num_samples} more`,
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
  const accepting = withEntry(state.accepting, taskId, { task, repliesTo: [replyTo] })
  return just({ ...state, accepting, count: state.count + 1 }, { type: 'store-task', task: keptTask(task) })
}

/** The task is on disk: from here on it is the trainer's, whatever becomes of this process. */
export function taskStored(state: RolloutState, taskId: string): RolloutStep {
  const accepted = state.accepting.get(taskId)
  if (!accepted) return just(state)
  const { task, repliesTo } = accepted
  const next = withTask({ ...state, accepting: withoutEntry(state.accepting, taskId) }, task)
  const reply: SubmitReply = { type: 'task-accepted', taskId, warnings: [] }
  return just(
    { ...next, queued: state.queued + task.sessions.length },
    taskCreated(task),
    ...repliesTo.map((replyTo): RolloutEffect => ({ type: 'reply-submit', replyTo, reply })),
  )
}

/** Nothing of the task is kept. */
export function taskNotStored(state: RolloutState, taskId: string, error: ErrorData): RolloutStep {
  const reply: SubmitReply = { type: 'task-refused', error }
  return just(
    { ...state, accepting: withoutEntry(state.accepting, taskId) },
    ...(state.accepting.get(taskId)?.repliesTo ?? []).map(
      (replyTo): RolloutEffect => ({ type: 'reply-submit', replyTo, reply }),
    ),
  )
}

export const queuedSession = (sessionId: string): SessionEntry => ({
  sessionId,
  phase: 'queued',
  status: 'QUEUED',
  calls: 0,
  sampledTokens: 0,
  dispatchedAtMs: null,
  pair: 0,
  cut: false,
  result: null,
  kept: null,
})

// Questions about tasks, and their cancel. Pure.

import type { TaskReply } from '../protocol/rollout.js'
import type { RolloutEffect, RolloutInput, RolloutState, TaskEntry } from './state.js'
import { cancelActive, endIfDone, giveUpQueued, just, type RolloutStep, then } from './steps.js'
import { taskView, tombstoneView, withEntry, withTask } from './tasks.js'

type Input<T extends RolloutInput['type']> = Extract<RolloutInput, { readonly type: T }>

export function describeTask(state: RolloutState, message: Input<'task-requested'>): RolloutStep {
  const { taskId, generation, replyTo } = message
  const generations = [...(state.ended.get(taskId) ?? []), ...(state.live.has(taskId) ? [state.live.get(taskId)] : [])]
  const task = generation === null ? generations.at(-1) : generations.find(one => one?.generation === generation)
  if (task) return just(state, answer(replyTo, task))
  const buried = state.tombstones.has(taskId) && generation === null
  const reply: TaskReply = buried ? { type: 'task-found', task: tombstoneView(taskId) } : { type: 'task-unknown' }
  return just(state, { type: 'reply-task', replyTo, reply })
}

export function listTasks(state: RolloutState, { replyTo }: Input<'tasks-requested'>): RolloutStep {
  const ended = [...state.ended.values()].flatMap(generations => generations.at(-1) ?? [])
  const known = new Map([...ended, ...state.live.values()].map(task => [task.request.task_id, task.status]))
  const pending = [...state.live.values()].flatMap(task => task.sessions.filter(session => session.phase !== 'done'))
  return just(state, {
    type: 'reply-list',
    replyTo,
    reply: {
      type: 'task-list',
      tasks: [...known].map(([taskId, status]) => ({ taskId, status })),
      pendingSessions: pending.length,
      activeSessions: pending.length - state.queued,
    },
  })
}

/** Answers when the task has ended; the caller looks whether it has already. An ended task stays what it is. */
export function cancelTask(state: RolloutState, message: Input<'task-cancel-requested'>): RolloutStep {
  const { taskId, replyTo, registerIfMissing } = message
  const task = state.live.get(taskId)
  if (task)
    return cancelling(withTask(state, { ...task, waiters: [...task.waiters, replyTo] }), taskId, 'task cancelled')
  const done = state.ended.get(taskId)?.at(-1)
  if (done) return just(state, answer(replyTo, done))
  const known = state.tombstones.has(taskId)
  if (!known && !registerIfMissing) return just(state, { type: 'reply-task', replyTo, reply: { type: 'task-unknown' } })
  const reply: TaskReply = { type: 'task-found', task: tombstoneView(taskId) }
  const effects: RolloutEffect[] = [{ type: 'reply-task', replyTo, reply }]
  if (known) return just(state, ...effects)
  const stone = state.count + 1
  effects.push({ type: 'arm-tombstone', taskId, stone, afterMs: state.settings.tombstoneMs })
  return just(
    { ...state, count: stone, tombstones: bounded(withEntry(state.tombstones, taskId, stone), state) },
    ...effects,
  )
}

/** Cancels every live task. */
export function cancelAll(state: RolloutState, reason: string): RolloutStep {
  return [...state.live.keys()].reduce(
    (done: RolloutStep, taskId) =>
      then(
        then(done, before => cancelling(before, taskId, reason)),
        after => endIfDone(after, taskId),
      ),
    just(state),
  )
}

function cancelling(state: RolloutState, taskId: string, reason: string): RolloutStep {
  const task = state.live.get(taskId)
  if (!task) return just(state)
  const next: TaskEntry = { ...task, status: 'cancelling' }
  const dropped = giveUpQueued(withTask(state, next), taskId, { kind: 'cancelled' }, false)
  // A session's own machine takes a cancel once, so a second one may be told again.
  return then(dropped, after => just(after, ...cancelActive(next, reason)))
}

/** The oldest tombstones go when there are too many. */
function bounded(stones: ReadonlyMap<string, number>, state: RolloutState): ReadonlyMap<string, number> {
  if (stones.size <= state.settings.tombstones) return stones
  return new Map([...stones].slice(stones.size - state.settings.tombstones))
}

const answer = (replyTo: Input<'task-requested'>['replyTo'], task: TaskEntry): RolloutEffect => ({
  type: 'reply-task',
  replyTo,
  reply: { type: 'task-found', task: taskView(task) },
})

// Questions about tasks, and their cancel. Pure.

import type { RolloutEffect, RolloutInput, RolloutState, TaskEntry } from './state.js'
import { cancelActive, giveUpQueued, just, type RolloutStep, then } from './steps.js'
import { keptTask, taskView, tombstoneView, withEntry, withTask } from './tasks.js'

type Input<T extends RolloutInput['type']> = Extract<RolloutInput, { readonly type: T }>

export function describeTask(state: RolloutState, message: Input<'task-requested'>): RolloutStep {
  const { taskId, generation, replyTo } = message
  const generations = [...(state.ended.get(taskId) ?? []), ...(state.live.has(taskId) ? [state.live.get(taskId)] : [])]
  const task = generation === null ? generations.at(-1) : generations.find(one => one?.generation === generation)
  if (task) return just(state, answer(replyTo, task))
  const buried = state.tombstones.has(taskId) && generation === null
  return just(state, { type: 'reply-task', replyTo, task: buried ? tombstoneView(taskId) : null })
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
  if (!known && !registerIfMissing) return just(state, { type: 'reply-task', replyTo, task: null })
  const effects: RolloutEffect[] = [{ type: 'reply-task', replyTo, task: tombstoneView(taskId) }]
  if (known) return just(state, ...effects)
  const stone = state.count + 1
  effects.unshift({ type: 'arm-tombstone', taskId, stone, afterMs: state.settings.tombstoneMs, store: true })
  return just(
    { ...state, count: stone, tombstones: bounded(withEntry(state.tombstones, taskId, stone), state) },
    ...effects,
  )
}

function cancelling(state: RolloutState, taskId: string, reason: string): RolloutStep {
  const task = state.live.get(taskId)
  if (!task) return just(state)
  const next: TaskEntry = { ...task, status: 'cancelling' }
  // After a crash in the middle of it, what waits is not begun.
  const noted = just(withTask(state, next), { type: 'note-task', task: keptTask(next) })
  const dropped = then(noted, after => giveUpQueued(after, taskId, { kind: 'cancelled' }, false))
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
  task: taskView(task),
})

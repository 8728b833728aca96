// Which task's next sample is dispatched: highest priority first; within a priority, training runs (`metadata.run_id`) take turns,
// and a run's tasks go first in, first out. Pure.

import { runOf } from './expand.js'
import type { RolloutState, TaskEntry } from './state.js'

/** The task whose sample `next` is due, or undefined when none waits. O(live tasks). */
export function nextTask(state: RolloutState): TaskEntry | undefined {
  let best: TaskEntry | undefined
  for (const task of state.live.values()) {
    if (task.status !== 'running' || task.next >= task.sessions.length) continue
    if (best === undefined || before(state, task, best)) best = task
  }
  return best
}

function before(state: RolloutState, left: TaskEntry, right: TaskEntry): boolean {
  const priority = right.request.dispatch_priority - left.request.dispatch_priority
  if (priority !== 0) return priority < 0
  const turn = turnOf(state, left) - turnOf(state, right)
  return turn === 0 ? left.arrival < right.arrival : turn < 0
}

/** A run that was never served is due before all others. */
const turnOf = (state: RolloutState, task: TaskEntry): number => state.served.get(runOf(task.request)) ?? -1

export const servedAfter = (state: RolloutState, task: TaskEntry): RolloutState['served'] =>
  new Map(state.served).set(runOf(task.request), state.count)

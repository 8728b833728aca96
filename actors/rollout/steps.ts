// Steps that several parts of the rollout machine take: giving up what waits, storing a result, ending a task. Pure.

import type { SessionResult } from '../../src/domain/session.js'
import type { KeptTask } from '../../src/store/control-records.js'
import type { Step } from '../system/machine.js'
import { runOf, sampleMetadata, sessionSpec } from './expand.js'
import { isUsable } from './results.js'
import type { RolloutEffect, RolloutState, Substitute, TaskEntry } from './state.js'
import { keptTask, outboxOf, taskCompleted, taskView, withEntry, withoutEntry, withTask } from './tasks.js'

export type RolloutStep = Step<RolloutState, RolloutEffect>

export const just = (state: RolloutState, ...effects: readonly RolloutEffect[]): RolloutStep => ({ state, effects })

/** Goes on from `first`, keeping its effects. */
export function then(first: RolloutStep, next: (state: RolloutState) => RolloutStep): RolloutStep {
  const second = next(first.state)
  return { state: second.state, effects: [...first.effects, ...second.effects] }
}

/** Cancels of the sessions whose actor runs. */
export const cancelActive = (task: TaskEntry, reason: string): readonly RolloutEffect[] =>
  task.sessions
    .filter(session => session.phase === 'active')
    .map(session => ({ type: 'cancel-session', sessionId: session.sessionId, reason }))

/** Resolves the sessions of a task that never began. */
export function giveUpQueued(state: RolloutState, taskId: string, substitute: Substitute, write: boolean): RolloutStep {
  const task = state.live.get(taskId)
  if (!task) return just(state)
  const waiting = task.sessions.flatMap((session, index) => (session.phase === 'queued' ? [index] : []))
  if (waiting.length === 0) return just(state)
  const next: TaskEntry = {
    ...task,
    next: task.sessions.length,
    sessions: task.sessions.map(session => (session.phase === 'queued' ? { ...session, phase: 'storing' } : session)),
  }
  return just(
    { ...withTask(state, next), queued: state.queued - waiting.length },
    ...waiting.map(index => ({ ...storeEffect(next, index, null, substitute), write })),
  )
}

export function storeEffect(
  task: TaskEntry,
  index: number,
  result: SessionResult | null,
  substitute: Substitute | null,
): RolloutEffect & { type: 'store-result' } {
  const { request, createdAtMs, generation } = task
  const session = task.sessions[index]
  const { taskId, sessionId: id } = sessionSpec(request, task.runtime, session?.sessionId ?? '', index)
  return {
    type: 'store-result',
    spec: {
      taskId,
      sessionId: id,
      sampleIndex: index,
      builder: request.builder,
      metadata: sampleMetadata(request, index),
    },
    result,
    substitute,
    generation,
    pair: session?.pair ?? 0,
    counts: { calls: session?.calls ?? 0, sampledTokens: session?.sampledTokens ?? 0 },
    usable: result !== null && substitute === null && isUsable(result),
    createdAtMs,
    dispatchedAtMs: session?.dispatchedAtMs ?? null,
    write: true,
  }
}

/** Moves the task to the ended ones once its last session is resolved. */
export function endIfDone(state: RolloutState, taskId: string): RolloutStep {
  const task = state.live.get(taskId)
  if (!task || task.sessions.some(session => session.phase !== 'done')) return just(state)
  const url = task.request.callback_url
  const done: TaskEntry = {
    ...task,
    status: task.status === 'cancelling' ? 'cancelled' : 'completed',
    waiters: [],
    delivery: url === null ? null : { state: 'pending', attempts: 0, error: null },
  }
  const live = withoutEntry(state.live, taskId)
  const { state: kept, forgotten } = retain(
    {
      ...state,
      live,
      served: servedByLive(state.served, live),
      ended: withEntry(withoutEntry(state.ended, taskId), taskId, [...(state.ended.get(taskId) ?? []), done]),
      retained: state.retained + done.sessions.length,
    },
    task.updatedAtMs,
  )
  return just(
    kept,
    taskCompleted(done),
    ...task.waiters.map((replyTo): RolloutEffect => ({ type: 'reply-task', replyTo, task: taskView(done) })),
    { type: 'store-end', task: keptTask(done), outbox: outboxOf(done) },
    ...(forgotten.length === 0 ? [] : [{ type: 'forget-tasks', tasks: forgotten } as const]),
  )
}

/** Its results are on disk: they leave memory, and go to their receiver. */
export function endStored(state: RolloutState, taskId: string, generation: number): RolloutStep {
  const generations = state.ended.get(taskId)
  const task = generations?.find(one => one.generation === generation)
  if (!generations || !task) return just(state)
  const light: TaskEntry = { ...task, sessions: task.sessions.map(session => ({ ...session, result: null })) }
  const ended = new Map(state.ended).set(
    taskId,
    generations.map(one => (one === task ? light : one)),
  )
  const outbox = outboxOf(light)
  return just(
    { ...state, ended },
    ...(outbox === null ? [] : [{ type: 'deliver', task: taskView(light), outbox } as const]),
  )
}

/** Turns are kept for runs that still have tasks. */
function servedByLive(served: RolloutState['served'], live: RolloutState['live']): RolloutState['served'] {
  const runs = new Set([...live.values()].map(task => runOf(task.request)))
  return new Map([...served].filter(([run]) => runs.has(run)))
}

/** Lets the oldest ended tasks go when there are too many or they are too old; never one whose delivery is still pending. */
export function retain(
  state: RolloutState,
  nowMs: number,
): { readonly state: RolloutState; readonly forgotten: readonly KeptTask[] } {
  const { retainedSessions, retainedMs } = state.settings
  const kept = new Map(state.ended)
  const forgotten: KeptTask[] = []
  let retained = state.retained
  for (const [taskId, generations] of state.ended) {
    const newest = generations.at(-1)
    const old = newest !== undefined && newest.updatedAtMs + retainedMs <= nowMs
    if (retained <= retainedSessions && !old) break
    if (generations.some(task => task.delivery?.state === 'pending')) continue
    kept.delete(taskId)
    forgotten.push(...generations.map(keptTask))
    retained -= generations.reduce((total, task) => total + task.sessions.length, 0)
  }
  return { state: { ...state, ended: kept, retained }, forgotten }
}

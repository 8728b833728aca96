// Parts of the rollout machine that look at or change one task: its view, its events, whether a request is the same. Pure.

import type { JsonObject } from '../../src/domain/json.js'
import type { SessionResult } from '../../src/domain/session.js'
import type { KeptOutbox, KeptTask } from '../../src/store/control-records.js'
import type { ResultRef, RolloutEffect, RolloutState, SessionEntry, TaskEntry, TaskFacts } from './state.js'

export function taskView(task: TaskEntry): TaskFacts {
  const ended = task.sessions.filter(session => session.phase === 'done')
  const results = task.sessions.flatMap((session, index): readonly (SessionResult | ResultRef)[] =>
    session.phase !== 'done' ? [] : session.result === null ? refOf(session, index) : [session.result],
  )
  return {
    taskId: task.request.task_id,
    generation: task.generation,
    status: task.status,
    request: task.request,
    totalSessions: task.sessions.length,
    results,
    sessions: task.sessions.map((session, sampleIndex) => ({
      sessionId: session.sessionId,
      sampleIndex,
      status: session.status,
      calls: session.calls,
      sampledTokens: session.sampledTokens,
    })),
    resultPaths: ended.flatMap(session => session.kept?.path ?? []),
    delivery: task.delivery,
    createdAtMs: task.createdAtMs,
    updatedAtMs: task.updatedAtMs,
  }
}

const refOf = ({ sessionId, kept }: SessionEntry, index: number): readonly ResultRef[] =>
  kept === null ? [] : [{ sessionId, index, kept }]

export const keptTask = (task: TaskEntry): KeptTask => ({
  taskId: task.request.task_id,
  generation: task.generation,
  arrival: task.arrival,
  status: task.status,
  request: task.request,
  runtime: task.runtime,
  sessionIds: task.sessions.map(({ sessionId }) => sessionId),
  deliveryId: task.deliveryId,
  delivery: task.delivery,
  createdAtMs: task.createdAtMs,
  updatedAtMs: task.updatedAtMs,
})

/** The place of an ended task in the outbox; null = it has no callback, or its delivery is over. */
export function outboxOf(task: TaskEntry): KeptOutbox | null {
  const { request, generation, deliveryId, delivery, updatedAtMs } = task
  if (request.callback_url === null || deliveryId === null || delivery?.state !== 'pending') return null
  return {
    deliveryId,
    taskId: request.task_id,
    generation,
    url: request.callback_url,
    attempts: delivery.attempts,
    error: delivery.error,
    firstAtMs: null,
    nextAtMs: updatedAtMs,
    expiresAtMs: null,
  }
}

/** First sample from `from` on that waits; the number of samples when none does. */
export function nextQueued(sessions: readonly SessionEntry[], from: number): number {
  const index = sessions.findIndex((session, at) => at >= from && session.phase === 'queued')
  return index === -1 ? sessions.length : index
}

/** What GET of a task that was cancelled before it came shows. */
export const tombstoneView = (taskId: string): TaskFacts => ({
  taskId,
  generation: 0,
  status: 'cancelled',
  request: null,
  totalSessions: 0,
  results: [],
  sessions: [],
  resultPaths: [],
  delivery: null,
  createdAtMs: 0,
  updatedAtMs: 0,
})

export const withSession = (task: TaskEntry, index: number, change: Partial<SessionEntry>): TaskEntry => ({
  ...task,
  sessions: task.sessions.map((session, at) => (at === index ? { ...session, ...change } : session)),
})

export const withEntry = <K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> =>
  new Map(map).set(key, value)

export function withoutEntry<K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> {
  const copy = new Map(map)
  copy.delete(key)
  return copy
}

export const withTask = (state: RolloutState, task: TaskEntry): RolloutState => ({
  ...state,
  live: withEntry(state.live, task.request.task_id, task),
})

const publish = (type: string, data: JsonObject): RolloutEffect => ({ type: 'publish', event: { type, data } })

export const taskCreated = ({ request }: TaskEntry): RolloutEffect =>
  publish('task.created', {
    task_id: request.task_id,
    status: 'running',
    harness: request.agent.harness ?? request.agent.import_path,
    model: request.agent.model_name,
    num_samples: request.num_samples,
  })

const completed = (task: TaskEntry): number => task.sessions.filter(session => session.phase === 'done').length

export const taskUpdated = (task: TaskEntry): RolloutEffect =>
  publish('task.updated', {
    task_id: task.request.task_id,
    completed_sessions: completed(task),
    total_sessions: task.sessions.length,
  })

export const taskCompleted = (task: TaskEntry): RolloutEffect =>
  publish('task.completed', {
    task_id: task.request.task_id,
    status: task.status,
    ...(task.status === 'completed' && { completed_sessions: completed(task) }),
  })

export const sessionChanged = (state: RolloutState, task: TaskEntry, index: number, status: string): RolloutEffect =>
  publish('session.state_changed', {
    task_id: task.request.task_id,
    session_id: task.sessions[index]?.sessionId,
    sample_index: index,
    status,
    node_id: state.settings.nodeId,
  })

export const sessionProgressed = (task: TaskEntry, index: number): RolloutEffect =>
  publish('session.progressed', {
    task_id: task.request.task_id,
    session_id: task.sessions[index]?.sessionId,
    sample_index: index,
    calls: task.sessions[index]?.calls ?? 0,
    sampled_tokens: task.sessions[index]?.sampledTokens ?? 0,
  })

/** Equal as JSON, whatever the order of keys. */
export function sameJson(left: unknown, right: unknown): boolean {
  if (left === right) return true
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false
  if (Array.isArray(left) !== Array.isArray(right)) return false
  const a = left as Readonly<Record<string, unknown>>
  const b = right as Readonly<Record<string, unknown>>
  // What JSON does not have is not there: one of the two may have been on disk.
  const keys = Object.keys(a).filter(key => a[key] !== undefined)
  const theirs = Object.keys(b).filter(key => b[key] !== undefined)
  return keys.length === theirs.length && keys.every(key => Object.hasOwn(b, key) && sameJson(a[key], b[key]))
}

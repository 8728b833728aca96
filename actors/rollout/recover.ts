// What an earlier life of the service has left -> the first step of the rollout machine. Pure.
// A session with a result keeps it. One that waited is queued again. One that had begun ends: nothing of it lives any more, and what it
// captured becomes its result. Ended tasks are shown as they were, and deliveries that no receiver acknowledged go on.

import type { SessionStatus } from '../../src/domain/session.js'
import type { KeptOutbox, KeptSession, KeptState, KeptTask } from '../../src/store/control-records.js'
import { sessionSpec } from './expand.js'
import { stopEarly } from './machine.js'
import {
  initialState,
  type RolloutEffect,
  type RolloutSettings,
  type RolloutState,
  type SessionEntry,
  type TaskEntry,
} from './state.js'
import { endIfDone, giveUpQueued, just, type RolloutStep, retain, then } from './steps.js'
import { queuedSession } from './submit.js'
import { nextQueued, outboxOf, taskView, withEntry } from './tasks.js'

/** Of a session that ends because the process that ran it is gone. */
const ORPHANED: SessionStatus = 'POST_RUN'

export function recovered(settings: RolloutSettings, kept: KeptState, nowMs: number): RolloutStep {
  const sessions = new Map(kept.sessions.map(session => [session.sessionId, session]))
  const outbox = new Map(kept.outbox.map(entry => [entry.deliveryId, entry]))
  const tasks = [...kept.tasks].sort((left, right) => left.arrival - right.arrival)
  const placed = tasks.reduce((state, task) => withKept(state, taskEntry(task, sessions)), initialState(settings))
  const count = Math.max(0, ...tasks.map(({ arrival }) => arrival + 1)) + kept.tombstones.length
  const stones = just(
    {
      ...placed,
      count,
      tombstones: new Map(kept.tombstones.map(({ taskId }, index) => [taskId, count - index])),
    },
    ...kept.tombstones.map(
      ({ taskId, untilMs }, index): RolloutEffect => ({
        type: 'arm-tombstone',
        taskId,
        stone: count - index,
        afterMs: Math.max(0, untilMs - nowMs),
        store: false,
      }),
    ),
  )
  const live = [...placed.live.keys()].reduce((step, taskId) => then(step, state => goOn(state, taskId)), stones)
  return then(live, state => {
    const { state: bounded, forgotten } = retain(state, nowMs)
    return just(
      bounded,
      ...deliveries(bounded, outbox),
      ...(forgotten.length === 0 ? [] : [{ type: 'forget-tasks', tasks: forgotten } as const]),
    )
  })
}

function taskEntry(task: KeptTask, kept: ReadonlyMap<string, KeptSession>): TaskEntry {
  const sessions = task.sessionIds.map(sessionId => sessionEntry(sessionId, kept.get(sessionId)))
  return {
    request: task.request,
    runtime: task.runtime,
    generation: task.generation,
    status: task.status,
    sessions,
    next: nextQueued(sessions, 0),
    arrival: task.arrival,
    usable: sessions.filter(session => session.kept?.usable).length,
    stoppedEarly: false,
    createdAtMs: task.createdAtMs,
    updatedAtMs: task.updatedAtMs,
    waiters: [],
    deliveryId: task.deliveryId,
    delivery: task.delivery,
  }
}

function sessionEntry(sessionId: string, kept: KeptSession | undefined): SessionEntry {
  const queued = queuedSession(sessionId)
  if (kept === undefined) return queued
  const { pair, dispatchedAtMs, result } = kept
  if (result === null) return { ...queued, phase: 'active', status: ORPHANED, pair, dispatchedAtMs }
  const { status, calls, sampledTokens } = result
  return { ...queued, phase: 'done', status, calls, sampledTokens, pair, dispatchedAtMs, kept: result }
}

const isLive = ({ status }: TaskEntry): boolean => status === 'running' || status === 'cancelling'

function withKept(state: RolloutState, task: TaskEntry): RolloutState {
  const taskId = task.request.task_id
  if (!isLive(task))
    return {
      ...state,
      ended: withEntry(state.ended, taskId, [...(state.ended.get(taskId) ?? []), task]),
      retained: state.retained + task.sessions.length,
    }
  const active = new Map(state.active)
  task.sessions.forEach(({ phase, sessionId }, index) => {
    if (phase === 'active') active.set(sessionId, { taskId, index, registered: false })
  })
  const queued = task.sessions.filter(({ phase }) => phase === 'queued').length
  return { ...state, live: withEntry(state.live, taskId, task), active, queued: state.queued + queued }
}

/** What has begun ends; a cancel or an early stop that was under way goes on; a task whose last result was stored ends. */
function goOn(state: RolloutState, taskId: string): RolloutStep {
  const task = state.live.get(taskId)
  if (!task) return just(state)
  const orphans = task.sessions.flatMap((session, index): readonly RolloutEffect[] =>
    session.phase === 'active'
      ? [
          {
            type: 'end-orphan',
            spec: sessionSpec(task.request, task.runtime, session.sessionId, index),
            generation: task.generation,
            pair: session.pair,
            dispatchedAtMs: session.dispatchedAtMs,
            createdAtMs: task.createdAtMs,
          },
        ]
      : [],
  )
  const minimum = task.request.early_stop_min_usable_sessions
  const step = then(just(state, ...orphans), after => {
    if (task.status === 'cancelling') return giveUpQueued(after, taskId, { kind: 'cancelled' }, false)
    return minimum !== null && task.usable >= minimum ? stopEarly(after, taskId, minimum) : just(after)
  })
  return then(step, after => endIfDone(after, taskId))
}

function deliveries(state: RolloutState, outbox: ReadonlyMap<string, KeptOutbox>): readonly RolloutEffect[] {
  return [...state.ended.values()].flat().flatMap((task): readonly RolloutEffect[] => {
    // A task that ends in this very step is delivered once its end is stored.
    const kept = task.deliveryId === null ? undefined : outbox.get(task.deliveryId)
    return kept !== undefined && outboxOf(task) !== null
      ? [{ type: 'deliver', task: taskView(task), outbox: kept }]
      : []
  })
}

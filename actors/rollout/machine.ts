// Tasks as data: submit -> expand -> queue -> dispatch as stages have room -> collect -> publish. Pure.
// Must hold: each session of a task is resolved exactly once; results are in sample order; no more sessions are REGISTERED than
// stages can take; a task ends when its last session is resolved, and only then; ids of live tasks are never taken twice.

import type { SessionResult, SessionStatus } from '../../src/domain/session.js'
import { unreachable } from '../../src/domain/unreachable.js'
import type { KeptResult } from '../../src/store/control-records.js'
import type { Machine } from '../system/machine.js'
import { sessionSpec } from './expand.js'
import { cancelTask, describeTask, listTasks } from './questions.js'
import { nextTask, servedAfter } from './queue.js'
import { isUsable } from './results.js'
import {
  initialState,
  type RolloutEffect,
  type RolloutInput,
  type RolloutSettings,
  type RolloutState,
  type Substitute,
  type TaskEntry,
} from './state.js'
import { cancelActive, endIfDone, endStored, giveUpQueued, just, type RolloutStep, storeEffect, then } from './steps.js'
import { submit, taskNotStored, taskStored } from './submit.js'
import {
  nextQueued,
  sessionChanged,
  sessionProgressed,
  taskUpdated,
  withEntry,
  withoutEntry,
  withSession,
  withTask,
} from './tasks.js'

type Input<T extends RolloutInput['type']> = Extract<RolloutInput, { readonly type: T }>

/** `first`: what an earlier life has left (recover.ts). */
export const rolloutMachine = (
  settings: RolloutSettings,
  first: RolloutStep = just(initialState(settings)),
): Machine<RolloutState, RolloutInput, RolloutEffect> => ({
  initial: first,
  step,
  // Effects end by themselves; a stop of the actor cancels what is left.
  scope: () => 'open',
})

function step(state: RolloutState, message: RolloutInput): RolloutStep {
  switch (message.type) {
    case 'task-submit-requested':
      return just(state, { type: 'prepare-task', request: message.request, replyTo: message.replyTo })
    case 'task-prepared':
      return submit(state, message)
    case 'task-stored':
      return dispatch(taskStored(state, message.taskId))
    case 'task-not-stored':
      return taskNotStored(state, message.taskId, message.error)
    case 'task-end-stored':
      return endStored(state, message.taskId, message.generation)
    case 'task-requested':
      return describeTask(state, message)
    case 'tasks-requested':
      return listTasks(state, message)
    case 'task-cancel-requested':
      return then(cancelTask(state, message), after => endIfDone(after, message.taskId))
    case 'drain-rollout':
      // What waits is kept for the next start.
      return just({ ...state, draining: true })
    case 'stop-sessions':
      return just(
        state,
        ...[...state.active.keys()].map((sessionId): RolloutEffect => ({ type: 'stop-session', sessionId })),
      )
    case 'intake-set': {
      const intake = new Map(state.intake)
      if (message.error === null) intake.delete(message.pair)
      else intake.set(message.pair, message.error)
      return dispatch(just({ ...state, intake }))
    }
    case 'init-slots-free':
      return dispatch(just({ ...state, slots: message.count }))
    case 'session-dispatched':
      return onSession(state, message.sessionId, (task, index) =>
        just(withTask(state, withSession(task, index, { dispatchedAtMs: message.atMs, pair: message.pair }))),
      )
    case 'session-status-changed':
      return statusChanged(state, message.sessionId, message.status)
    case 'session-progressed':
      return onSession(state, message.sessionId, (task, index) => {
        const { calls, sampledTokens } = message
        const next = withSession(task, index, { calls, sampledTokens })
        return just(withTask(state, next), sessionProgressed(next, index))
      })
    case 'session-ended':
      return sessionEnded(state, message)
    case 'dispatch-failed':
      return resolve(state, message.sessionId, {
        kind: 'crashed',
        error: `the session could not be started: ${message.error.message}`,
      })
    case 'session-gone':
      return resolve(state, message.sessionId, {
        kind: 'crashed',
        error: `the session's actor ended without a result (${message.reason})`,
      })
    case 'result-stored':
      return resultStored(state, message)
    case 'result-found':
      return resultFound(state, message)
    case 'delivery-changed':
      return deliveryChanged(state, message)
    case 'tombstone-expired':
      return state.tombstones.get(message.taskId) === message.stone
        ? just({ ...state, tombstones: withoutEntry(state.tombstones, message.taskId) })
        : just(state)
    case 'effect-failed':
      return just(state, {
        type: 'warn',
        fields: { effect: message.effect, code: message.error.code, error: message.error.message },
      })
    default:
      return unreachable(message)
  }
}

/** The live session `sessionId`; a report of one that is not (any more) changes nothing. */
function onSession(
  state: RolloutState,
  sessionId: string,
  change: (task: TaskEntry, index: number) => RolloutStep,
): RolloutStep {
  const place = state.active.get(sessionId)
  const task = place && state.live.get(place.taskId)
  return place && task ? change(task, place.index) : just(state)
}

/** Starts sessions while stages can take them: the number that is still REGISTERED stays within the last level told. */
function dispatch(first: RolloutStep): RolloutStep {
  return then(first, before => {
    let state = before
    const effects: RolloutEffect[] = []
    let room = state.slots - [...state.active.values()].filter(place => place.registered).length
    for (; room > 0 && !state.draining && state.intake.size === 0; room -= 1) {
      const task = nextTask(state)
      const session = task?.sessions[task.next]
      if (!task || !session) break
      const index = task.next
      const taskId = task.request.task_id
      const begun = withSession(task, index, { phase: 'active', status: 'REGISTERED' })
      const next = { ...begun, next: nextQueued(begun.sessions, index + 1) }
      state = {
        ...withTask(state, next),
        active: withEntry(state.active, session.sessionId, { taskId, index, registered: true }),
        queued: state.queued - 1,
        count: state.count + 1,
        served: servedAfter(state, task),
      }
      effects.push(sessionChanged(state, next, index, 'DISPATCHING'), {
        type: 'start-session',
        spec: sessionSpec(task.request, task.runtime, session.sessionId, index),
        generation: task.generation,
      })
    }
    return { state, effects }
  })
}

function statusChanged(state: RolloutState, sessionId: string, status: SessionStatus): RolloutStep {
  // Terminal words are published with the result, once that is stored.
  if (status === 'COMPLETED' || status === 'ERROR' || status === 'TIMEOUT') return just(state)
  return onSession(state, sessionId, (task, index) => {
    const place = { taskId: task.request.task_id, index, registered: status === 'REGISTERED' }
    const next = {
      ...withTask(state, withSession(task, index, { status })),
      active: withEntry(state.active, sessionId, place),
    }
    return dispatch(just(next, sessionChanged(state, task, index, status)))
  })
}

function sessionEnded(state: RolloutState, { sessionId, result }: Input<'session-ended'>): RolloutStep {
  return dispatch(
    onSession(state, sessionId, (task, index) => {
      const cut = task.sessions[index]?.cut ?? false
      const minimum = task.request.early_stop_min_usable_sessions
      const usable = task.usable + (!cut && isUsable(result) ? 1 : 0)
      const substitute: Substitute | null = cut ? { kind: 'early-stop', minimum: minimum ?? 0, usable } : null
      const counted = { ...task, usable }
      const stored = just(
        {
          ...withTask(state, withSession(counted, index, { phase: 'storing' })),
          active: withoutEntry(state.active, sessionId),
        },
        storeEffect(counted, index, result, substitute),
      )
      const enough = minimum !== null && usable >= minimum && !task.stoppedEarly && task.status === 'running'
      return enough ? then(stored, after => stopEarly(after, task.request.task_id, minimum)) : stored
    }),
  )
}

/** A session that will give no result of its own. */
function resolve(state: RolloutState, sessionId: string, substitute: Substitute): RolloutStep {
  return dispatch(
    onSession(state, sessionId, (task, index) =>
      just(
        {
          ...withTask(state, withSession(task, index, { phase: 'storing' })),
          active: withoutEntry(state.active, sessionId),
        },
        storeEffect(task, index, null, task.sessions[index]?.cut ? earlyStop(task) : substitute),
      ),
    ),
  )
}

const earlyStop = (task: TaskEntry): Substitute => ({
  kind: 'early-stop',
  minimum: task.request.early_stop_min_usable_sessions ?? 0,
  usable: task.usable,
})

/** The group has enough usable sessions: running siblings are cancelled, waiting ones are given up (contract 4.9). */
export function stopEarly(state: RolloutState, taskId: string, minimum: number): RolloutStep {
  const task = state.live.get(taskId)
  if (!task) return just(state)
  const marked: TaskEntry = {
    ...task,
    stoppedEarly: true,
    sessions: task.sessions.map(session =>
      session.phase === 'queued' || session.phase === 'active' ? { ...session, cut: true } : session,
    ),
  }
  const reason = `minimum of ${minimum} usable sessions reached`
  return then(giveUpQueued(withTask(state, marked), taskId, earlyStop(marked), true), after =>
    just(after, ...cancelActive(marked, reason)),
  )
}

function resultFound(state: RolloutState, { sessionId, kept }: Input<'result-found'>): RolloutStep {
  return onSession(state, sessionId, (task, index) => {
    const usable = task.usable + (kept.usable ? 1 : 0)
    const found = { ...withSession(task, index, { phase: 'storing' }), usable }
    const next = { ...withTask(state, found), active: withoutEntry(state.active, sessionId) }
    return done(next, found, index, null, kept)
  })
}

function resultStored(state: RolloutState, { taskId, index, result, kept }: Input<'result-stored'>): RolloutStep {
  const task = state.live.get(taskId)
  if (task?.sessions[index]?.phase !== 'storing') return just(state)
  return done(state, task, index, result, kept)
}

function done(
  state: RolloutState,
  task: TaskEntry,
  index: number,
  result: SessionResult | null,
  kept: KeptResult,
): RolloutStep {
  const { status, calls, sampledTokens, atMs } = kept
  const next: TaskEntry = {
    ...withSession(task, index, { phase: 'done', status, result, kept, calls, sampledTokens }),
    updatedAtMs: atMs,
  }
  const told = just(withTask(state, next), sessionChanged(state, next, index, status), taskUpdated(next))
  return then(told, after => endIfDone(after, task.request.task_id))
}

function deliveryChanged(state: RolloutState, message: Input<'delivery-changed'>): RolloutStep {
  const { taskId, deliveryId, attempts, error } = message
  const generations = state.ended.get(taskId)
  if (!generations) return just(state)
  const delivery = { state: message.state, attempts, error }
  const next = generations.map(task => (task.deliveryId === deliveryId ? { ...task, delivery } : task))
  return just({ ...state, ended: new Map(state.ended).set(taskId, next) })
}

// Who may use which slot, as data. Pure. One owner per slot: a session's entry names the one place it is in, and slots are
// counted from the entries, so that a release done twice releases once and nothing can leak.
//
// Must hold after each step: INIT tasks <= init, READY <= ready, granted + running <= running, POSTRUN tasks <= postrun.
// INIT is granted only while initInFlight + ready < limits.ready + free run slots, and while POSTRUN's queue is not full.

import type { ErrorData } from '../../src/domain/errors.js'
import type { SessionId } from '../../src/domain/ids.js'
import { unreachable } from '../../src/domain/unreachable.js'
import type { Machine, Step } from '../system/machine.js'
import type { Entry, Place, StagesEffect, StagesInput, StagesLimits, StagesState, UntimedFact } from './state.js'

type StagesStep = Step<StagesState, StagesEffect>
type Input<T extends StagesInput['type']> = Extract<StagesInput, { readonly type: T }>

/** The level is told at each change and this often besides, so that no order of starts and no restart leaves rollout without it. */
const LEVEL_MS = 500

export function stagesMachine(limits: StagesLimits): Machine<StagesState, StagesInput, StagesEffect> {
  const first: StagesState = {
    limits,
    entries: new Map(),
    nextOrder: 0,
    readyHighWater: 0,
    draining: false,
    toldFree: 0,
  }
  const start = stay(first, { type: 'arm-level', afterMs: LEVEL_MS })
  return { initial: settle(start), step: (state, message) => settle(take(state, message)), scope: () => 'stages' }
}

/** Sessions in each place. READY counts only those without a run slot. */
export function countPlaces(entries: StagesState['entries']): Readonly<Record<Place, number>> {
  const counts = {
    'init-queued': 0,
    initializing: 0,
    ready: 0,
    granted: 0,
    running: 0,
    'postrun-queued': 0,
    postrun: 0,
  }
  for (const { place } of entries.values()) counts[place] += 1
  return counts
}

function take(state: StagesState, message: StagesInput): StagesStep {
  switch (message.type) {
    case 'init-requested':
      return initRequested(state, message)
    case 'init-task-ended':
      return initTaskEnded(state, message)
    case 'start-run':
      return startRun(state, message)
    case 'release-run-slot':
      return leaveFrom(state, message.sessionId, 'granted')
    case 'run-task-ended': {
      const { sessionId, result, timing } = message
      return runEnded(state, sessionId, { type: 'run-finished', result, timing })
    }
    case 'run-task-crashed':
      return runEnded(state, message.sessionId, { type: 'run-crashed', error: message.error })
    case 'postrun-requested':
      return postrunRequested(state, message)
    case 'postrun-task-ended':
      return postrunEnded(state, message.sessionId, { type: 'postrun-finished', outcome: message.outcome })
    case 'postrun-task-crashed':
      return postrunEnded(state, message.sessionId, { type: 'postrun-crashed', crash: message.crash })
    case 'cancel-stage':
      return cancelStage(state, message)
    case 'session-terminated':
      return sessionTerminated(state, message)
    case 'level-due':
      return stay(state, { type: 'tell-free', count: state.toldFree }, { type: 'arm-level', afterMs: LEVEL_MS })
    case 'drain-stages':
      return stay({ ...state, draining: true })
    case 'kill-pool-thread':
      return stay(state, { type: 'kill-thread', pool: message.pool, index: message.index })
    case 'stages-described':
      return described(state, message)
    case 'effect-failed':
      return stay(state)
    default:
      return unreachable(message)
  }
}

// What each message does to the entry it names. Grants come after, in `settle`.

function initRequested(state: StagesState, { sessionId, priority, job, session }: Input<'init-requested'>): StagesStep {
  if (state.entries.has(sessionId)) return stay(state)
  const refusal = refusalOf(state)
  if (refusal !== null) return stay(state, { type: 'tell-session', session, fact: initFailure(refusal) })
  const entry: Entry = {
    sessionId,
    session,
    place: 'init-queued',
    priority,
    order: state.nextOrder,
    cancelled: false,
    orphaned: false,
    initJob: job,
    postrunJob: null,
    runtime: null,
  }
  return stay(put({ ...state, nextOrder: state.nextOrder + 1 }, entry), { type: 'watch-session', session })
}

const refusalOf = (state: StagesState): ErrorData | null =>
  countPlaces(state.entries)['init-queued'] >= state.limits.initQueue
    ? { code: 'TASK_QUEUE_FULL', message: `the INIT queue is at its limit of ${state.limits.initQueue}` }
    : null

function initTaskEnded(state: StagesState, message: Input<'init-task-ended'>): StagesStep {
  const entry = state.entries.get(message.sessionId)
  if (entry?.place !== 'initializing') return stay(state)
  const { runtime, harnessInstallDir, timing, error, timedOut } = message
  if (entry.orphaned) return stay(remove(state, entry), ...destroyed(runtime))
  const failed = error !== null || timedOut || entry.cancelled
  const fact = {
    type: 'init-finished',
    runtime,
    harnessInstallDir,
    timing,
    error: entry.cancelled ? (error ?? cancelledError) : error,
    timedOut,
  } as const
  const next = failed ? remove(state, entry) : put(state, { ...entry, place: 'ready', runtime, initJob: null })
  return stay(next, { type: 'tell-session', session: entry.session, fact })
}

function startRun(state: StagesState, { sessionId, job }: Input<'start-run'>): StagesStep {
  const entry = state.entries.get(sessionId)
  if (entry?.place !== 'granted') return stay(state)
  const { session } = entry
  return stay(put(state, { ...entry, place: 'running' }), { type: 'run-run-task', sessionId, job, session })
}

function runEnded(state: StagesState, sessionId: SessionId, fact: UntimedFact): StagesStep {
  const entry = state.entries.get(sessionId)
  if (entry?.place !== 'running') return stay(state)
  if (entry.orphaned) return stay(remove(state, entry), ...destroyed(entry.runtime))
  return stay(remove(state, entry), { type: 'tell-session', session: entry.session, fact })
}

/** A finished session is never refused: the queue's limit acts on INIT grants. */
function postrunRequested(state: StagesState, { sessionId, job, session }: Input<'postrun-requested'>): StagesStep {
  const known = state.entries.get(sessionId)
  if (known?.place === 'postrun' || known?.place === 'postrun-queued') return stay(state)
  // Whatever else it was in has ended for the session, which would not ask otherwise: a task still going is told to stop.
  const stop = known === undefined ? [] : cancelEffects(known)
  const entry: Entry = {
    sessionId,
    session,
    place: 'postrun-queued',
    priority: job.spec.priority,
    order: state.nextOrder,
    cancelled: job.cancelled,
    orphaned: false,
    initJob: null,
    postrunJob: job,
    runtime: job.runtime,
  }
  const next = put({ ...state, nextOrder: state.nextOrder + 1 }, entry)
  return stay(next, ...stop, { type: 'watch-session', session })
}

function postrunEnded(state: StagesState, sessionId: SessionId, fact: UntimedFact): StagesStep {
  const entry = state.entries.get(sessionId)
  if (entry?.place !== 'postrun') return stay(state)
  if (entry.orphaned) return stay(remove(state, entry))
  return stay(remove(state, entry), { type: 'tell-session', session: entry.session, fact })
}

function cancelStage(state: StagesState, { sessionId, stage }: Input<'cancel-stage'>): StagesStep {
  const entry = state.entries.get(sessionId)
  if (entry === undefined || !STAGE_PLACES[stage].includes(entry.place)) return stay(state)
  switch (entry.place) {
    case 'init-queued':
      return stay(remove(state, entry), {
        type: 'tell-session',
        session: entry.session,
        fact: initFailure(cancelledError),
      })
    case 'ready':
    case 'granted':
      return stay(remove(state, entry))
    case 'initializing':
    case 'running':
    case 'postrun':
      return entry.cancelled ? stay(state) : stay(put(state, { ...entry, cancelled: true }), ...cancelEffects(entry))
    case 'postrun-queued':
      return stay(put(state, { ...entry, cancelled: true }))
    default:
      return unreachable(entry.place)
  }
}

/** `ready` is what a session says that knows of no grant yet; `running` what one says that has just answered one. */
const STAGE_PLACES: Readonly<Record<Input<'cancel-stage'>['stage'], readonly Place[]>> = {
  init: ['init-queued', 'initializing'],
  ready: ['ready', 'granted'],
  running: ['granted', 'running'],
  postrun: ['postrun-queued', 'postrun'],
}

function sessionTerminated(state: StagesState, { address }: Input<'session-terminated'>): StagesStep {
  const entry = [...state.entries.values()].find(
    ({ session }) => session.address.path === address.path && session.address.system === address.system,
  )
  if (entry === undefined) return stay(state)
  switch (entry.place) {
    case 'init-queued':
      return stay(remove(state, entry))
    case 'ready':
    case 'granted':
      return stay(remove(state, entry), ...destroyed(entry.runtime))
    case 'initializing':
    case 'running': {
      const next = put(state, { ...entry, orphaned: true, cancelled: true })
      return stay(next, ...(entry.cancelled ? [] : cancelEffects(entry)))
    }
    // POSTRUN tears down by itself.
    case 'postrun-queued':
    case 'postrun':
      return stay(put(state, { ...entry, orphaned: true }))
    default:
      return unreachable(entry.place)
  }
}

function described(state: StagesState, { replyTo }: Input<'stages-described'>): StagesStep {
  const counts = countPlaces(state.entries)
  const description = {
    type: 'stages-description',
    initQueueDepth: counts['init-queued'],
    initInflight: counts.initializing,
    readyDepth: counts.ready,
    readyHighWater: state.readyHighWater,
    runInflight: counts.granted + counts.running,
    postrunQueueDepth: counts['postrun-queued'],
    postrunInflight: counts.postrun,
  } as const
  return stay(state, { type: 'describe', replyTo, description })
}

// Grants: POSTRUN first, then run slots, then INIT, so that the end of the line is never starved by its beginning.

function settle({ state: before, effects: asked }: StagesStep): StagesStep {
  let state = before
  const effects = [...asked]
  const move = (entry: Entry, place: Place) => {
    state = put(state, { ...entry, place })
  }
  for (let entry = next(state, 'postrun-queued'); entry?.postrunJob; entry = next(state, 'postrun-queued')) {
    if (countPlaces(state.entries).postrun >= state.limits.postrun) break
    move({ ...entry, postrunJob: null }, 'postrun')
    const { sessionId, session, cancelled } = entry
    effects.push({ type: 'tell-session', session, fact: { type: 'postrun-started' } })
    const job = cancelled ? { ...entry.postrunJob, cancelled, evaluate: false } : entry.postrunJob
    effects.push({ type: 'run-postrun-task', sessionId, job, session })
  }
  for (let entry = next(state, 'ready'); entry !== null && freeRunSlots(state) > 0; entry = next(state, 'ready')) {
    move(entry, 'granted')
    effects.push({ type: 'tell-session', session: entry.session, fact: { type: 'run-slot-granted' } })
  }
  for (let entry = next(state, 'init-queued'); entry?.initJob && freeInit(state) > 0; ) {
    move(entry, 'initializing')
    effects.push({ type: 'tell-session', session: entry.session, fact: { type: 'init-started' } })
    effects.push({ type: 'run-init-task', sessionId: entry.sessionId, job: entry.initJob })
    entry = next(state, 'init-queued')
  }
  const counts = countPlaces(state.entries)
  const free = Math.max(0, freeInit(state) - counts['init-queued'])
  if (free !== state.toldFree) effects.push({ type: 'tell-free', count: free })
  return {
    state: { ...state, toldFree: free, readyHighWater: Math.max(state.readyHighWater, counts.ready) },
    effects,
  }
}

const freeRunSlots = ({ limits, entries }: StagesState): number => {
  const counts = countPlaces(entries)
  return limits.running - counts.granted - counts.running
}

/** INIT grants that could be made at once. */
function freeInit(state: StagesState): number {
  const counts = countPlaces(state.entries)
  if (state.draining || counts['postrun-queued'] >= state.limits.postrunQueue) return 0
  const ahead = state.limits.ready + freeRunSlots(state) - counts.initializing - counts.ready
  return Math.max(0, Math.min(state.limits.init - counts.initializing, ahead))
}

/** Highest priority, then first come. */
function next(state: StagesState, place: Place): Entry | null {
  let best: Entry | null = null
  for (const entry of state.entries.values()) {
    if (entry.place !== place) continue
    const better =
      best === null || entry.priority > best.priority || (entry.priority === best.priority && entry.order < best.order)
    if (better) best = entry
  }
  return best
}

/** What a session is told when this actor forgets it. */
export function lostStage({ place, runtime }: Entry, cause: ErrorData): UntimedFact {
  const error: ErrorData = { code: 'ACTOR_DEAD', message: `the stages actor was restarted: ${cause.message}` }
  if (place === 'init-queued' || place === 'initializing') return { ...initFailure(error), runtime }
  return place === 'postrun' || place === 'postrun-queued'
    ? { type: 'postrun-crashed', crash: { error, teardown: null } }
    : { type: 'run-crashed', error }
}

// Small words.

const stay = (state: StagesState, ...effects: readonly StagesEffect[]): StagesStep => ({ state, effects })
const put = (state: StagesState, entry: Entry): StagesState => ({
  ...state,
  entries: new Map(state.entries).set(entry.sessionId, entry),
})
const remove = (state: StagesState, entry: Entry): StagesState => {
  const entries = new Map(state.entries)
  entries.delete(entry.sessionId)
  return { ...state, entries }
}
const leaveFrom = (state: StagesState, sessionId: SessionId, place: Place): StagesStep => {
  const entry = state.entries.get(sessionId)
  return stay(entry?.place === place ? remove(state, entry) : state)
}
const destroyed = (runtime: Entry['runtime']): readonly StagesEffect[] =>
  runtime === null ? [] : [{ type: 'destroy-runtime', runtime }]
function cancelEffects({ sessionId, place }: Entry): readonly StagesEffect[] {
  if (place === 'initializing') return [{ type: 'cancel-task', sessionId, pool: 'init' }]
  if (place === 'running' || place === 'postrun') return [{ type: 'cancel-task', sessionId, pool: place }]
  return []
}
const cancelledError: ErrorData = { code: 'RUNTIME_FAILED', message: 'cancelled before INIT ended' }
const initFailure = (error: ErrorData): Extract<UntimedFact, { type: 'init-finished' }> => ({
  type: 'init-finished',
  runtime: null,
  harnessInstallDir: null,
  timing: {},
  error,
  timedOut: false,
})

// Keeps a group of threads alive: which to start, end and start again. Threads start in order, one after the other; when one dies the
// strategy says which others go with it. Pure: times come with the messages.

import type { ErrorData } from '../../src/domain/errors.js'
import { RolloutError } from '../../src/domain/errors.js'
import { unreachable } from '../../src/domain/unreachable.js'
import type { ThreadHostMessage, ThreadPhase, ThreadsDescription, ThreadsStarted } from '../protocol/threads.js'
import type { Machine, Step } from '../system/machine.js'
import type { ActorRef } from '../system/ref.js'
import { backoffMs } from '../system/supervision.js'

export interface HostSpec {
  /** In order of start, each by name. */
  readonly threads: readonly string[]
  /** `rest-for-one`: the threads after the one that died are ended and started again with it. */
  readonly strategy: 'one-for-one' | 'rest-for-one'
  /** Deaths allowed per `periodMs`; beyond it the host gives up (crashes), and its parent decides. */
  readonly intensity: number
  readonly periodMs: number
}

export type HostMessage = ThreadHostMessage | HostSelf

export type HostSelf =
  | { readonly type: 'thread-up'; readonly index: number; readonly life: number; readonly reply: Reply }
  /** Exactly once for each start, also when the start failed. */
  | {
      readonly type: 'thread-gone'
      readonly index: number
      readonly life: number
      readonly error: ErrorData
      readonly atMs: number
    }
  | { readonly type: 'back-off-over'; readonly round: number }
  | { readonly type: 'effect-failed'; readonly error: ErrorData }

type Reply = Readonly<Record<string, unknown>>

export type HostEffect =
  | { readonly type: 'start-thread'; readonly index: number; readonly life: number; readonly lastReply: Reply | null }
  | { readonly type: 'end-thread'; readonly index: number }
  | { readonly type: 'arm-back-off'; readonly round: number; readonly ms: number }
  /** All up again: who was restarted, in order of start. */
  | { readonly type: 'announce-restart'; readonly threads: readonly string[]; readonly error: ErrorData }
  | {
      readonly type: 'tell-started'
      readonly to: ActorRef<ThreadsStarted>
      readonly replies: ThreadsStarted['replies']
    }
  | { readonly type: 'describe'; readonly to: ActorRef<ThreadsDescription>; readonly threads: readonly ThreadState[] }

export interface ThreadState {
  readonly name: string
  readonly phase: ThreadPhase
  /** Counts starts; tells a message about this life from one about a former. */
  readonly life: number
  readonly lastReply: Reply | null
  readonly lastError: ErrorData | null
}

export interface HostState {
  readonly threads: readonly ThreadState[]
  /** Deaths within the period, oldest first. */
  readonly deathsAtMs: readonly number[]
  /** Of the back-off in progress, or of the last. */
  readonly round: number
  readonly isBackingOff: boolean
  /** Restarted, not announced yet. */
  readonly restarted: readonly string[]
  readonly askedForStart: readonly ActorRef<ThreadsStarted>[]
}

type HostStep = Step<HostState, HostEffect>

export function hostMachine(spec: HostSpec): Machine<HostState, HostMessage, HostEffect> {
  const empty: HostState = {
    threads: spec.threads.map(name => ({ name, phase: 'down', life: 0, lastReply: null, lastError: null })),
    deathsAtMs: [],
    round: 0,
    isBackingOff: false,
    restarted: [],
    askedForStart: [],
  }
  return {
    initial: startNext(empty),
    step: (state, message) => step(spec, state, message),
    scope: () => 'hosting',
  }
}

function step(spec: HostSpec, state: HostState, message: HostMessage): HostStep {
  switch (message.type) {
    case 'thread-up':
      if (!isThisLife(state, message)) return still(state)
      return startNext(withThread(state, message.index, { phase: 'up', lastReply: message.reply }))
    case 'thread-gone':
      return isThisLife(state, message) ? died(spec, state, message) : still(state)
    case 'back-off-over':
      return message.round === state.round ? startNext({ ...state, isBackingOff: false }) : still(state)
    case 'effect-failed':
      throw new RolloutError(message.error.code, `thread host: ${message.error.message}`)
    case 'threads-started-requested':
      return tellStarted({ ...state, askedForStart: [...state.askedForStart, message.replyTo] })
    case 'threads-described':
      return { state, effects: [{ type: 'describe', to: message.replyTo, threads: state.threads }] }
    case 'kill-thread': {
      const index = state.threads.findIndex(({ name, phase }) => name === message.thread && phase !== 'down')
      return { state, effects: index === -1 ? [] : [{ type: 'end-thread', index }] }
    }
    default:
      return unreachable(message)
  }
}

/** The first thread that is down is started; when none is, whoever waits is told. */
function startNext(state: HostState): HostStep {
  if (state.isBackingOff || state.threads.some(({ phase }) => phase === 'starting')) return still(state)
  const index = state.threads.findIndex(({ phase }) => phase === 'down')
  const next = state.threads[index]
  if (next === undefined) return announce(state)
  const life = next.life + 1
  return {
    state: withThread(state, index, { phase: 'starting', life }),
    effects: [{ type: 'start-thread', index, life, lastReply: next.lastReply }],
  }
}

function announce(state: HostState): HostStep {
  const { state: told, effects } = tellStarted(state)
  if (state.restarted.length === 0) return { state: told, effects }
  const threads = state.threads.map(({ name }) => name).filter(name => state.restarted.includes(name))
  const error = state.threads.find(({ name, lastError }) => name === threads[0] && lastError !== null)?.lastError
  return {
    state: { ...told, restarted: [] },
    effects: [
      ...effects,
      { type: 'announce-restart', threads, error: error ?? { code: 'ACTOR_DEAD', message: 'restarted' } },
    ],
  }
}

function tellStarted(state: HostState): HostStep {
  if (state.threads.some(({ phase }) => phase !== 'up')) return still(state)
  const replies = Object.fromEntries(state.threads.map(({ name, lastReply }) => [name, lastReply ?? {}]))
  return {
    state: { ...state, askedForStart: [] },
    effects: state.askedForStart.map(to => ({ type: 'tell-started', to, replies })),
  }
}

function died(
  spec: HostSpec,
  state: HostState,
  { index, error, atMs }: { index: number; error: ErrorData; atMs: number },
): HostStep {
  const deathsAtMs = [...state.deathsAtMs.filter(at => atMs - at < spec.periodMs), atMs]
  const name = spec.threads[index]
  if (deathsAtMs.length > spec.intensity) {
    throw new RolloutError(
      error.code,
      `thread ${name}: ${deathsAtMs.length} deaths in ${spec.periodMs} ms, last: ${error.message}`,
    )
  }
  let next = withThread(state, index, { phase: 'down', lastError: error })
  const effects: HostEffect[] = []
  const rest = spec.strategy === 'rest-for-one' ? state.threads.slice(index + 1) : []
  for (const [offset, thread] of rest.entries()) {
    if (thread.phase === 'down') continue
    const follower = index + 1 + offset
    // Down already when its own `thread-gone` comes: that is no second death.
    next = withThread(next, follower, { phase: 'down', lastError: error })
    effects.unshift({ type: 'end-thread', index: follower })
  }
  const round = state.round + 1
  // Who was never up is not restarted but started.
  const gone = [state.threads[index], ...rest].flatMap(thread => (thread?.lastReply ? [thread.name] : []))
  return {
    state: { ...next, deathsAtMs, round, isBackingOff: true, restarted: [...new Set([...state.restarted, ...gone])] },
    effects: [...effects, { type: 'arm-back-off', round, ms: backoffMs(deathsAtMs.length) }],
  }
}

const still = (state: HostState): HostStep => ({ state, effects: [] })

const isThisLife = (state: HostState, { index, life }: { index: number; life: number }): boolean =>
  state.threads[index]?.life === life && state.threads[index]?.phase !== 'down'

const withThread = (state: HostState, index: number, change: Partial<ThreadState>): HostState => ({
  ...state,
  threads: state.threads.map((thread, at) => (at === index ? { ...thread, ...change } : thread)),
})

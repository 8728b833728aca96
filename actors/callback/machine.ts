// Deliveries of results to trainers, as data. Pure.
// Must hold: one logical delivery per id, whatever happens; the same bytes at each attempt; never more than `concurrency` attempts at
// once; an undelivered result is reported with its attempts and last error, and holds up nothing else.

import type { ErrorData } from '../../src/domain/errors.js'
import { unreachable } from '../../src/domain/unreachable.js'
import type { KeptDelivery, KeptOutbox } from '../../src/store/control-records.js'
import type { CallbackMessage, DeliveriesDescription, DeliveryReport } from '../protocol/callback.js'
import type { Machine, Step } from '../system/machine.js'
import type { ActorRef } from '../system/ref.js'

export interface CallbackSettings {
  /** Attempts at once. */
  readonly concurrency: number
  /** Deliveries that have not ended; beyond it a result is reported undelivered at once (polling still serves it). */
  readonly capacity: number
  readonly expiryMs: number
  readonly firstWaitMs: number
  readonly longestWaitMs: number
}

type Deliver = Extract<CallbackMessage, { readonly type: 'deliver-result' }>

interface Delivery {
  readonly job: Deliver
  readonly phase: 'due' | 'sending' | 'waiting'
  /** As the outbox has it, or is about to. */
  readonly entry: KeptOutbox
}

export interface CallbackState {
  readonly settings: CallbackSettings
  /** In order of arrival. */
  readonly deliveries: ReadonlyMap<string, Delivery>
  readonly delivered: number
  readonly undelivered: number
}

export type AttemptOutcome =
  | { readonly kind: 'delivered' }
  /** `retryAfterMs`: what the receiver asked for. */
  | { readonly kind: 'try-again'; readonly error: string; readonly retryAfterMs: number | null }
  | { readonly kind: 'refused'; readonly error: string }

export type CallbackInput =
  | CallbackMessage
  | {
      readonly type: 'attempt-finished'
      readonly deliveryId: string
      readonly outcome: AttemptOutcome
      readonly startedAtMs: number
      readonly atMs: number
      /** 0.75 to 1.25: spreads retries. */
      readonly jitter: number
    }
  | { readonly type: 'retry-due'; readonly deliveryId: string }
  | { readonly type: 'effect-failed'; readonly effect: string; readonly error: ErrorData }

export type CallbackEffect =
  | {
      readonly type: 'post'
      readonly deliveryId: string
      readonly taskId: string
      readonly url: string
      readonly body: string
    }
  | { readonly type: 'arm-retry'; readonly deliveryId: string; readonly afterMs: number }
  | { readonly type: 'report'; readonly to: ActorRef<DeliveryReport>; readonly report: DeliveryReport }
  /** A failed attempt, for the next life: told to the store without waiting. */
  | { readonly type: 'note'; readonly entry: KeptOutbox }
  /** The delivery is over: out of the outbox first, then told. */
  | {
      readonly type: 'settle'
      readonly deliveryId: string
      readonly delivery: KeptDelivery
      readonly to: ActorRef<DeliveryReport>
      readonly report: DeliveryReport
    }
  | {
      readonly type: 'describe'
      readonly replyTo: ActorRef<DeliveriesDescription>
      readonly reply: DeliveriesDescription
    }
  | { readonly type: 'warn'; readonly fields: Readonly<Record<string, string | number>> }

type CallbackStep = Step<CallbackState, CallbackEffect>

export const callbackMachine = (settings: CallbackSettings): Machine<CallbackState, CallbackInput, CallbackEffect> => ({
  initial: { state: { settings, deliveries: new Map(), delivered: 0, undelivered: 0 }, effects: [] },
  step,
  scope: () => 'open',
})

function step(state: CallbackState, message: CallbackInput): CallbackStep {
  switch (message.type) {
    case 'deliver-result':
      return accept(state, message)
    case 'attempt-finished':
      return finished(state, message)
    case 'retry-due':
      return retry(state, message.deliveryId)
    case 'deliveries-described':
      return { state, effects: [{ type: 'describe', replyTo: message.replyTo, reply: description(state) }] }
    case 'effect-failed':
      return { state, effects: [{ type: 'warn', fields: { effect: message.effect, error: message.error.message } }] }
    default:
      return unreachable(message)
  }
}

function accept(state: CallbackState, job: Deliver): CallbackStep {
  const { entry } = job
  if (state.deliveries.has(entry.deliveryId)) return { state, effects: [] }
  if (state.deliveries.size >= state.settings.capacity) {
    // It stays in the outbox: the next start tries it.
    const error = `${state.settings.capacity} deliveries wait already`
    return {
      state: { ...state, undelivered: state.undelivered + 1 },
      effects: [
        { type: 'report', to: job.reportTo, report: reportOf(entry, 'undelivered', error) },
        { type: 'warn', fields: { taskId: entry.taskId, error } },
      ],
    }
  }
  const afterMs = entry.attempts === 0 ? 0 : Math.max(0, entry.nextAtMs - job.atMs)
  const delivery: Delivery = { job, phase: afterMs === 0 ? 'due' : 'waiting', entry }
  return start(
    { ...state, deliveries: new Map(state.deliveries).set(entry.deliveryId, delivery) },
    afterMs === 0 ? [] : [{ type: 'arm-retry', deliveryId: entry.deliveryId, afterMs }],
  )
}

/** Sends what is due, in order of arrival, as far as `concurrency` goes. */
function start(state: CallbackState, effects: readonly CallbackEffect[]): CallbackStep {
  let room =
    state.settings.concurrency - [...state.deliveries.values()].filter(({ phase }) => phase === 'sending').length
  const deliveries = new Map(state.deliveries)
  const posts: CallbackEffect[] = []
  for (const [deliveryId, delivery] of state.deliveries) {
    if (room <= 0) break
    if (delivery.phase !== 'due') continue
    room -= 1
    const { entry, job } = delivery
    const { taskId, url } = entry
    const { body } = job
    deliveries.set(deliveryId, { ...delivery, phase: 'sending', entry: { ...entry, attempts: entry.attempts + 1 } })
    posts.push({ type: 'post', deliveryId, taskId, url, body })
  }
  return { state: { ...state, deliveries }, effects: [...effects, ...posts] }
}

function finished(
  state: CallbackState,
  message: Extract<CallbackInput, { readonly type: 'attempt-finished' }>,
): CallbackStep {
  const { deliveryId, outcome, atMs } = message
  const delivery = state.deliveries.get(deliveryId)
  if (delivery?.phase !== 'sending') return { state, effects: [] }
  const { job, entry } = delivery
  if (outcome.kind === 'delivered')
    return start({ ...without(state, deliveryId), delivered: state.delivered + 1 }, [
      settle(job, entry, 'delivered', null),
    ])
  const { attempts } = entry
  const { error } = outcome
  const firstAtMs = entry.firstAtMs ?? message.startedAtMs
  const expiresAtMs = firstAtMs + state.settings.expiryMs
  const afterMs =
    outcome.kind === 'refused' ? null : waitMs(state.settings, attempts, outcome.retryAfterMs, message.jitter)
  if (afterMs === null || atMs + afterMs > expiresAtMs)
    return start({ ...without(state, deliveryId), undelivered: state.undelivered + 1 }, [
      settle(job, entry, 'undelivered', error),
      { type: 'warn', fields: { taskId: entry.taskId, deliveryId, attempts, error } },
    ])
  const next: KeptOutbox = { ...entry, error, firstAtMs, nextAtMs: atMs + afterMs, expiresAtMs }
  const deliveries = new Map(state.deliveries).set(deliveryId, { job, phase: 'waiting', entry: next })
  return start({ ...state, deliveries }, [
    { type: 'note', entry: next },
    { type: 'report', to: job.reportTo, report: reportOf(next, 'pending', error) },
    { type: 'arm-retry', deliveryId, afterMs },
  ])
}

function retry(state: CallbackState, deliveryId: string): CallbackStep {
  const delivery = state.deliveries.get(deliveryId)
  if (delivery?.phase !== 'waiting') return { state, effects: [] }
  return start({ ...state, deliveries: new Map(state.deliveries).set(deliveryId, { ...delivery, phase: 'due' }) }, [])
}

/** Doubles from `firstWaitMs` to `longestWaitMs`; the receiver may ask for longer. */
function waitMs(settings: CallbackSettings, attempts: number, askedMs: number | null, jitter: number): number {
  const doubled = Math.min(settings.firstWaitMs * 2 ** (attempts - 1), settings.longestWaitMs)
  return Math.max(Math.round(doubled * jitter), askedMs ?? 0)
}

function without(state: CallbackState, deliveryId: string): CallbackState {
  const deliveries = new Map(state.deliveries)
  deliveries.delete(deliveryId)
  return { ...state, deliveries }
}

const reportOf = (
  { taskId, deliveryId, attempts }: KeptOutbox,
  state: DeliveryReport['state'],
  error: string | null,
): DeliveryReport => ({ type: 'delivery-changed', taskId, deliveryId, state, attempts, error })

const settle = (
  { reportTo }: Deliver,
  entry: KeptOutbox,
  state: 'delivered' | 'undelivered',
  error: string | null,
): CallbackEffect => ({
  type: 'settle',
  deliveryId: entry.deliveryId,
  delivery: { state, attempts: entry.attempts, error },
  to: reportTo,
  report: reportOf(entry, state, error),
})

function description(state: CallbackState): DeliveriesDescription {
  const deliveries = [...state.deliveries.values()]
  return {
    type: 'deliveries-description',
    pending: deliveries.length,
    tried: deliveries.filter(({ phase }) => phase === 'waiting').length,
  }
}

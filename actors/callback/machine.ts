// Deliveries of results to trainers, as data. Pure.
// Must hold: one logical delivery per id, whatever happens; the same bytes at each attempt; never more than `concurrency` attempts at
// once; an undelivered result is reported with its attempts and last error, and holds up nothing else.

import type { ErrorData } from '../../src/domain/errors.js'
import { unreachable } from '../../src/domain/unreachable.js'
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
  readonly attempts: number
  readonly firstAtMs: number | null
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
  if (state.deliveries.has(job.deliveryId)) return { state, effects: [] }
  if (state.deliveries.size >= state.settings.capacity) {
    const error = `${state.settings.capacity} deliveries wait already`
    return {
      state: { ...state, undelivered: state.undelivered + 1 },
      effects: [report(job, 'undelivered', 0, error), { type: 'warn', fields: { taskId: job.taskId, error } }],
    }
  }
  const delivery: Delivery = { job, phase: 'due', attempts: 0, firstAtMs: null }
  return start({ ...state, deliveries: new Map(state.deliveries).set(job.deliveryId, delivery) }, [])
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
    const { taskId, url, body } = delivery.job
    deliveries.set(deliveryId, { ...delivery, phase: 'sending', attempts: delivery.attempts + 1 })
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
  const { job, attempts } = delivery
  if (outcome.kind === 'delivered')
    return start({ ...without(state, deliveryId), delivered: state.delivered + 1 }, [
      report(job, 'delivered', attempts, null),
    ])
  const { error } = outcome
  const firstAtMs = delivery.firstAtMs ?? message.startedAtMs
  const afterMs =
    outcome.kind === 'refused' ? null : waitMs(state.settings, attempts, outcome.retryAfterMs, message.jitter)
  if (afterMs === null || atMs + afterMs > firstAtMs + state.settings.expiryMs)
    return start({ ...without(state, deliveryId), undelivered: state.undelivered + 1 }, [
      report(job, 'undelivered', attempts, error),
      { type: 'warn', fields: { taskId: job.taskId, deliveryId, attempts, error } },
    ])
  const deliveries = new Map(state.deliveries).set(deliveryId, { ...delivery, phase: 'waiting', firstAtMs })
  return start({ ...state, deliveries }, [
    report(job, 'pending', attempts, error),
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

const report = (
  { taskId, deliveryId, reportTo }: Deliver,
  state: DeliveryReport['state'],
  attempts: number,
  error: string | null,
): CallbackEffect => ({
  type: 'report',
  to: reportTo,
  report: { type: 'delivery-changed', taskId, deliveryId, state, attempts, error },
})

function description(state: CallbackState): DeliveriesDescription {
  const deliveries = [...state.deliveries.values()]
  return {
    type: 'deliveries-description',
    pending: deliveries.length,
    tried: deliveries.filter(({ phase }) => phase === 'waiting').length,
  }
}

// Carries out deliveries: one POST per attempt with a time limit of its own, and the waits between attempts.

import { defer, EMPTY, ignoreElements, map, mergeMap, Observable, race, retry } from 'rxjs'
import { errorData, RolloutError } from '../../src/domain/errors.js'
import { unreachable } from '../../src/domain/unreachable.js'
import type { HttpClient } from '../../src/http/client.js'
import { EVENTS } from '../../src/observability/events.js'
import { failpoint } from '../../src/observability/failpoints.js'
import type { ControlStore } from '../../src/store/control-store.js'
import type { ActorContext } from '../system/behavior.js'
import type { Interpreter } from '../system/machine.js'
import type { AttemptOutcome, CallbackEffect, CallbackInput } from './machine.js'

export interface CallbackDeps {
  readonly client: HttpClient
  readonly store: Pick<ControlStore, 'putOutbox' | 'settleOutbox'>
  readonly attemptMs: number
  /** `security.callbackToken`; null = none is sent. */
  readonly token: string | null
  /** 0 to 1. */
  readonly random: () => number
}

/** Header that is the same at each attempt, so that a receiver can drop the second of two. */
export const DELIVERY_HEADER = 'x-sextant-delivery-id'
/** The contract's header for tokens between its servers. */
const TOKEN_HEADER = 'x-polar-control-token'
/** What is read of an answer's body, so that its connection can be used again. */
const MAX_ANSWER_BYTES = 64 * 1024
/** Between tries of what a store that is full or unwritable does not take. */
const SETTLE_RETRY_MS = 1_000
const TRY_AGAIN: ReadonlySet<number> = new Set([408, 425, 429])

export function callbackEffects(
  deps: CallbackDeps,
  context: ActorContext<CallbackInput>,
): Interpreter<CallbackInput, CallbackEffect> {
  const { clock, log } = context
  return effect => {
    switch (effect.type) {
      case 'post': {
        const startedAtMs = clock.now()
        const late = clock
          .timer$(deps.attemptMs)
          .pipe(map((): AttemptOutcome => again(`no answer within ${deps.attemptMs} ms`)))
        return race(
          attempt(deps, effect, () => clock.now()),
          late,
        ).pipe(
          map((outcome): CallbackInput => {
            if (outcome.kind === 'delivered') failpoint('callback.acknowledged')
            if (outcome.kind !== 'delivered')
              log.debug(EVENTS.callbackAttemptFail, { taskId: effect.taskId, reason: outcome.error })
            return {
              type: 'attempt-finished',
              deliveryId: effect.deliveryId,
              outcome,
              startedAtMs,
              atMs: clock.now(),
              jitter: 0.75 + deps.random() / 2,
            }
          }),
        )
      }
      case 'arm-retry':
        return clock
          .timer$(effect.afterMs)
          .pipe(map((): CallbackInput => ({ type: 'retry-due', deliveryId: effect.deliveryId })))
      case 'note':
        return defer(() => deps.store.putOutbox(effect.entry)).pipe(ignoreElements())
      case 'settle':
        // Until then it is delivered again after a crash, by the same id.
        return defer(() => deps.store.settleOutbox(effect.deliveryId, effect.delivery)).pipe(
          retry({ delay: () => clock.timer$(SETTLE_RETRY_MS) }),
          mergeMap(() =>
            perform(() => {
              failpoint('outbox.removed')
              effect.to.tell(effect.report)
            }),
          ),
        )
      case 'report':
        return perform(() => effect.to.tell(effect.report))
      case 'describe':
        return perform(() => effect.replyTo.tell(effect.reply))
      case 'warn':
        return perform(() => log.warn(EVENTS.callbackGiveUp, effect.fields))
      default:
        return unreachable(effect)
    }
  }
}

/** One POST. Unsubscribing breaks it off. Never errors. */
function attempt(
  { client, token }: Pick<CallbackDeps, 'client' | 'token'>,
  effect: Extract<CallbackEffect, { type: 'post' }>,
  now: () => number,
): Observable<AttemptOutcome> {
  return new Observable(subscriber => {
    const controller = new AbortController()
    const finish = (outcome: AttemptOutcome) => {
      subscriber.next(outcome)
      subscriber.complete()
    }
    post({ client, token }, effect, controller.signal, now).then(finish, cause =>
      finish(again(errorData(cause).message)),
    )
    return () => controller.abort(new RolloutError('UPSTREAM_TIMEOUT', 'the delivery was broken off'))
  })
}

async function post(
  { client, token }: Pick<CallbackDeps, 'client' | 'token'>,
  effect: Extract<CallbackEffect, { type: 'post' }>,
  signal: AbortSignal,
  now: () => number,
): Promise<AttemptOutcome> {
  failpoint('callback.attempted')
  const answer = await client.request({
    method: 'POST',
    url: effect.url,
    headers: {
      'content-type': 'application/json',
      [DELIVERY_HEADER]: effect.deliveryId,
      ...(token !== null && { [TOKEN_HEADER]: token }),
    },
    body: effect.body,
    signal,
  })
  // The status is the answer; a body that breaks off or never ends changes nothing.
  await answer.text(MAX_ANSWER_BYTES).catch(() => answer.discard())
  const { status } = answer
  if (status >= 200 && status < 300) return { kind: 'delivered' }
  const error = `the receiver answered ${status}`
  if (status >= 500 || TRY_AGAIN.has(status))
    return { ...again(error), retryAfterMs: retryAfterMs(answer.headers['retry-after'], now()) }
  return { kind: 'refused', error }
}

const again = (error: string): Extract<AttemptOutcome, { kind: 'try-again' }> => ({
  kind: 'try-again',
  error,
  retryAfterMs: null,
})

/** Seconds, or an HTTP date; null when absent or neither. */
function retryAfterMs(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null
  if (/^\d+$/.test(header.trim())) return Number(header) * 1000
  const at = Date.parse(header)
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs)
}

const perform = (work: () => void): Observable<never> =>
  defer(() => {
    work()
    return EMPTY
  })

// A time limit and a cancel in one signal, for work that may or may not listen to it.

import type { Clock } from '../../src/domain/clock.js'
import { RolloutError } from '../../src/domain/errors.js'

export type Budgeted<T> =
  | { readonly ended: 'done'; readonly value: T }
  | { readonly ended: 'timeout' }
  | { readonly ended: 'cancelled' }

/** Work that listens needs this long to end its processes (TERM, two seconds, KILL); milliseconds. */
const GRACE_MS = 5_000

/**
 * Gives `work` a signal that fires after `ms` or with `parent`; then `work` has a grace to end, so that nothing of it goes on
 * behind the caller's back. Work that does not listen goes on unheard. Rejects with what `work` rejects with before the signal.
 */
export async function withinBudget<T>(
  clock: Clock,
  ms: number,
  parent: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<Budgeted<T>> {
  const over = new AbortController()
  const settled = new AbortController()
  const stopped = new Promise<'timeout' | 'cancelled'>(resolve => {
    const stop = (ended: 'timeout' | 'cancelled', why: string) => {
      over.abort(new RolloutError('ACTOR_ASK_TIMEOUT', why))
      resolve(ended)
    }
    const onCancel = () => stop('cancelled', 'cancelled')
    if (parent.aborted) onCancel()
    parent.addEventListener('abort', onCancel, { once: true, signal: settled.signal })
    clock.sleep(Math.max(0, ms), settled.signal).then(
      () => stop('timeout', `the time limit of ${ms} ms is reached`),
      () => undefined,
    )
  })
  try {
    const done = work(over.signal).then(
      value => ({ value }),
      (cause: unknown) => ({ cause }),
    )
    const first = await Promise.race([stopped, done])
    if (typeof first === 'string') {
      await Promise.race([done, clock.sleep(GRACE_MS, settled.signal).catch(() => undefined)])
      return { ended: first }
    }
    if ('value' in first) return { ended: 'done', value: first.value }
    // Work that failed because it was stopped has not failed.
    if (over.signal.aborted) return { ended: await stopped }
    throw first.cause
  } finally {
    settled.abort()
  }
}

// A time limit and a cancel in one signal, for work that may or may not listen to it.

import type { Clock } from '../../src/domain/clock.js'
import { RolloutError } from '../../src/domain/errors.js'

export type Budgeted<T> =
  | { readonly ended: 'done'; readonly value: T }
  | { readonly ended: 'timeout' }
  | { readonly ended: 'cancelled' }

/**
 * Gives `work` a signal that fires after `ms` or with `parent`, and waits for whichever comes first: work that does not listen
 * goes on unheard. Rejects with what `work` rejects with before either. Milliseconds.
 */
export async function withinBudget<T>(
  clock: Clock,
  ms: number,
  parent: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<Budgeted<T>> {
  const over = new AbortController()
  const settled = new AbortController()
  const stopped = new Promise<Budgeted<T>>(resolve => {
    const stop = (ended: 'timeout' | 'cancelled', why: string) => {
      over.abort(new RolloutError('ACTOR_ASK_TIMEOUT', why))
      resolve({ ended })
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
    const done = work(over.signal).then((value): Budgeted<T> => ({ ended: 'done', value }))
    // Work that fails because it was stopped has not failed.
    const heard = done.catch(cause => (over.signal.aborted ? stopped : Promise.reject(cause)))
    return await Promise.race([stopped, heard])
  } finally {
    settled.abort()
  }
}

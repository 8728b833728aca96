// Time for actors. The only file that touches the platform's timers: everything else takes an ActorClock, so that a test can turn it.

import { map, Observable, type SchedulerLike, timer } from 'rxjs'
import type { ActorClock } from './behavior.js'

/** setTimeout fires at once above this many milliseconds (24.8 days); longer waits are made of several. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export function realClock(): ActorClock {
  return clockOf(Date.now, startTimer)
}

/** For marble tests: `timer$` runs on the given (virtual) scheduler. `sleep` too, but promises settle outside virtual time. */
export function schedulerClock(scheduler: SchedulerLike): ActorClock {
  return {
    ...clockOf(
      () => scheduler.now(),
      (ms, run) => {
        const armed = scheduler.schedule(run, ms)
        return () => armed.unsubscribe()
      },
    ),
    timer$: ms => timer(ms, scheduler).pipe(map(() => 0 as const)),
  }
}

/** Runs `run` once after `ms`; returns the cancellation. `run` must not throw. */
export type StartTimer = (ms: number, run: () => void) => () => void

/** A clock from its two roots. */
export function clockOf(now: () => number, start: StartTimer): ActorClock {
  return {
    now,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        const onAbort = () => {
          cancel()
          reject(signal?.reason)
        }
        const cancel = start(ms, () => {
          signal?.removeEventListener('abort', onAbort)
          resolve()
        })
        signal?.addEventListener('abort', onAbort, { once: true })
      }),
    timer$: ms =>
      new Observable(subscriber =>
        start(ms, () => {
          subscriber.next(0)
          subscriber.complete()
        }),
      ),
  }
}

/** The kernel's own timers: runs `run` once after `ms` by `clock`; returns the cancellation. `run` must not throw. */
export function after(clock: ActorClock, ms: number, run: () => void): () => void {
  const armed = clock.timer$(Math.max(0, ms)).subscribe(run)
  return () => armed.unsubscribe()
}

/** Resolves true when `work` settles within `ms`, else false; `work` itself goes on. Never rejects: a rejection of `work` counts as settled. */
export function settledWithin(clock: ActorClock, ms: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise(resolve => {
    const cancel = after(clock, ms, () => resolve(false))
    const settled = () => {
      cancel()
      resolve(true)
    }
    work.then(settled, settled)
  })
}

/** Runs `run` at the next turn of the event loop, after I/O had its chance. */
export function onNextTurn(run: () => void): void {
  setImmediate(run)
}

function startTimer(ms: number, run: () => void): () => void {
  let left = ms
  let handle: ReturnType<typeof setTimeout>
  const arm = () => {
    const part = Math.min(left, LONGEST_TIMER_MS)
    left -= part
    handle = setTimeout(() => (left > 0 ? arm() : run()), part)
  }
  arm()
  return () => clearTimeout(handle)
}

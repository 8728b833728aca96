// A clock that stands still until it is turned. Timers fire in order of their time, then of their arming; between two timers the
// event loop gets a turn, so that what a timer set off (messages, promises) happens before the next one fires.

import type { ActorClock } from './behavior.js'
import { clockOf, onNextTurn } from './clock.js'

export interface VirtualClock extends ActorClock {
  /** Turns the clock by `ms` and fires what falls due, also what is armed on the way. */
  advance(ms: number): Promise<void>
  /** Lets everything that is ready happen, without turning the clock. */
  settle(): Promise<void>
  /** Timers armed. */
  pending(): number
}

interface Timer {
  readonly at: number
  readonly run: () => void
}

/** `startMs`: what `now()` says at first, milliseconds since the epoch. */
export function virtualClock(startMs = 0): VirtualClock {
  let now = startMs
  const timers = new Set<Timer>()

  const next = (until: number): Timer | null => {
    let first: Timer | null = null
    for (const timer of timers) if (timer.at <= until && (first === null || timer.at < first.at)) first = timer
    return first
  }
  // Several turns: a port message sent in one arrives in the next, and the dispatcher spreads much work over turns.
  const settle = async () => {
    for (let turn = 0; turn < 4; turn++) await new Promise<void>(onNextTurn)
  }

  return {
    ...clockOf(
      () => now,
      (ms, run) => {
        const timer = { at: now + Math.max(0, ms), run }
        timers.add(timer)
        return () => timers.delete(timer)
      },
    ),
    settle,
    pending: () => timers.size,
    async advance(ms) {
      const until = now + ms
      await settle()
      for (let timer = next(until); timer !== null; timer = next(until)) {
        timers.delete(timer)
        now = timer.at
        timer.run()
        await settle()
      }
      now = until
    },
  }
}

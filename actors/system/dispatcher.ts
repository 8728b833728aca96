// Decides which actor of this thread goes next. Fair: an actor handles a batch, then goes to the end of the line; and kind to
// I/O: after so many batches the event loop gets a turn, also when actors answer one another through promises without end.

import { onNextTurn } from './clock.js'

/** Messages an actor may handle before the next actor's turn. */
const BATCH = 64
/** Batches per turn of the event loop. */
const BATCHES_PER_TURN = 1_024

export interface Runnable {
  /** Handles up to `limit` messages; true when more are waiting. Must not throw. */
  runBatch(limit: number): boolean
}

export interface Dispatcher {
  /** `runnable` has work. Calling again before its turn changes nothing. */
  ready(runnable: Runnable): void
}

export function createDispatcher(): Dispatcher {
  // A Set is walked in order of insertion, and what is added during the walk is visited too: a queue without duplicates.
  const line = new Set<Runnable>()
  let left = BATCHES_PER_TURN
  let runArmed = false
  let refillArmed = false

  const run = () => {
    runArmed = false
    for (const runnable of line) {
      if (left === 0) return
      left -= 1
      line.delete(runnable)
      if (runnable.runBatch(BATCH)) line.add(runnable)
    }
  }
  const refill = () => {
    refillArmed = false
    left = BATCHES_PER_TURN
    if (line.size > 0) arm()
  }
  const arm = () => {
    if (!refillArmed) {
      refillArmed = true
      onNextTurn(refill)
    }
    if (!runArmed && left > 0) {
      runArmed = true
      queueMicrotask(run)
    }
  }

  return {
    ready(runnable) {
      line.add(runnable)
      arm()
    },
  }
}

// A counted right to go on: so many holders, first come first served, with a limit on how many may wait.

import { RolloutError } from '../../src/domain/errors.js'

/** Gives the right back. Calling it twice is calling it once. */
export type Release = () => void

export class Slots {
  readonly #size: number
  readonly #maxWaiting: number
  readonly #waiting: (() => void)[] = []
  #held = 0

  constructor(size: number, maxWaiting: number) {
    this.#size = size
    this.#maxWaiting = maxWaiting
  }

  get held(): number {
    return this.#held
  }

  /** The right when one is free and nobody waits, else null. */
  take(): Release | null {
    if (this.#held >= this.#size) return null
    this.#held += 1
    return this.#release()
  }

  /** Rejects with the reason of `signal` when it aborts first, with DIALECT_RATE_LIMITED at once when too many wait already. */
  async acquire(signal: AbortSignal): Promise<Release> {
    signal.throwIfAborted()
    if (this.#held >= this.#size) {
      if (this.#waiting.length >= this.#maxWaiting) {
        throw new RolloutError('DIALECT_RATE_LIMITED', 'too many calls wait for the inference server')
      }
      await new Promise<void>((resolve, reject) => {
        const onAbort = () => {
          this.#waiting.splice(this.#waiting.indexOf(take), 1)
          reject(signal.reason)
        }
        const take = () => {
          signal.removeEventListener('abort', onAbort)
          resolve()
        }
        signal.addEventListener('abort', onAbort, { once: true })
        this.#waiting.push(take)
      })
    } else {
      this.#held += 1
    }
    return this.#release()
  }

  #release(): Release {
    let released = false
    return () => {
      if (released) return
      released = true
      // The right passes straight to the next in line, so that nobody overtakes.
      const next = this.#waiting.shift()
      if (next === undefined) this.#held -= 1
      else next()
    }
  }
}

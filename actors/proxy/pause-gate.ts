// The gate before the engines: where calls are counted, and where they wait while generation is paused. One gate in a proxy's thread;
// it outlives restarts of the actor. Must hold: each pass is given back exactly once, so that a pause always drains in the end.

import { RolloutError } from '../../src/domain/errors.js'
import type { GateState } from '../../src/domain/inference.js'
import type { Release } from './slots.js'

export interface GateCounts {
  readonly isClosed: boolean
  /** Calls that have passed and are not recorded yet. */
  readonly inflight: number
  readonly waiting: number
}

export class PauseGate {
  #state: GateState
  #inflight = 0
  readonly #waiting = new Set<() => void>()
  readonly #draining = new Set<() => void>()
  /** Aborts when the gate closes; a fresh one for each time that it is open. */
  #closing = new AbortController()

  readonly #maxWaiting: number

  constructor(state: GateState, maxWaiting: number) {
    this.#maxWaiting = maxWaiting
    this.#state = state
    if (state.isClosed) this.#closing.abort()
  }

  get isClosed(): boolean {
    return this.#state.isClosed
  }

  get policyVersion(): string | null {
    return this.#state.policyVersion
  }

  get counts(): GateCounts {
    return { isClosed: this.#state.isClosed, inflight: this.#inflight, waiting: this.#waiting.size }
  }

  /** Fires when the gate closes the next time; has fired while it is closed. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  set(state: GateState): void {
    const wasClosed = this.#state.isClosed
    this.#state = state
    if (state.isClosed === wasClosed) return
    if (state.isClosed) {
      this.#closing.abort()
      return
    }
    this.#closing = new AbortController()
    for (const settled of [...this.#waiting, ...this.#draining]) settled()
  }

  /**
   * Settles when the gate is open; at once when it is. Rejects with the reason of `signal`, and then waits no more; with
   * DIALECT_RATE_LIMITED at once when too many wait already.
   */
  async opened(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (!this.isClosed) return
    if (this.#waiting.size >= this.#maxWaiting) {
      throw new RolloutError('DIALECT_RATE_LIMITED', 'generation is paused, and too many calls wait for its end')
    }
    await new Promise<void>((resolve, reject) => {
      const open = () => {
        this.#waiting.delete(open)
        signal.removeEventListener('abort', onAbort)
        resolve()
      }
      const onAbort = () => {
        this.#waiting.delete(open)
        reject(signal.reason)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      this.#waiting.add(open)
    })
  }

  /** Counts a call in; null when the gate is closed. The release may be called more than once. */
  pass(): Release | null {
    if (this.isClosed) return null
    this.#inflight += 1
    let isOut = false
    return () => {
      if (isOut) return
      isOut = true
      this.#inflight -= 1
      if (this.#inflight === 0) for (const settled of [...this.#draining]) settled()
    }
  }

  /** Settles when no call is at an engine, or when the gate opens again before that. */
  async drained(): Promise<void> {
    if (this.#inflight === 0 || !this.isClosed) return
    await new Promise<void>(resolve => {
      const settled = () => {
        this.#draining.delete(settled)
        resolve()
      }
      this.#draining.add(settled)
    })
  }
}

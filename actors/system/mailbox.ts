// The bounded queue before an actor. First in, first out. What does not fit is handed back to the caller, never dropped in silence.

import { RolloutError } from '../../src/domain/errors.js'
import type { AnyMessage } from './ref.js'

export interface MailboxSpec {
  readonly capacity: number
  readonly overflow: 'refuse' | 'drop-oldest'
}

export class Mailbox {
  readonly spec: MailboxSpec
  /** Messages turned away, or pushed out by newer ones. */
  overflows = 0
  #items: AnyMessage[] = []
  #head = 0

  /** Throws INTERNAL_BUG when the capacity is no whole number from 1. */
  constructor(spec: MailboxSpec) {
    if (!Number.isInteger(spec.capacity) || spec.capacity < 1) {
      throw new RolloutError('INTERNAL_BUG', `mailbox capacity ${spec.capacity}: a whole number from 1 wanted`)
    }
    this.spec = spec
  }

  get size(): number {
    return this.#items.length - this.#head
  }

  /** The message that found no place: `message` itself (refuse), the oldest (drop-oldest), or null. */
  push(message: AnyMessage): AnyMessage | null {
    if (this.size < this.spec.capacity) {
      this.#items.push(message)
      return null
    }
    this.overflows += 1
    if (this.spec.overflow === 'refuse') return message
    const oldest = this.shift()
    this.#items.push(message)
    return oldest
  }

  /** Past the limit: for the kernel's own notices, whose number is bounded by the watches an actor holds. */
  pushNotice(message: AnyMessage): void {
    this.#items.push(message)
  }

  shift(): AnyMessage | null {
    const message = this.#items[this.#head]
    if (message === undefined) return null
    this.#head += 1
    if (this.#head === this.#items.length) {
      this.#items = []
      this.#head = 0
    } else if (this.#head >= 1024 && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return message
  }

  /** Empties it; what was waiting, oldest first. */
  drain(): readonly AnyMessage[] {
    const rest = this.#items.slice(this.#head)
    this.#items = []
    this.#head = 0
    return rest
  }
}

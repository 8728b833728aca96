// Answers that a harness may go on from by their id (`previous_response_id`), of one session. Each holds its own items and the id of the
// answer before it, so that a long conversation costs what it says once. Bounded: the oldest go first, and what is gone is unknown.

import type { JsonObject } from '../../src/domain/json.js'

interface StoredAnswer {
  readonly previousId: string | null
  readonly items: readonly JsonObject[]
  /** Characters of the request that brought the items. */
  readonly size: number
}

/** Characters of requests whose answers are kept per session. A harness that sends its whole history each time fills it; it never asks. */
export const STORED_CHARACTERS = 32 * 1024 * 1024

export class StoredAnswers {
  /** In order of arrival. */
  readonly #byId = new Map<string, StoredAnswer>()
  readonly #limit: number
  #size = 0

  constructor(limit: number = STORED_CHARACTERS) {
    this.#limit = limit
  }

  keep(id: string, answer: StoredAnswer): void {
    this.#size += answer.size - (this.#byId.get(id)?.size ?? 0)
    this.#byId.set(id, answer)
    for (const [oldest, { size }] of this.#byId) {
      if (this.#size <= this.#limit) break
      this.#byId.delete(oldest)
      this.#size -= size
    }
  }

  /** All items of the conversation up to and with answer `id`, oldest first; null when it, or one before it, is not kept. */
  conversation(id: string): readonly JsonObject[] | null {
    const parts: (readonly JsonObject[])[] = []
    for (let next: string | null = id; next !== null; ) {
      const answer: StoredAnswer | undefined = this.#byId.get(next)
      if (answer === undefined) return null
      parts.push(answer.items)
      next = answer.previousId
    }
    return parts.reverse().flat()
  }
}

// Public events: numbered, kept in a bounded ring for subscribers that come back, and handed to each subscriber through a bounded
// queue of its own. A slow subscriber loses the oldest events and is told how many; it holds up nobody.

import type { JsonObject } from '../domain/json.js'

export interface HubEvent {
  /** From 1, per process. */
  readonly number: number
  readonly type: string
  readonly data: JsonObject
  /** Milliseconds since the epoch. */
  readonly atMs: number
}

export interface HubOptions {
  /** Tells the events of this process from those of another in event ids. */
  readonly boot: string
  readonly ring: number
  /** Events waiting before one subscriber. */
  readonly queue: number
  readonly now: () => number
}

export interface Subscription {
  /** Takes the next event, or null when none waits. `dropped`: events lost before it, since the last take. */
  take(): { readonly event: HubEvent; readonly dropped: number } | null
  /** Resolves when an event waits, or the hub is closed. */
  ready(): Promise<void>
  readonly closed: boolean
  /** Of the events asked for by `lastEventId`, those that are no longer kept; null = not known (another process gave the id). */
  readonly missed: number | null
  close(): void
}

export class EventHub {
  readonly boot: string
  readonly #options: HubOptions
  readonly #ring: HubEvent[] = []
  readonly #subscribers = new Set<(event: HubEvent) => void>()
  readonly #closers = new Set<() => void>()
  #count = 0
  #closed = false

  constructor(options: HubOptions) {
    this.#options = options
    this.boot = options.boot
  }

  get subscribers(): number {
    return this.#closers.size
  }

  publish(type: string, data: JsonObject): void {
    this.#count += 1
    const event: HubEvent = { number: this.#count, type, data, atMs: this.#options.now() }
    this.#ring.push(event)
    if (this.#ring.length > this.#options.ring) this.#ring.shift()
    for (const deliver of this.#subscribers) deliver(event)
  }

  /** `<boot>-<number>`: what the `id:` line of an event holds. */
  idOf(event: HubEvent): string {
    return `${this.boot}-${event.number}`
  }

  /** `lastEventId` null = from now on; else everything after it that is kept. An id of another process replays all that is kept. */
  subscribe(lastEventId: string | null): Subscription {
    const replay = this.#replay(lastEventId)
    const queue: HubEvent[] = replay.events.slice(-this.#options.queue)
    let dropped = replay.events.length - queue.length
    let wake: (() => void) | null = null
    let closed = this.#closed
    const signal = () => {
      wake?.()
      wake = null
    }
    const deliver = (event: HubEvent) => {
      queue.push(event)
      if (queue.length > this.#options.queue) {
        queue.shift()
        dropped += 1
      }
      signal()
    }
    const close = () => {
      closed = true
      this.#subscribers.delete(deliver)
      this.#closers.delete(close)
      signal()
    }
    if (!closed) {
      this.#subscribers.add(deliver)
      this.#closers.add(close)
    }
    return {
      missed: replay.missed,
      get closed() {
        return closed
      },
      take() {
        const event = queue.shift()
        if (event === undefined) return null
        const taken = { event, dropped }
        dropped = 0
        return taken
      },
      ready: () =>
        queue.length > 0 || closed
          ? Promise.resolve()
          : new Promise(resolve => {
              wake = resolve
            }),
      close,
    }
  }

  /** Ends every subscription; later ones are closed from the start. */
  close(): void {
    this.#closed = true
    for (const close of [...this.#closers]) close()
  }

  #replay(lastEventId: string | null): { readonly events: readonly HubEvent[]; readonly missed: number | null } {
    if (lastEventId === null) return { events: [], missed: 0 }
    const match = /^(.*)-(\d+)$/.exec(lastEventId)
    if (match?.[1] !== this.boot) return { events: this.#ring, missed: null }
    const last = Number(match[2])
    const oldest = this.#ring[0]?.number ?? this.#count + 1
    return { events: this.#ring.filter(event => event.number > last), missed: Math.max(0, oldest - 1 - last) }
  }
}

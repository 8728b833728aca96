// The sessions a proxy serves: found by the hash of the key, with what their calls share: counters, running calls, the memory of
// turns. Keys themselves are never kept. Lives as long as the proxy's server; a session that ended stays known, so that its calls
// get 403, until it is forgotten.

import { createHash } from 'node:crypto'
import type { SessionId } from '../../src/domain/ids.js'
import type { ProxySession } from '../protocol/proxy.js'
import { Slots } from './slots.js'
import { StoredAnswers } from './stored-answers.js'
import { TurnMemory } from './turn-memory.js'

/** Why a call was cut: reason of its abort signal. */
export class CallCancelled extends Error {
  readonly reason: 'client-left' | 'session-ended' | 'proxy-stopping'

  constructor(reason: CallCancelled['reason']) {
    super(`call cancelled: ${reason}`)
    this.name = 'CallCancelled'
    this.reason = reason
  }
}

export interface RunningCall {
  readonly abort: AbortController
  /** As it came; null until it is read. */
  body: string | null
  isClientGone: boolean
  /** Settles when the call has ended and all its frames are. */
  readonly done: Promise<void>
}

export class SessionEntry {
  readonly memory = new TurnMemory()
  readonly stored = new StoredAnswers()
  readonly slots: Slots
  readonly running = new Set<RunningCall>()
  session: ProxySession
  nextSequence: number
  /** Calls that count against `max_turns`: all that were dispatched and are no side calls, less those that failed. */
  turns: number
  promptTokens: number
  sampledTokens: number
  calls = 0
  aborted = 0
  mainHasTools = false
  isLimitTold = false
  /** Calls that wait at the pause gate. While there is one, the session's budget stands still. */
  #held = 0

  constructor(session: ProxySession, inflight: number, maxWaiting: number) {
    this.session = session
    this.slots = new Slots(inflight, maxWaiting)
    this.nextSequence = session.firstSequence
    const { turns, promptTokens, sampledTokens } = session.used
    this.turns = turns
    this.promptTokens = promptTokens
    this.sampledTokens = sampledTokens
  }

  hold(atMs: number): void {
    this.#held += 1
    if (this.#held === 1) this.session.session.tell({ type: 'calls-held', atMs })
  }

  unhold(atMs: number): void {
    this.#held -= 1
    if (this.#held === 0) this.session.session.tell({ type: 'calls-released', atMs })
  }

  cancelAll(reason: CallCancelled['reason']): void {
    for (const call of this.running) call.abort.abort(new CallCancelled(reason))
  }

  /** Settles when no call is left. Calls that begin meanwhile are refused by their session's state. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await Promise.all([...this.running].map(call => call.done))
  }
}

export class SessionBook {
  readonly #byId = new Map<SessionId, SessionEntry>()
  readonly #byKeyHash = new Map<string, SessionEntry>()
  readonly #inflight: number
  readonly #maxWaiting: number
  #isStopping = false

  constructor(inflightPerSession: number, maxWaiting: number) {
    this.#inflight = inflightPerSession
    this.#maxWaiting = maxWaiting
  }

  get size(): number {
    return this.#byId.size
  }

  /** True once `stop` was called: every further call is refused. */
  get isStopping(): boolean {
    return this.#isStopping
  }

  stop(): void {
    this.#isStopping = true
    for (const entry of this.#byId.values()) entry.cancelAll('proxy-stopping')
  }

  entries(): readonly SessionEntry[] {
    return [...this.#byId.values()]
  }

  find(sessionId: SessionId): SessionEntry | null {
    return this.#byId.get(sessionId) ?? null
  }

  findByKey(key: string): SessionEntry | null {
    return this.#byKeyHash.get(createHash('sha256').update(key).digest('hex')) ?? null
  }

  /** Registers, or replaces what is known. Counters and memory of a known session go on. A new key makes the old one unknown. */
  put(session: ProxySession): void {
    const known = this.#byId.get(session.sessionId)
    const entry = known ?? new SessionEntry(session, this.#inflight, this.#maxWaiting)
    if (known !== undefined) {
      this.#byKeyHash.delete(known.session.keyHash)
      known.session = session
      known.nextSequence = Math.max(known.nextSequence, session.firstSequence)
    }
    this.#byId.set(session.sessionId, entry)
    this.#byKeyHash.set(session.keyHash, entry)
  }

  forget(sessionId: SessionId): void {
    const entry = this.#byId.get(sessionId)
    if (entry === undefined) return
    entry.cancelAll('session-ended')
    this.#byKeyHash.delete(entry.session.keyHash)
    this.#byId.delete(sessionId)
  }
}

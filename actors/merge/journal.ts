// The way of a ledger's entry into the shard of its merge thread. What cannot be written is held, in order, and tried again until it is:
// its frame stays unacknowledged, so the proxy's credit stops what comes behind, and the intake is told to pause. Bounded by that credit.

import { Observable } from 'rxjs'
import type { Clock } from '../../src/domain/clock.js'
import { type ErrorData, errorData } from '../../src/domain/errors.js'
import type { SessionId } from '../../src/domain/ids.js'
import type { LogEntry } from '../../src/ledger/log-entry.js'
import type { SessionLog } from '../../src/ledger/session-log.js'
import { EVENTS } from '../../src/observability/events.js'
import type { RecordStore } from '../../src/store/record-store.js'
import { packEntry, restoreSession } from '../../src/store/session-entries.js'
import type { Logger } from '../system/behavior.js'

export interface Journal {
  /** Resolves when the entry is on disk; null = when all is that was asked for before. Never rejects. */
  store(sessionId: SessionId, entry: LogEntry | null): Promise<void>
  /** The session's log as far as it is on disk; null = nothing is. Throws STORE_DAMAGED. */
  restore(sessionId: SessionId): SessionLog | null
  /** Its records may go when their room is wanted. */
  finish(sessionId: SessionId): Promise<void>
  /** Why nothing can be written, null when it can again. One subscriber at a time. */
  readonly intake$: Observable<ErrorData | null>
  close(): Promise<void>
}

interface Waiting {
  readonly sessionId: SessionId
  readonly index: number
  readonly bytes: Uint8Array
  readonly stored: () => void
}

const RETRY_MS = 500

export function shardJournal(records: RecordStore, clock: Clock, log: Logger): Journal {
  /** In order; the first ones are being written. */
  const waiting: Waiting[] = []
  /** Index of the next entry of each session of this life. */
  const next = new Map<SessionId, number>()
  const closing = new AbortController()
  let last: Promise<void> = Promise.resolve()
  let isBlocked = false
  let intake: ErrorData | null = null
  let subscriber: ((error: ErrorData | null) => void) | null = null

  const tell = (error: ErrorData | null) => {
    if (error === null && intake === null) return
    if (error !== null && intake === null) log.error(EVENTS.storeBlock, { error, waiting: waiting.length })
    if (error === null) log.warn(EVENTS.storeResume)
    intake = error
    subscriber?.(error)
  }

  const write = (one: Waiting): Promise<void> => records.append(one.sessionId, one.index, one.bytes)

  function written(one: Waiting): void {
    const at = waiting.indexOf(one)
    // Written twice, when it was asked for in the very turn in which an earlier one was refused.
    if (at === -1) return
    waiting.splice(at, 1)
    one.stored()
  }

  /** Makes room, then writes all that waits, until nothing does. */
  async function unblock(): Promise<void> {
    while (!closing.signal.aborted) {
      const batch = waiting.slice()
      try {
        await makeRoom(batch.reduce((sum, { bytes }) => sum + bytes.byteLength, 0))
        // One by one: there may be room for some.
        for (const one of batch) await write(one).then(() => written(one))
      } catch (cause) {
        tell(errorData(cause))
        await clock.sleep(RETRY_MS, closing.signal).catch(() => undefined)
        continue
      }
      if (waiting.length > 0) continue
      isBlocked = false
      tell(null)
      return
    }
  }

  async function makeRoom(bytes: number): Promise<void> {
    const dropped = await records.retain(clock.now(), bytes)
    if (dropped.length > 0) log.info(EVENTS.storeDrop, { sessions: dropped.length })
  }

  return {
    store(sessionId, entry) {
      if (entry === null) return last
      const index = next.get(sessionId) ?? 0
      next.set(sessionId, index + 1)
      last = new Promise<void>(stored => {
        const one: Waiting = { sessionId, index, bytes: packEntry(entry), stored }
        waiting.push(one)
        if (isBlocked) return
        write(one).then(
          () => written(one),
          () => {
            // Those behind it were refused with it, and each comes here.
            if (isBlocked) return
            isBlocked = true
            void unblock()
          },
        )
      })
      return last
    },
    restore(sessionId) {
      const restored = restoreSession(records, sessionId)
      next.set(sessionId, restored?.records ?? 0)
      return restored?.log ?? null
    },
    async finish(sessionId) {
      next.delete(sessionId)
      try {
        await records.finish(sessionId, clock.now())
        if (!isBlocked) await makeRoom(0)
      } catch (cause) {
        // It stays open in the shard: its records are kept longer than they need be.
        log.warn(EVENTS.storeFinishFail, { sessionId, cause })
      }
    },
    intake$: new Observable(observer => {
      subscriber = error => observer.next(error)
      return () => {
        subscriber = null
      }
    }),
    async close() {
      closing.abort()
      await records.close()
    },
  }
}

/** Nothing outlives the thread: for a plan without a store. */
export function memoryJournal(): Journal {
  return {
    store: () => Promise.resolve(),
    restore: () => null,
    finish: () => Promise.resolve(),
    intake$: new Observable(() => undefined),
    close: () => Promise.resolve(),
  }
}

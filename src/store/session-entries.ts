// What a shard keeps of a session: the entries of its log, packed. And the log made of them again.

import type { SessionId } from '../domain/ids.js'
import { type LogEntry, parseLogEntry } from '../ledger/log-entry.js'
import { restoreLog, type SessionLog } from '../ledger/session-log.js'
import { decode, encode } from '../wire/codec.js'
import type { RecordStore } from './record-store.js'

export const packEntry = (entry: LogEntry): Uint8Array<ArrayBuffer> => encode(entry)

/** Throws WIRE_MALFORMED. */
export const unpackEntry = (bytes: Uint8Array): LogEntry => parseLogEntry(decode(bytes))

export interface RestoredSession {
  readonly log: SessionLog
  /** How many there are: the index of the next one. */
  readonly records: number
}

/** null = the shard does not know the session. Throws STORE_DAMAGED for the first record that cannot be read: those after it build on it. */
export function restoreSession(store: Pick<RecordStore, 'read'>, sessionId: SessionId): RestoredSession | null {
  const entries: LogEntry[] = []
  for (const record of store.read(sessionId)) {
    if ('error' in record) throw record.error
    entries.push(unpackEntry(record.bytes))
  }
  return entries.length === 0 ? null : { log: restoreLog(sessionId, entries), records: entries.length }
}

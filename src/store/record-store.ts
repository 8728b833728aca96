// The records of one merge shard: each session's, in order, and a header per session that says how many there are and whether it is over.
// Its size is bounded: sessions that are over go, the one that ended first first; those that are not, never.

import { join } from 'node:path'
import { RolloutError } from '../domain/errors.js'
import type { EnvironmentUsage, StoreChange, StoredEntry, StoreEnvironment } from './base.js'
import { openEnvironment, storedSize } from './environment.js'
import { damaged } from './errors.js'
import { storeFolder } from './lock.js'
import type { Schema } from './schema.js'

export type StoredRecord =
  | { readonly index: number; readonly bytes: Uint8Array<ArrayBuffer> }
  /** STORE_DAMAGED; the message names session and record. Those after it are read all the same. */
  | { readonly index: number; readonly error: RolloutError }

export interface StoredSession {
  readonly sessionId: string
  readonly records: number
  /** What they take in the file. */
  readonly bytes: number
  /** Milliseconds since the epoch. null = it goes on, or its result is not safe yet: it is never dropped for room. */
  readonly finishedAtMs: number | null
}

export interface StoreUsage extends EnvironmentUsage {
  readonly sessions: number
  readonly finished: number
  /** What the records of all sessions take. */
  readonly recordBytes: number
  readonly maxBytes: number
}

export interface RecordStore {
  /**
   * Resolves when the record is on disk, with all that was asked for before it. `index` counts from 0 per session; one that was stored
   * before is written again as the same. Rejects with STORE_FULL, STORE_UNWRITABLE, STORE_DAMAGED; nothing asked for later is stored then.
   */
  append(sessionId: string, index: number, bytes: Uint8Array): Promise<void>
  /** In order of index, each read when it is asked for. Throws STORE_DAMAGED only when nothing at all can be read. */
  read(sessionId: string): IterableIterator<StoredRecord>
  sessions(): readonly StoredSession[]
  /** The session is over and its result safe: it stays readable until its room is wanted or its time is over. Unknown = nothing. */
  finish(sessionId: string, atMs: number): Promise<void>
  drop(sessionId: string): Promise<void>
  /** Drops finished sessions that are over the time, or whose room is wanted (for `bytes` more); says which. */
  retain(nowMs: number, bytes?: number): Promise<readonly string[]>
  usage(): StoreUsage
  close(): Promise<void>
}

export interface RecordStoreOptions {
  readonly stateDir: string
  /** From 1, like the pairs. */
  readonly shard: number
  readonly mode: 'owner' | 'reader'
  /** Bound of this shard's file. */
  readonly maxBytes: number
  /** How long a finished session stays at the most, milliseconds. */
  readonly retentionMs: number
}

const SHARD_SCHEMA: Schema = { kind: 'shard', version: 1, migrations: {} }

/** Above this share of `maxBytes` finished sessions go; the rest is for what is being written and for pages that lie scattered. */
const FULL_SHARE = 0.75
/** Keys that one commit removes. */
const DROP_CHANGES = 256
const MAKES_ROOM = { makesRoom: true }

interface Header {
  records: number
  bytes: number
  finishedAtMs: number | null
}

export const shardFolder = (stateDir: string, shard: number): string => join(storeFolder(stateDir), `shard-${shard}`)

/** Throws what `openEnvironment` throws. The owner holds the lock of its stateDir (lock.ts). */
export async function openRecordStore(options: RecordStoreOptions): Promise<RecordStore> {
  const { stateDir, shard, mode, maxBytes, retentionMs } = options
  const folder = shardFolder(stateDir, shard)
  const environment = await openEnvironment({ folder, mode, schema: SHARD_SCHEMA, maxBytes })
  if (mode === 'reader') return reader(environment, folder, maxBytes)
  const headers = readHeaders(environment)
  const { read } = reader(environment, folder, maxBytes)

  const headerChange = (sessionId: string, header: Header): StoreChange => ({
    key: ['session', sessionId],
    value: encodeHeader(header),
  })
  async function drop(sessionId: string): Promise<void> {
    const header = headers.get(sessionId)
    if (header === undefined) return
    headers.delete(sessionId)
    // From the end: a drop that is cut short leaves a session that is whole up to where its header says.
    for (let end = header.records; end > 0; end -= DROP_CHANGES) {
      const start = Math.max(0, end - DROP_CHANGES)
      const removals = Array.from({ length: end - start }, (_, at) => ({
        key: ['record', sessionId, start + at],
        value: null,
      }))
      const left: StoreChange =
        start === 0
          ? { key: ['session', sessionId], value: null }
          : headerChange(sessionId, { ...header, records: start })
      await environment.commit([...removals, left], MAKES_ROOM)
    }
    if (header.records === 0) await environment.commit([{ key: ['session', sessionId], value: null }], MAKES_ROOM)
  }

  return {
    read,
    append(sessionId, index, bytes) {
      const header = headers.get(sessionId) ?? { records: 0, bytes: 0, finishedAtMs: null }
      if (index > header.records) {
        const cause = new RolloutError(
          'INTERNAL_BUG',
          `record ${index} of session ${sessionId} comes before ${header.records}`,
        )
        return Promise.reject(cause)
      }
      if (index === header.records) {
        header.records += 1
        header.bytes += storedSize(bytes.byteLength)
        headers.set(sessionId, header)
      }
      return environment.commit([{ key: ['record', sessionId, index], value: bytes }, headerChange(sessionId, header)])
    },
    sessions: () => [...headers].map(([sessionId, header]) => ({ sessionId, ...header })),
    async finish(sessionId, atMs) {
      const header = headers.get(sessionId)
      if (header === undefined || header.finishedAtMs !== null) return
      header.finishedAtMs = atMs
      await environment.commit([headerChange(sessionId, header)], MAKES_ROOM)
    },
    drop,
    async retain(nowMs, bytes = 0) {
      // Free pages lie scattered: twice the bytes is room enough for them.
      const most = bytes === 0 ? maxBytes : Math.min(maxBytes, totalBytes(headers) - 2 * bytes)
      const dropped = toDrop(headers, nowMs - retentionMs, Math.min(most, maxBytes * FULL_SHARE))
      for (const sessionId of dropped) await drop(sessionId)
      return dropped
    },
    usage: () => usageOf(environment, headers, maxBytes),
    close: () => environment.close(),
  }
}

/** Finished sessions, oldest first: those that ended before `endMs`, and then as many as it takes to come down to `bytes`. */
function toDrop(headers: ReadonlyMap<string, Header>, endMs: number, bytes: number): readonly string[] {
  let total = totalBytes(headers)
  const finished = [...headers].flatMap(([sessionId, { finishedAtMs, bytes: size }]) =>
    finishedAtMs === null ? [] : [{ sessionId, finishedAtMs, size }],
  )
  finished.sort((a, b) => a.finishedAtMs - b.finishedAtMs)
  return finished
    .filter(({ finishedAtMs, size }) => {
      const isOver = finishedAtMs < endMs || total > bytes
      if (isOver) total -= size
      return isOver
    })
    .map(({ sessionId }) => sessionId)
}

const totalBytes = (headers: ReadonlyMap<string, Header>): number =>
  [...headers.values()].reduce((sum, { bytes }) => sum + bytes, 0)

const usageOf = (
  environment: StoreEnvironment,
  headers: ReadonlyMap<string, Header>,
  maxBytes: number,
): StoreUsage => ({
  ...environment.usage(),
  sessions: headers.size,
  finished: [...headers.values()].filter(({ finishedAtMs }) => finishedAtMs !== null).length,
  recordBytes: totalBytes(headers),
  maxBytes,
})

/** Reads what is there at each call: the owner goes on writing. */
function reader(environment: StoreEnvironment, folder: string, maxBytes: number): RecordStore {
  const refuse = () =>
    Promise.reject(new RolloutError('STORE_UNWRITABLE', `the store ${folder} was opened for reading`))
  return {
    *read(sessionId) {
      let index = 0
      for (const entry of environment.entries(['record', sessionId])) {
        const at = Number(entry.key[2])
        // What is missing in between was there: records are never removed from the middle.
        for (; index < at; index += 1) yield missing(folder, sessionId, index)
        yield recordOf(folder, sessionId, entry)
        index = at + 1
      }
      const records = headerOf(environment, sessionId)?.records ?? 0
      for (; index < records; index += 1) yield missing(folder, sessionId, index)
    },
    sessions: () => [...readHeaders(environment)].map(([sessionId, header]) => ({ sessionId, ...header })),
    usage: () => usageOf(environment, readHeaders(environment), maxBytes),
    append: refuse,
    finish: refuse,
    drop: refuse,
    retain: refuse,
    close: () => environment.close(),
  }
}

function recordOf(folder: string, sessionId: string, entry: StoredEntry): StoredRecord {
  const index = Number(entry.key[2])
  if ('value' in entry) return { index, bytes: entry.value }
  return {
    index,
    error: damaged(`record ${index} of session ${sessionId} in ${folder} is damaged`, { sessionId, index }),
  }
}

const missing = (folder: string, sessionId: string, index: number): StoredRecord => ({
  index,
  error: damaged(`record ${index} of session ${sessionId} in ${folder} is missing`, { sessionId, index }),
})

/** A session whose header is damaged is known by its records, and counts as not finished. */
function readHeaders(environment: StoreEnvironment): Map<string, Header> {
  const headers = new Map<string, Header>()
  for (const entry of environment.entries(['session'])) {
    const sessionId = String(entry.key[1])
    headers.set(sessionId, 'value' in entry ? decodeHeader(entry.value) : headerFromRecords(environment, sessionId))
  }
  return headers
}

/** null = unknown or damaged: then what is there is all that can be told. */
function headerOf(environment: StoreEnvironment, sessionId: string): Header | null {
  try {
    const bytes = environment.get(['session', sessionId])
    return bytes === null ? null : decodeHeader(bytes)
  } catch {
    return null
  }
}

function headerFromRecords(environment: StoreEnvironment, sessionId: string): Header {
  let [records, bytes] = [0, 0]
  for (const entry of environment.entries(['record', sessionId])) {
    records = Number(entry.key[2]) + 1
    if ('value' in entry) bytes += storedSize(entry.value.byteLength)
  }
  return { records, bytes, finishedAtMs: null }
}

const encodeHeader = (header: Header): Uint8Array => new TextEncoder().encode(JSON.stringify(header))

const decodeHeader = (bytes: Uint8Array): Header => JSON.parse(new TextDecoder().decode(bytes)) as Header

// One LMDB environment: the primitive under the shards of the merge threads and the control store of main. The only file that knows
// lmdb. What it adds: group commit that resolves when the bytes are on disk, a checksum on every value, the length of the file looked
// at before its pages are, a schema version with forward migration, errors by who must act.

import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { open, type RootDatabase } from 'lmdb'
import { RolloutError } from '../domain/errors.js'
import type { EnvironmentUsage, StoreChange, StoreEnvironment, StoreKey } from './base.js'
import { checkDataFile, DATA_FILE, openDataFile } from './data-file.js'
import { damaged, storeError } from './errors.js'
import { ensureSchema, type Schema } from './schema.js'
import { SEAL_BYTES, seal, unseal } from './sealed-value.js'

export interface EnvironmentOptions {
  /** Made when it is not there (0700). */
  readonly folder: string
  /** A reader may be another process; it sees what is committed and disturbs nobody. There is one owner at a time (lock.ts). */
  readonly mode: 'owner' | 'reader'
  readonly schema: Schema
  /** Bound of the data file. */
  readonly maxBytes: number
}

/** Most that one commit takes from the queue; what is larger goes alone. */
const GROUP_BYTES = 32 << 20
const GROUP_CHANGES = 1_024
const MOST_KEY_BYTES = 1_900
const PAGE_BYTES = 4_096
/** Values up to this share a page; larger ones get whole pages of their own. */
const SHARED_PAGE_BYTES = 2_000

/** Bytes that a value of `size` bytes takes in the file, its key and the tree above it aside. */
export function storedSize(size: number): number {
  const sealed = size + SEAL_BYTES
  return sealed <= SHARED_PAGE_BYTES ? sealed + 64 : Math.ceil((sealed + 24) / PAGE_BYTES) * PAGE_BYTES
}

interface Pending {
  readonly changes: readonly StoreChange[]
  readonly bytes: number
  readonly makesRoom: boolean
  readonly resolve: () => void
  readonly reject: (cause: RolloutError) => void
}

/**
 * Throws STORE_DAMAGED (cut off, or no file of ours), STORE_VERSION (newer than this program), STORE_UNWRITABLE (cannot be opened),
 * STORE_MISSING (a reader finds none).
 */
export async function openEnvironment(options: EnvironmentOptions): Promise<StoreEnvironment> {
  const { folder, mode, schema, maxBytes } = options
  const isOwner = mode === 'owner'
  if (!isOwner && !existsSync(join(folder, DATA_FILE))) {
    throw new RolloutError('STORE_MISSING', `there is no store in ${folder}`)
  }
  try {
    if (isOwner) mkdirSync(folder, { recursive: true, mode: 0o700 })
    checkDataFile(folder)
    const database = openDatabase(folder, isOwner, maxBytes)
    const environment = environmentOf(database, options)
    try {
      await ensureSchema(environment, schema, { folder, isOwner })
    } catch (cause) {
      await environment.close()
      throw cause
    }
    return environment
  } catch (cause) {
    throw storeError(cause, `be opened in ${folder}`)
  }
}

const openDatabase = (path: string, isOwner: boolean, maxBytes: number): RootDatabase<Uint8Array, StoreKeyOfLmdb> =>
  open<Uint8Array, StoreKeyOfLmdb>({
    path,
    noSubdir: false,
    encoding: 'binary',
    readOnly: !isOwner,
    // A commit is on disk when its promise resolves: one state less between put and acknowledgement.
    overlappingSync: false,
    // Address space, not memory: so large that the map seldom has to move.
    mapSize: Math.max(maxBytes * 2, 1 << 28),
  })

type StoreKeyOfLmdb = (string | number)[]

function environmentOf(
  database: RootDatabase<Uint8Array, StoreKeyOfLmdb>,
  { folder, mode, maxBytes }: EnvironmentOptions,
): StoreEnvironment {
  const file = openDataFile(folder, mode === 'owner')
  const queue: Pending[] = []
  let pendingBytes = 0
  let isWriting = false
  let writing: Promise<void> = Promise.resolve()
  let closing: Promise<void> | null = null

  const pages = () => {
    const { pageSize, lastPageNumber, entryCount, root, free } = database.getStats() as LmdbStats
    const inUse = 2 + pagesOf(root) + pagesOf(free)
    return {
      fileBytes: (lastPageNumber + 1) * pageSize,
      reusableBytes: Math.max(0, lastPageNumber + 1 - inUse) * pageSize,
      entries: entryCount,
    }
  }

  /** After this turn of the event loop, with what came in it: frames that waited while the last commit was written go together. */
  async function writeAll(): Promise<void> {
    await new Promise(setImmediate)
    while (queue.length > 0) {
      const group = takeGroup(queue)
      try {
        checkRoom(group, pages(), maxBytes, file.freeBytes())
        file.prepare(pages().fileBytes, sum(group))
        writeGroup(database, group)
        for (const one of group) one.resolve()
        pendingBytes -= sum(group)
        if (queue.length > 0) await new Promise(setImmediate)
      } catch (cause) {
        const error = storeError(cause, `write to ${folder}`)
        for (const one of [...group, ...queue.splice(0)]) one.reject(error)
        pendingBytes = 0
      }
    }
    // In the turn in which the queue was seen empty: what is asked for next starts it again.
    isWriting = false
  }

  const beforeReading = () => file.checkLength(pages().fileBytes)

  return {
    commit(changes, { makesRoom = false } = {}) {
      if (closing !== null) return Promise.reject(new RolloutError('STORE_UNWRITABLE', `the store ${folder} is closed`))
      const tooLong = changes.find(({ key }) => Buffer.byteLength(JSON.stringify(key)) > MOST_KEY_BYTES)
      if (tooLong !== undefined) {
        // lmdb would find it in the middle of a batch.
        return Promise.reject(new RolloutError('INTERNAL_BUG', `a key of the store is over ${MOST_KEY_BYTES} bytes`))
      }
      return new Promise((resolve, reject) => {
        const bytes = changes.reduce(
          (total, { value }) => total + (value === null ? 0 : storedSize(value.byteLength)),
          0,
        )
        queue.push({ changes, bytes, makesRoom, resolve, reject })
        pendingBytes += bytes
        if (isWriting) return
        isWriting = true
        writing = writeAll()
      })
    },
    get(key) {
      beforeReading()
      const sealed = database.getBinary([...key])
      if (sealed === undefined) return null
      const value = unseal(key, sealed)
      if (value === null) throw damagedAt(folder, key)
      return value
    },
    *entries(prefix) {
      beforeReading()
      for (const { key, value: sealed } of database.getRange({ start: [...prefix] })) {
        if (!beginsWith(key, prefix)) return
        const value = unseal(key, sealed)
        yield value === null ? { key, error: damagedAt(folder, key) } : { key, value }
      }
    },
    *keys(prefix) {
      beforeReading()
      for (const key of database.getKeys({ start: [...prefix] })) {
        if (!beginsWith(key, prefix)) return
        yield key
      }
    },
    usage: () => ({ ...pages(), pendingBytes }),
    close() {
      closing ??= (async () => {
        await writing
        await database.close()
        file.close()
      })()
      return closing
    },
  }
}

/** What lmdb's `getStats` gives; its types say `{}`. */
interface LmdbStats {
  readonly pageSize: number
  readonly lastPageNumber: number
  readonly entryCount: number
  readonly root: TreeStats
  readonly free: TreeStats
}

interface TreeStats {
  readonly treeBranchPageCount: number
  readonly treeLeafPageCount: number
  readonly overflowPages: number
}

const pagesOf = (tree: TreeStats): number => tree.treeBranchPageCount + tree.treeLeafPageCount + tree.overflowPages

const sum = (group: readonly Pending[]): number => group.reduce((total, { bytes }) => total + bytes, 0)

function takeGroup(queue: Pending[]): readonly Pending[] {
  let bytes = 0
  let changes = 0
  let length = 0
  for (const one of queue) {
    bytes += one.bytes
    changes += one.changes.length
    if (length > 0 && (bytes > GROUP_BYTES || changes > GROUP_CHANGES)) break
    length += 1
  }
  return queue.splice(0, length)
}

/** Throws STORE_FULL for what has no room, before lmdb tries: it would say so on stderr too, and not always by the same code. */
function checkRoom(
  group: readonly Pending[],
  { fileBytes, reusableBytes }: Pick<EnvironmentUsage, 'fileBytes' | 'reusableBytes'>,
  maxBytes: number,
  diskBytes: number,
): void {
  const bytes = sum(group.filter(({ makesRoom }) => !makesRoom))
  if (bytes === 0) return
  // Free pages lie scattered, and a large value wants them in a row: half of them count.
  const growth = Math.max(0, bytes - reusableBytes / 2)
  if (fileBytes + growth > maxBytes && growth > 0) {
    throw new RolloutError(
      'STORE_FULL',
      `the store has no room for ${bytes} bytes: store.maxBytes allows ${maxBytes} here`,
      {
        details: { bytes, fileBytes, reusableBytes, maxBytes },
      },
    )
  }
  // Pages that the last commits let go of are not free yet: a few are no room.
  const margin = MARGIN_PAGES * PAGE_BYTES
  if (growth + margin > diskBytes && reusableBytes < 2 * bytes + margin) {
    throw new RolloutError('STORE_FULL', `the store has no room for ${bytes} bytes: the disk has ${diskBytes} left`, {
      details: { bytes, diskBytes },
    })
  }
}

/** Pages of the tree that a commit rewrites beside its values. */
const MARGIN_PAGES = 16

/**
 * One transaction, on disk when this returns. It holds up its thread for one flush, on purpose: lmdb's background writer never lets go of
 * a thread that ends while it writes, and the whole process then hangs.
 */
function writeGroup(database: RootDatabase<Uint8Array, StoreKeyOfLmdb>, group: readonly Pending[]): void {
  const sealed = group.flatMap(({ changes }) =>
    changes.map(({ key, value }) => ({ key: [...key], value: value && seal(key, value) })),
  )
  database.transactionSync(() => {
    for (const { key, value } of sealed) {
      // Within a transaction both are done when they return.
      if (value === null) void database.remove(key)
      else void database.put(key, value)
    }
  })
}

const beginsWith = (key: StoreKey, prefix: StoreKey): boolean =>
  Array.isArray(key) && prefix.every((part, index) => key[index] === part)

const damagedAt = (folder: string, key: StoreKey): RolloutError =>
  damaged(`the store ${folder} holds damaged bytes under ${key.join(' ')}`, { key })

// The file of an environment as the file system sees it. LMDB maps it into memory and trusts its last page number: reading a page that a
// cut-off file no longer has ends the whole process with SIGBUS. So the length is looked at before any page is. That a file is never
// short without harm is our own doing: it is kept longer than any page in use (LMDB leaves freed pages at its end unwritten).

import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  statfsSync,
} from 'node:fs'
import { join } from 'node:path'
import { damaged } from './errors.js'

/** LMDB's names. */
export const DATA_FILE = 'data.mdb'

const MAGIC = 0xbeefc0de
const DATA_VERSION = 2
const PAGE_HEADER = 24
/** Offsets in a meta page, after its header. */
const META = { magic: 0, version: 4, pageSize: 24, lastPage: 120, transaction: 128, end: 136 }
/** The file is lengthened in steps of this. Holes take no room on the disk. */
const STEP_BYTES = 16 << 20
/** What a commit may allocate beyond its own values: pages of the tree and of the list of free pages. */
const MARGIN_BYTES = 4 << 20

/** null = there is none yet. Throws STORE_DAMAGED when it is no file of ours, or shorter than what it holds. */
export function checkDataFile(folder: string): { readonly usedBytes: number } | null {
  const path = join(folder, DATA_FILE)
  if (!existsSync(path)) return null
  const file = openSync(path, 'r')
  try {
    const size = fstatSync(file).size
    // Made and not written: a service that died in its first instant.
    if (size === 0) return null
    const usedBytes = usedBytesOf(file, path)
    checkLength(path, size, usedBytes)
    return { usedBytes }
  } finally {
    closeSync(file)
  }
}

function usedBytesOf(file: number, path: string): number {
  const first = metaAt(file, 0)
  const second = first === null ? null : metaAt(file, first.pageSize)
  const newest = first !== null && second !== null && second.transaction > first.transaction ? second : first
  if (newest === null || second === null) throw damaged(`${path} is no data file of this store, or its head is gone`)
  return (newest.lastPage + 1) * newest.pageSize
}

interface Meta {
  readonly pageSize: number
  readonly lastPage: number
  readonly transaction: bigint
}

function metaAt(file: number, offset: number): Meta | null {
  const bytes = Buffer.alloc(META.end)
  if (readSync(file, bytes, 0, META.end, offset + PAGE_HEADER) !== META.end) return null
  if (bytes.readUInt32LE(META.magic) !== MAGIC || bytes.readUInt32LE(META.version) !== DATA_VERSION) return null
  const pageSize = bytes.readUInt32LE(META.pageSize)
  if (pageSize < 512 || pageSize > 65_536) return null
  return {
    pageSize,
    lastPage: Number(bytes.readBigUInt64LE(META.lastPage)),
    transaction: bytes.readBigUInt64LE(META.transaction),
  }
}

function checkLength(path: string, size: number, usedBytes: number): void {
  if (size >= usedBytes) return
  throw damaged(`${path} is cut off: it has ${size} bytes and its pages end at ${usedBytes}; nothing of it was read`, {
    path,
    size,
    usedBytes,
  })
}

/** An open data file: what must hold before its pages are read or written. */
export interface DataFile {
  /** Throws STORE_DAMAGED when the file ends before `usedBytes`. */
  checkLength(usedBytes: number): void
  /** Makes the file longer than what a commit of `bytes` can reach. Throws what the file system answers, also for a read-only one. */
  prepare(usedBytes: number, bytes: number): void
  /** Bytes that the file system still has for us. */
  freeBytes(): number
  close(): void
}

export function openDataFile(folder: string, isWritable: boolean): DataFile {
  const path = join(folder, DATA_FILE)
  const file = openSync(path, isWritable ? 'r+' : 'r')
  return {
    checkLength: usedBytes => checkLength(path, fstatSync(file).size, usedBytes),
    prepare(usedBytes, bytes) {
      // A file system that became read-only still lets old descriptors stand.
      accessSync(path, constants.W_OK)
      const { size } = fstatSync(file)
      checkLength(path, size, usedBytes)
      const wanted = usedBytes + 2 * bytes + MARGIN_BYTES
      if (size < wanted) ftruncateSync(file, Math.ceil(wanted / STEP_BYTES) * STEP_BYTES)
    },
    freeBytes() {
      const { bavail, bsize } = statfsSync(folder)
      return bavail * bsize
    },
    close: () => closeSync(file),
  }
}

// What the stores are made of, as types: keys, changes, entries, and the environment that holds them.

import type { RolloutError } from '../domain/errors.js'

/** Ordered part by part: numbers before strings. At most 1,900 bytes. */
export type StoreKey = readonly (string | number)[]

/** `value` null = removed, if it is there. */
export interface StoreChange {
  readonly key: StoreKey
  readonly value: Uint8Array | null
}

export type StoredEntry =
  | { readonly key: StoreKey; readonly value: Uint8Array<ArrayBuffer> }
  /** STORE_DAMAGED: what lies there is not what was written. */
  | { readonly key: StoreKey; readonly error: RolloutError }

export interface EnvironmentUsage {
  /** Up to the last page in use. The file itself is longer: its end is a hole. */
  readonly fileBytes: number
  /** Of them, in pages that are free to be used again. */
  readonly reusableBytes: number
  readonly entries: number
  /** Asked for and not on disk yet. */
  readonly pendingBytes: number
}

export interface CommitOptions {
  /** It lets go of something or prepares that: it may go over `maxBytes` by the pages it rewrites. */
  readonly makesRoom?: boolean
}

export interface StoreEnvironment {
  /**
   * All changes or none, together with whatever else was asked for meanwhile. Resolves when they are on disk. Rejects with STORE_FULL,
   * STORE_UNWRITABLE or STORE_DAMAGED, and with it all that waited behind: nothing later is on disk when something earlier is not.
   */
  commit(changes: readonly StoreChange[], options?: CommitOptions): Promise<void>
  /** null = there is none. Throws STORE_DAMAGED. */
  get(key: StoreKey): Uint8Array<ArrayBuffer> | null
  /** Entries whose key begins with `prefix`, in order of their keys. A damaged one is told and the next is read. */
  entries(prefix: StoreKey): IterableIterator<StoredEntry>
  keys(prefix: StoreKey): IterableIterator<StoreKey>
  usage(): EnvironmentUsage
  /** Waits for what was asked for. Idempotent. */
  close(): Promise<void>
}

// A value as it lies on disk: 8 bytes of checksum, then the bytes. The checksum covers the key too, so that a value found under a key
// it was not written under is no value. LMDB has none of its own: a flipped byte would come back as data.

import { createHash } from 'node:crypto'
import type { StoreKey } from './base.js'

/** Bytes before the content. */
export const SEAL_BYTES = 8

function checksum(key: StoreKey, content: Uint8Array): Buffer {
  return createHash('sha256').update(JSON.stringify(key)).update(content).digest().subarray(0, SEAL_BYTES)
}

export function seal(key: StoreKey, content: Uint8Array): Uint8Array {
  const sealed = new Uint8Array(SEAL_BYTES + content.byteLength)
  sealed.set(checksum(key, content))
  sealed.set(content, SEAL_BYTES)
  return sealed
}

/** The content, in memory of its own; null = not what was written under `key`. */
export function unseal(key: StoreKey, sealed: Uint8Array): Uint8Array<ArrayBuffer> | null {
  if (sealed.byteLength < SEAL_BYTES) return null
  const content = sealed.slice(SEAL_BYTES)
  return checksum(key, content).equals(sealed.subarray(0, SEAL_BYTES)) ? (content as Uint8Array<ArrayBuffer>) : null
}

// What lmdb and the file system answer, as our own errors: told apart by who must do what (make room, mount it writable, replace it).

import { RolloutError } from '../domain/errors.js'

/** errno values and codes of "there is no room": ENOSPC, EDQUOT, EFBIG. */
const NO_ROOM: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 28, 122, 27])

/** lmdb's own codes of a file that is not as its pages say: MDB_PAGE_NOTFOUND, MDB_CORRUPTED, MDB_VERSION_MISMATCH, MDB_INVALID. */
const DAMAGED: ReadonlySet<unknown> = new Set([-30797, -30796, -30794, -30793])

/** `doing` says what was tried, like "write to /x". */
export function storeError(cause: unknown, doing: string): RolloutError {
  if (cause instanceof RolloutError) return cause
  const { code, message } = cause as { readonly code?: unknown; readonly message?: unknown }
  const text = `the store cannot ${doing}: ${String(message ?? cause)}`
  if (NO_ROOM.has(code)) return new RolloutError('STORE_FULL', text, { cause })
  if (DAMAGED.has(code)) return new RolloutError('STORE_DAMAGED', text, { cause })
  return new RolloutError('STORE_UNWRITABLE', text, { cause })
}

export const damaged = (message: string, details: Readonly<Record<string, unknown>> = {}): RolloutError =>
  new RolloutError('STORE_DAMAGED', message, { details })

// MessagePack, the only place that knows the library. Typed arrays survive as such. A packed buffer is a view into a pool that the
// library goes on using: what leaves here is a copy with a backing store of its own, safe to transfer.

import { Packr } from 'msgpackr'
import { RolloutError } from '../domain/errors.js'

const packr = new Packr({ useRecords: false, moreTypes: true, int64AsType: 'number' })

/** Bytes of plain data (JSON values, undefined, typed arrays). The result owns its ArrayBuffer: transfer it. */
export const encode = (value: unknown): Uint8Array<ArrayBuffer> => Uint8Array.from(packr.pack(value))

/** Throws RolloutError WIRE_MALFORMED. Typed arrays in the result own their memory. */
export function decode(bytes: Uint8Array): unknown {
  try {
    return packr.unpack(bytes)
  } catch (cause) {
    throw new RolloutError('WIRE_MALFORMED', `malformed frame: ${bytes.byteLength} bytes that are no MessagePack`, {
      details: { frameId: null },
      cause,
    })
  }
}

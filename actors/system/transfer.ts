// Marks a message whose typed arrays change owner when it goes to another thread, instead of being copied. Within a thread the
// mark changes nothing. After a send across threads the sender's arrays are empty: it must not use them any more.

import type { AnyMessage } from './ref.js'

const marked = new WeakSet<object>()

/**
 * Marks `message` and returns it: `ref.tell(transferTypedArrays({ type: 'ledger-sealed', ledger }))`. Works for tell, ask and
 * replies. Only arrays that own their whole buffer are moved; a view on a part of a buffer is copied.
 */
export function transferTypedArrays<M extends AnyMessage>(message: M): M {
  marked.add(message)
  return message
}

export const isTransferred = (message: object): boolean => marked.has(message)

export function copyTransferMark<M extends AnyMessage>(from: AnyMessage, to: M): M {
  return marked.has(from) ? transferTypedArrays(to) : to
}

/** The buffers of all typed arrays anywhere in `value` that own their whole buffer, each once. */
export function ownedBuffers(value: unknown, found = new Set<ArrayBuffer>()): Set<ArrayBuffer> {
  if (typeof value !== 'object' || value === null) return found
  if (ArrayBuffer.isView(value)) {
    const { buffer, byteOffset, byteLength } = value
    if (buffer instanceof ArrayBuffer && byteOffset === 0 && byteLength === buffer.byteLength) found.add(buffer)
  } else if (value instanceof ArrayBuffer) found.add(value)
  else for (const part of Object.values(value)) ownedBuffers(part, found)
  return found
}

// Memory for the many short arrays of a session log: a buffer of its own costs each of them a few hundred bytes. What is kept here is a
// view on a common chunk; whoever takes the chunks to another thread takes all of them.

export interface Arena {
  /** Each owns its whole buffer. */
  readonly chunks: readonly Int32Array[]
  /** A copy of `values` that lives as long as the arena. */
  keep<T extends Int32Array | Float32Array>(values: T): T
}

/** Bytes. An eighth of what is taken already is taken at once, or this, so that little stays unused. */
const MOST_AT_ONCE = 2 ** 16

export function arena(): Arena {
  const chunks: Int32Array[] = []
  let buffer = new ArrayBuffer(0)
  let used = 0
  let taken = 0
  return {
    chunks,
    keep<T extends Int32Array | Float32Array>(values: T): T {
      const { byteLength, length } = values
      if (byteLength > buffer.byteLength - used) {
        const size = Math.max(byteLength, 4 * Math.min(MOST_AT_ONCE / 4, taken >> 5))
        buffer = new ArrayBuffer(size)
        used = 0
        taken += size
        chunks.push(new Int32Array(buffer))
      }
      const kept =
        values instanceof Int32Array ? new Int32Array(buffer, used, length) : new Float32Array(buffer, used, length)
      kept.set(values)
      used += byteLength
      return kept as T // of the same class as `values`
    },
  }
}

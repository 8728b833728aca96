// Rolling hash and comparison of token ids. A hash only proposes: every hit is verified against the ids, so that a
// collision can cost time but never merges anything.

/** State of a rolling hash: two 32-bit lanes. Start with `0, 0`; feed ids in order. */
export interface RollingHash {
  a: number
  b: number
}

export const startHash = (): RollingHash => ({ a: 0x811c9dc5 | 0, b: 0x9e3779b1 | 0 })

/** Feeds `ids[from, to)` into `state` in place. O(to - from). */
export function feed(state: RollingHash, ids: Int32Array, from: number, to: number): void {
  let { a, b } = state
  for (let i = from; i < to; i++) {
    const id = (ids[i] ?? 0) + 1
    a = Math.imul(a ^ id, 0x01000193)
    b = (Math.imul(b, 0x5bd1e995) + id) | 0
  }
  state.a = a
  state.b = b
}

/** Key of the ids fed so far: an integer below 2^53. */
export const hashKey = (state: RollingHash): number => (state.a >>> 0) * 0x200000 + ((state.b >>> 0) & 0x1fffff)

export function hashOf(ids: Int32Array): number {
  const state = startHash()
  feed(state, ids, 0, ids.length)
  return hashKey(state)
}

/** True when `ids[at, at + part.length)` equals `part`. Views of the same memory are equal without looking. */
export function hasAt(ids: Int32Array, part: Int32Array, at: number): boolean {
  if (at + part.length > ids.length) return false
  if (ids.buffer === part.buffer && ids.byteOffset + at * 4 === part.byteOffset) return true
  for (let i = 0; i < part.length; i++) if (ids[at + i] !== part[i]) return false
  return true
}

export const sameIds = (left: Int32Array, right: Int32Array): boolean =>
  left.length === right.length && hasAt(left, right, 0)

/** Length of the longest common prefix of `left` and `right`. */
export function commonPrefix(left: Int32Array, right: Int32Array): number {
  const limit = Math.min(left.length, right.length)
  let i = 0
  while (i < limit && left[i] === right[i]) i++
  return i
}

/** How many ids differ between two runs once their common head and tail are taken off. */
export function differingIds(left: Int32Array, right: Int32Array): number {
  const head = commonPrefix(left, right)
  const limit = Math.min(left.length, right.length) - head
  let tail = 0
  while (tail < limit && left[left.length - 1 - tail] === right[right.length - 1 - tail]) tail++
  return Math.max(left.length, right.length) - head - tail
}

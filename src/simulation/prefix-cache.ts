// What a prefix cache would have held: prompts in blocks of 16 ids, as vLLM keeps them. Only counted, nothing is cached.

const BLOCK = 16
/** Blocks remembered: 3.2 M ids. */
const CAPACITY = 200_000

export interface PrefixCache {
  /** How many of `ids`, from the start, were seen before; then remembers all full blocks. At least the last id is always new. */
  visit(ids: Int32Array): number
}

export function prefixCache(): PrefixCache {
  const blocks = new Set<number>()
  return {
    visit: ids => {
      let cached = 0
      let unbroken = true
      let low = 0x811c9dc5
      let high = 0x9e3779b9
      for (let end = BLOCK; end <= ids.length; end += BLOCK) {
        for (const id of ids.subarray(end - BLOCK, end)) {
          low = Math.imul(low ^ id, 0x01000193)
          high = Math.imul(high ^ id, 0x85ebca6b) ^ (high >>> 15)
        }
        const key = (low >>> 0) * 2 ** 21 + (high >>> 11)
        unbroken &&= blocks.delete(key) && end < ids.length
        if (unbroken) cached = end
        blocks.add(key)
      }
      for (const oldest of blocks) {
        if (blocks.size <= CAPACITY) break
        blocks.delete(oldest)
      }
      return cached
    },
  }
}

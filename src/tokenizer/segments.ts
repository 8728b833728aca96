// Encoding with memory. Added tokens (`<|im_end|>`, `<think>` ...) are hard boundaries: what lies between two of them is encoded
// without a look at its neighbours. So a text is cut there and each piece's ids are kept, which is exact and makes a long
// prompt that grows turn by turn cost only its new end.

import { createHash } from 'node:crypto'

/** Pieces below this many characters are cheaper to encode than to look up. */
const WORTH_KEEPING = 48

export interface AddedToken {
  readonly id: number
  readonly content: string
}

export interface SegmentEncoder {
  /** Ids of `text`; added tokens in it become their own id. The caller owns the array. */
  encode(text: string): Int32Array
}

/**
 * `encodePlain` encodes text that holds no added token. `budgetTokens`: how many ids the cache may hold (4 bytes each, keys
 * apart); the least recently used piece goes first.
 */
export function segmentEncoder(
  added: readonly AddedToken[],
  encodePlain: (text: string) => readonly number[],
  budgetTokens: number,
): SegmentEncoder {
  const idOf = new Map(added.map(token => [token.content, token.id]))
  const splitter = added.length === 0 ? null : new RegExp(`(${alternatives(added.map(token => token.content))})`)
  const cache = new Map<string, Int32Array>()
  let held = 0

  const encodePiece = (piece: string): Int32Array => {
    if (piece.length < WORTH_KEEPING) return Int32Array.from(encodePlain(piece))
    // A digest, not the piece: a slice used as a key would keep the whole prompt it was cut from alive.
    const key = createHash('sha256').update(piece, 'utf16le').digest('base64')
    const known = cache.get(key)
    if (known) {
      cache.delete(key)
      cache.set(key, known)
      return known
    }
    const ids = Int32Array.from(encodePlain(piece))
    if (ids.length <= budgetTokens) {
      cache.set(key, ids)
      held += ids.length
    }
    for (const [oldest, oldestIds] of cache) {
      if (held <= budgetTokens) break
      cache.delete(oldest)
      held -= oldestIds.length
    }
    return ids
  }

  return {
    encode: text => {
      const parts: Int32Array[] = []
      for (const piece of splitter ? text.split(splitter) : [text]) {
        if (piece === '') continue
        const id = idOf.get(piece)
        parts.push(id === undefined ? encodePiece(piece) : Int32Array.of(id))
      }
      return concatenate(parts)
    },
  }
}

/** The arrays behind one another, in an array of its own. */
export function concatenate(parts: readonly Int32Array[]): Int32Array {
  let length = 0
  for (const part of parts) length += part.length
  const all = new Int32Array(length)
  let offset = 0
  for (const part of parts) {
    all.set(part, offset)
    offset += part.length
  }
  return all
}

/** A regular expression's alternatives, the longest first, so that the longest match wins as it does in the library. */
const alternatives = (words: readonly string[]): string =>
  [...words]
    .sort((a, b) => b.length - a.length)
    .map(word => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('|')

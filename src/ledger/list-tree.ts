// Messages and tools of one session by content, and its lists of them with every shared start stored once. A call repeats the list of
// an earlier one and adds to it: finding it compares item by item down a tree; what is beyond is looked up by content.

import type { SharedLists } from '../domain/completion.js'
import { RolloutError } from '../domain/errors.js'
import type { Json, JsonObject } from '../domain/json.js'
import { isSame } from './difference.js'

/** An item: the index of its content, or, where it is said first, itself. */
export type ItemReference = number | JsonObject

export interface ListTree {
  /** The longest known list that `items` begins with. */
  find(items: readonly JsonObject[]): { readonly list: number; readonly length: number }
  /** Index of an equal content, or -1. */
  indexOf(content: JsonObject): number
  /** The content of a reference; one that is said first gets the next index. */
  take(reference: ItemReference): { readonly index: number; readonly content: JsonObject }
  /** The list `list` and the content `index` behind it. Returns its number. */
  grow(list: number, index: number): number
  /** What a reader needs. Copies the numbers, shares the contents. */
  shared(): SharedLists
}

export function listTree(): ListTree {
  const parents: number[] = [-1]
  const last: number[] = [-1]
  const firstChild: number[] = [-1]
  const nextSibling: number[] = [-1]
  const contents: JsonObject[] = []
  const byFingerprint = new Map<number, number[]>()

  const childOf = (list: number, item: JsonObject): number => {
    let child = firstChild[list] ?? -1
    while (child >= 0 && !isSame(contents[last[child] ?? -1], item)) child = nextSibling[child] ?? -1
    return child
  }
  return {
    find(items) {
      let list = 0
      let length = 0
      for (const item of items) {
        const child = childOf(list, item)
        if (child < 0) break
        list = child
        length++
      }
      return { list, length }
    },
    indexOf: content =>
      byFingerprint.get(fingerprintOf(content))?.find(index => isSame(contents[index], content)) ?? -1,
    take(reference) {
      if (typeof reference === 'number') {
        const content = contents[reference]
        if (!content) throw new RolloutError('INTERNAL_BUG', `the session has no item ${reference}`)
        return { index: reference, content }
      }
      const index = contents.push(reference) - 1
      const key = fingerprintOf(reference)
      const others = byFingerprint.get(key)
      if (others) others.push(index)
      else byFingerprint.set(key, [index])
      return { index, content: reference }
    },
    grow(list, index) {
      if (parents[list] === undefined) throw new RolloutError('INTERNAL_BUG', `the session has no list ${list}`)
      const number = parents.push(list) - 1
      last.push(index)
      nextSibling.push(firstChild[list] ?? -1)
      firstChild.push(-1)
      firstChild[list] = number
      return number
    },
    shared: () => ({ parents: Int32Array.from(parents), last: Int32Array.from(last), contents: contents.slice() }),
  }
}

/** The items of a list, put together. */
export function itemsOfList({ parents, last, contents }: SharedLists, list: number): readonly JsonObject[] {
  const items: JsonObject[] = []
  for (let at = list; at > 0; at = parents[at] ?? 0) {
    const content = contents[last[at] ?? -1]
    if (!content) throw new RolloutError('INTERNAL_BUG', `list ${list} leaves its tree`)
    items.push(content)
  }
  return items.reverse()
}

const SAMPLES = 64

/** A number that equal contents (with keys in the same order) share and others seldom do. */
function fingerprintOf(content: Json): number {
  const text = JSON.stringify(content)
  const step = Math.max(1, Math.floor(text.length / SAMPLES))
  let hash = text.length
  for (let at = 0; at < text.length; at += step) hash = (Math.imul(hash, 0x01000193) ^ text.charCodeAt(at)) | 0
  return hash
}

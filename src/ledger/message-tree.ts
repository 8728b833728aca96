// Messages of one session by content, and its lists of messages with every shared start stored once. A call repeats the list of
// an earlier one and adds to it: finding it compares message by message down a tree; what is beyond is looked up by content.

import type { SharedMessages } from '../domain/completion.js'
import { RolloutError } from '../domain/errors.js'
import type { Json, JsonObject } from '../domain/json.js'
import { isSame } from './difference.js'

/** A message: the index of its content, or, where it is said first, itself. */
export type MessageReference = number | JsonObject

export interface MessageTree {
  /** The longest known list that `messages` begins with. */
  find(messages: readonly JsonObject[]): { readonly list: number; readonly length: number }
  /** Index of an equal content, or -1. */
  indexOf(content: JsonObject): number
  /** The content of a reference; one that is said first gets the next index. */
  take(reference: MessageReference): { readonly index: number; readonly content: JsonObject }
  /** The list `list` and the content `index` behind it. Returns its number. */
  grow(list: number, index: number): number
  /** What a reader needs. Copies the numbers, shares the contents. */
  shared(): SharedMessages
}

export function messageTree(): MessageTree {
  const parents: number[] = [-1]
  const last: number[] = [-1]
  const firstChild: number[] = [-1]
  const nextSibling: number[] = [-1]
  const contents: JsonObject[] = []
  const byFingerprint = new Map<number, number[]>()

  const childOf = (list: number, message: JsonObject): number => {
    let child = firstChild[list] ?? -1
    while (child >= 0 && !isSame(contents[last[child] ?? -1], message)) child = nextSibling[child] ?? -1
    return child
  }
  return {
    find(messages) {
      let list = 0
      let length = 0
      for (const message of messages) {
        const child = childOf(list, message)
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
        if (!content) throw new RolloutError('INTERNAL_BUG', `the session has no message ${reference}`)
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
      if (parents[list] === undefined) throw new RolloutError('INTERNAL_BUG', `the session has no message list ${list}`)
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

/** The messages of a list, put together. */
export function messagesOfList({ parents, last, contents }: SharedMessages, list: number): readonly JsonObject[] {
  const messages: JsonObject[] = []
  for (let at = list; at > 0; at = parents[at] ?? 0) {
    const content = contents[last[at] ?? -1]
    if (!content) throw new RolloutError('INTERNAL_BUG', `message list ${list} leaves its tree`)
    messages.push(content)
  }
  return messages.reverse()
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

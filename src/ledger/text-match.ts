// Comparing token ids by their text, without knowing how ids become text: what needs decoding is *yielded*, and the text
// comes back. So this stays pure and synchronous while the decoder may be an engine behind HTTP (decode.ts drives it).

import { hashOf, sameIds } from './token-hash.js'

/** Yields ids to decode, receives their text (null = cannot be told), returns `T`. */
export type Asking<T> = Generator<Int32Array, T, string | null>

/** Yields many at once; receives the texts in the same order. */
export type AskingMany<T> = Generator<readonly Int32Array[], T, readonly (string | null)[]>

/** Ids decoded on the first probe: most rewritten answers differ from their first line on. */
const FIRST_PROBE = 64
/** A character cut in the middle decodes to up to three replacement characters before its last id arrives. */
const CUT_CHARACTER_IDS = 3

/**
 * How many leading ids of `tail` say exactly what `wanted` says (both through `normal`): the smallest such number,
 * or null when none does. Decodes O(log) pieces whose total length is linear in the answer.
 */
export function* leadingIdsOfText(
  wanted: string,
  tail: Int32Array,
  normal: (text: string) => string = text => text,
): Asking<number | null> {
  const target = normal(wanted)
  const textOf = function* (count: number): Asking<string | null> {
    const text = count === 0 ? '' : yield tail.subarray(0, count)
    return text === null ? null : normal(text)
  }
  let below = 0
  let count = Math.min(FIRST_PROBE, tail.length)
  for (;;) {
    const text = yield* textOf(count)
    if (text === null) return null
    const certain = text.replace(/\uFFFD+$/, '')
    if (!(target.startsWith(certain) || certain.startsWith(target))) return text === target ? count : null
    if (certain.length >= target.length) break
    if (count === tail.length) return text === target ? count : null
    below = count
    count = Math.min(tail.length, count * 2)
  }
  while (below + 1 < count) {
    const middle = (below + count) >> 1
    const text = yield* textOf(middle)
    if (text === null) return null
    if (text.length >= target.length) count = middle
    else below = middle
  }
  for (let k = count; k <= Math.min(tail.length, count + CUT_CHARACTER_IDS); k++)
    if ((yield* textOf(k)) === target) return k
  return null
}

/** Runs `tasks` side by side: each round yields what all of them ask for. Results in the order of `tasks`. */
export function* sideBySide<T>(tasks: readonly Asking<T>[]): AskingMany<T[]> {
  const results = new Map<number, T>()
  let waiting: { readonly index: number; readonly ids: Int32Array }[] = []
  const advance = (index: number, step: IteratorResult<Int32Array, T>) => {
    if (step.done) results.set(index, step.value)
    else waiting.push({ index, ids: step.value })
  }
  tasks.forEach((task, index) => {
    advance(index, task.next())
  })
  while (waiting.length > 0) {
    const asked = waiting
    waiting = []
    const texts = yield asked.map(({ ids }) => ids)
    asked.forEach(({ index }, i) => {
      const task = tasks[index]
      if (task) advance(index, task.next(texts[i] ?? null))
    })
  }
  return tasks.map((_, index) => results.get(index) as T) // every task has ended: the map is complete
}

/** Answers what was asked before from memory; asks each distinct list of ids once. */
export function* remembering<T>(asking: AskingMany<T>): AskingMany<T> {
  const memory = new Map<number, { readonly ids: Int32Array; readonly text: string | null }[]>()
  const recall = (ids: Int32Array, key: number) => memory.get(key)?.find(entry => sameIds(entry.ids, ids))
  let step = asking.next()
  while (!step.done) {
    const asked = step.value.map(ids => ({ ids, key: hashOf(ids) }))
    const fresh: { ids: Int32Array; key: number }[] = []
    for (const one of asked) {
      if (recall(one.ids, one.key)) continue
      if (!fresh.some(other => other.key === one.key && sameIds(other.ids, one.ids))) fresh.push(one)
    }
    const texts = fresh.length > 0 ? yield fresh.map(({ ids }) => ids) : []
    fresh.forEach(({ ids, key }, i) => {
      const list = memory.get(key) ?? []
      list.push({ ids, text: texts[i] ?? null })
      memory.set(key, list)
    })
    step = asking.next(asked.map(({ ids, key }) => recall(ids, key)?.text ?? null))
  }
  return step.value
}

// A harness sends its whole history with every call: kept whole, the bodies of a session would grow with the square of its turns. Here a
// body becomes what it does not share with an earlier one, and whole again. Pure; nothing is lost.

import type { CompletionRecord, OriginalLike } from '../domain/completion.js'
import type { CompletionId } from '../domain/ids.js'

export interface WholeBody {
  readonly completionId: CompletionId
  readonly text: string
}

export type OriginalParts = Pick<CompletionRecord, 'originalRequest' | 'originalLike'>

/** `text` as its difference from the one of `earlier` that shares most with it, or the first that shares all but a little; whole when that saves less than half. */
export function differenceFrom(text: string, earlier: readonly WholeBody[]): OriginalParts {
  let best: OriginalLike | null = null
  for (const { completionId, text: other } of earlier) {
    const prefix = sharedPrefix(text, other)
    const suffix = sharedSuffix(text, other, Math.min(text.length, other.length) - prefix)
    if (prefix + suffix > (best === null ? text.length / 2 : best.prefix + best.suffix)) {
      best = { completionId, prefix, suffix }
    }
    if (prefix + suffix >= text.length - STRIDE) break
  }
  if (best === null) return { originalRequest: text, originalLike: null }
  return { originalRequest: copyOf(text.slice(best.prefix, text.length - best.suffix)), originalLike: best }
}

/**
 * The body of `record` as the harness sent it. `find`: the session's other records.
 * null when a record that it builds on is not among them.
 */
export function wholeOriginal(
  record: OriginalParts,
  find: (completionId: CompletionId) => OriginalParts | undefined,
): string | null {
  const chain: OriginalParts[] = [record]
  for (let like = record.originalLike; like !== null; ) {
    const next = find(like.completionId)
    // A record builds on earlier ones only: a chain longer than all of them would be a circle.
    if (next === undefined || chain.includes(next)) return null
    chain.push(next)
    like = next.originalLike
  }
  let text = ''
  for (const { originalRequest, originalLike } of chain.reverse()) {
    text =
      originalLike === null
        ? originalRequest
        : text.slice(0, originalLike.prefix) + originalRequest + text.slice(text.length - originalLike.suffix)
  }
  return text
}

/** Slices of equal length are compared by the engine in one go; single characters only in the slice where they part. */
const STRIDE = 1_024

function sharedPrefix(a: string, b: string): number {
  const most = Math.min(a.length, b.length)
  let at = 0
  while (at + STRIDE <= most && a.slice(at, at + STRIDE) === b.slice(at, at + STRIDE)) at += STRIDE
  while (at < most && a.charCodeAt(at) === b.charCodeAt(at)) at += 1
  return at
}

/** At most `most` characters. */
function sharedSuffix(a: string, b: string, most: number): number {
  const part = (text: string, from: number) => text.slice(text.length - from - STRIDE, text.length - from)
  let at = 0
  while (at + STRIDE <= most && part(a, at) === part(b, at)) at += STRIDE
  while (at < most && a.charCodeAt(a.length - 1 - at) === b.charCodeAt(b.length - 1 - at)) at += 1
  return at
}

/** A slice of a string keeps the whole of it in memory; this does not. */
const copyOf = (slice: string): string => JSON.parse(JSON.stringify(slice)) as string

// Token ids of one session with every shared prefix stored once. A segment holds the ids that one call said or heard first; it
// branches off another segment at some position. A path from the root to a position is one sequence, and equal sequences have
// equal paths. Finding the longest known prefix of a prompt compares the ids themselves, once: no hash, nothing to collide.

import type { TokenPlace, TokenSegment } from '../domain/completion.js'
import { RolloutError } from '../domain/errors.js'

export interface TokenTree {
  /** The first one is the root, which holds no ids. */
  readonly segments: readonly TokenSegment[]
  /** The longest known prefix of `ids[0, end)`. O(its length). */
  find(ids: Int32Array, end?: number): TokenPlace
  /** Continues a known prefix `at` by `ids[from, to)`. */
  findAfter(at: TokenPlace, ids: Int32Array, from: number, to: number): TokenPlace
  /** Adds `ids`, which it keeps, behind `at` (what `find` could not go on from). Returns the end. */
  grow(at: TokenPlace, ids: Int32Array): TokenPlace
}

export const ROOT: TokenPlace = { segment: 0, length: 0 }

const ROOT_SEGMENT: TokenSegment = { ids: new Int32Array(0), parent: -1, start: 0 }

/** A tree that holds `known`, as another one's `segments` tells it; empty without. Throws INTERNAL_BUG when they are no tree. */
export function tokenTree(known: readonly TokenSegment[] = []): TokenTree {
  const segments: TokenSegment[] = [ROOT_SEGMENT]
  // Children of a segment as a chain: most segments have one or two.
  const firstChild: number[] = [-1]
  const nextSibling: number[] = [-1]

  const add = (segment: TokenSegment): number => {
    const { parent, start, ids } = segment
    const above = segments[parent]
    if (!above || ids.length === 0 || start < above.start || start > above.start + above.ids.length)
      throw new RolloutError('INTERNAL_BUG', `segment ${segments.length} does not fit into the token tree`)
    const number = segments.push(segment) - 1
    nextSibling.push(firstChild[parent] ?? -1)
    firstChild.push(-1)
    firstChild[parent] = number
    return number
  }
  for (const segment of known.slice(1)) add(segment)

  const findAfter = (from: TokenPlace, ids: Int32Array, first: number, end: number): TokenPlace => {
    let number = from.segment
    let position = from.length
    let at = first
    for (;;) {
      const { ids: own, start } = segments[number] ?? ROOT_SEGMENT
      const offset = position - start - at
      const most = Math.min(end, own.length - offset)
      const before = at
      while (at < most && ids[at] === own[at + offset]) at++
      position += at - before
      if (at === end) break
      const wanted = ids[at]
      let child = firstChild[number] ?? -1
      for (; child >= 0; child = nextSibling[child] ?? -1) {
        const segment = segments[child]
        if (segment?.start === position && segment.ids[0] === wanted) break
      }
      if (child < 0) break
      number = child
    }
    return { segment: number, length: position }
  }

  return {
    segments,
    find: (ids, end = ids.length) => findAfter(ROOT, ids, 0, end),
    findAfter,
    grow(at, ids) {
      if (ids.length === 0) return at
      return { segment: add({ ids, parent: at.segment, start: at.length }), length: at.length + ids.length }
    },
  }
}

/** Puts `ids` into `tree` where it does not hold them; copies what it keeps. */
export function store(tree: TokenTree, ids: Int32Array): TokenPlace {
  const known = tree.find(ids)
  return tree.grow(known, ids.slice(known.length))
}

/** A sequence of a tree, to be read without being put together. */
export interface TokenPath extends TokenPlace {
  readonly tree: Pick<TokenTree, 'segments'>
}

export const pathOf = (tree: Pick<TokenTree, 'segments'>, { segment, length }: TokenPlace): TokenPath => ({
  tree,
  segment,
  length,
})

/** Number of the segment that holds position `at` of the path. Cheap near its end. */
export function segmentAt({ tree: { segments }, segment }: TokenPath, at: number): number {
  let number = segment
  while (number > 0 && (segments[number] ?? ROOT_SEGMENT).start > at) number = (segments[number] ?? ROOT_SEGMENT).parent
  return number
}

/** The path's first `length` ids as a path. */
export const prefixOf = (path: TokenPath, length: number): TokenPath =>
  length >= path.length ? path : { tree: path.tree, segment: length > 0 ? segmentAt(path, length - 1) : 0, length }

/** A copy of ids `[from, to)`. O(to - from), and the number of segments behind `from`. */
export function idsOf(path: TokenPath, from = 0, to = path.length): Int32Array {
  const first = Math.max(0, from)
  const end = Math.max(first, Math.min(to, path.length))
  const ids = new Int32Array(end - first)
  copyIds(path, first, end, ids, 0)
  return ids
}

/** Writes ids `[from, to)` of the path, all of them within it, to `target` from `at` on. Costs what `idsOf` does. */
export function copyIds(path: TokenPath, from: number, to: number, target: Int32Array, at: number): void {
  let end = to
  for (let number = path.segment; end > from; ) {
    const segment = path.tree.segments[number]
    if (!segment) throw new RolloutError('INTERNAL_BUG', 'a token path leaves its tree')
    const { ids, start } = segment
    if (start < end) {
      const begin = Math.max(from, start)
      if (end - begin > FEW) target.set(ids.subarray(begin - start, end - start), at + begin - from)
      else for (let i = begin; i < end; i++) target[at + i - from] = ids[i - start] ?? 0
      end = begin
    }
    number = segment.parent
  }
}

/** Below this a loop costs less than a view. */
const FEW = 64

/** True when ids `[at, at + part.length)` of the path are `part`. */
export function pathHas(path: TokenPath, part: Int32Array, at: number): boolean {
  if (at < 0 || at + part.length > path.length) return false
  let end = part.length
  for (let number = path.segment; end > 0; ) {
    const segment = path.tree.segments[number]
    if (!segment) return false
    const begin = Math.max(0, segment.start - at)
    for (; end > begin; end--) if (segment.ids[at + end - 1 - segment.start] !== part[end - 1]) return false
    number = segment.parent
  }
  return true
}

/** True when `part` is a prefix of `path` or equal to it. Both of one tree. Compares no ids. */
export const isPrefix = (part: TokenPlace, path: TokenPath): boolean =>
  part.length === 0 || (part.length <= path.length && segmentAt(path, part.length - 1) === part.segment)

/** Length of the longest common prefix of two paths of one tree. Compares no ids. */
export function commonLength(left: TokenPath, right: TokenPath): number {
  const { segments } = left.tree
  let [one, other] = [left.segment, right.segment]
  let [oneEnd, otherEnd] = [left.length, right.length]
  while (one !== other) {
    const upper = segments[Math.max(one, other)] ?? ROOT_SEGMENT
    if (one > other) [one, oneEnd] = [upper.parent, Math.min(oneEnd, upper.start)]
    else [other, otherEnd] = [upper.parent, Math.min(otherEnd, upper.start)]
  }
  return Math.min(oneEnd, otherEnd)
}

/** First position of `id` in the path from `from` on; -1 = nowhere. */
export function positionOf(path: TokenPath, id: number, from: number): number {
  const chain: { readonly segment: TokenSegment; readonly end: number }[] = []
  let end = path.length
  for (let number = path.segment; end > from && number > 0; ) {
    const segment = path.tree.segments[number] ?? ROOT_SEGMENT
    chain.push({ segment, end })
    end = Math.min(end, segment.start)
    number = segment.parent
  }
  for (const { segment, end: until } of chain.reverse()) {
    const { ids, start } = segment
    for (let at = Math.max(from, start); at < until; at++) if (ids[at - start] === id) return at
  }
  return -1
}

// The distinct prompts of one session as a tree: for each prompt the longest other prompt that is a proper prefix of it,
// and the nearest one that is a prefix once its generation prompt is taken off. Both are read off the places where prompts
// end in the token tree. Compares no ids.

import { RolloutError } from '../domain/errors.js'
import type { Call, Observed } from './screen.js'
import { segmentAt, type TokenPath } from './token-tree.js'

export interface PromptNode {
  /** Counts from 0 in the order of first sight: a key, nothing more. */
  readonly number: number
  readonly path: TokenPath
  /** Length without the generation prompt. */
  stemLength: number
  /** Usable calls with this prompt, in rank order. May be empty. */
  readonly calls: Call[]
  /** Longest other prompt that is a proper prefix of this one. Following it gives all of them. */
  prefix: PromptNode | null
  /** Prompts with the longest stem that is a prefix of this one and shorter than its stem. Following the first gives all stems. */
  before: readonly PromptNode[]
}

export interface PromptTree {
  /** By length, shortest first. */
  readonly nodes: readonly PromptNode[]
  nodeOf(prompt: TokenPath): PromptNode
}

export function buildPromptTree(observed: readonly Observed[], calls: readonly Call[]): PromptTree {
  const byPlace = distinctPrompts(observed)
  const nodeOf = (prompt: TokenPath): PromptNode => {
    const node = byPlace.get(placeKey(prompt))
    if (!node) throw new RolloutError('INTERNAL_BUG', 'a prompt is not in the tree that was built from it')
    return node
  }
  for (const call of calls) nodeOf(call.prompt).calls.push(call)
  const nodes = [...byPlace.values()].sort((left, right) => left.path.length - right.path.length)
  const prompts = endsBySegment(nodes, node => node.path.length)
  const stems = endsBySegment(nodes, node => node.stemLength)
  for (const node of nodes) {
    node.prefix = lastEnds(node.path, prompts, node.path.length)[0] ?? null
    // A stem that holds nothing is no predecessor. Of equal stems the longest prompt first, then by rank.
    node.before = lastEnds(node.path, stems, node.stemLength)
      .filter(other => other.stemLength > 0)
      .sort((left, right) => right.path.length - left.path.length || rankOf(left) - rankOf(right))
  }
  return { nodes, nodeOf }
}

const rankOf = ({ calls }: PromptNode): number => calls[0]?.rank ?? -1

function distinctPrompts(observed: readonly Observed[]): Map<number, PromptNode> {
  const byPlace = new Map<number, PromptNode>()
  for (const { prompt, record } of observed) {
    const stemLength = Math.max(0, prompt.length - Math.max(0, record.generationPromptLength))
    const key = placeKey(prompt)
    const node = byPlace.get(key)
    if (node) node.stemLength = Math.min(node.stemLength, stemLength)
    else byPlace.set(key, { number: byPlace.size, path: prompt, stemLength, calls: [], prefix: null, before: [] })
  }
  return byPlace
}

/** Equal sequences end at equal places. */
const placeKey = ({ segment, length }: TokenPath): number => segment * 0x100000000 + length

interface End {
  readonly length: number
  readonly nodes: PromptNode[]
}

/** Where the first `lengthOf` ids of the prompts end: segment -> ends, shortest first. */
function endsBySegment(
  nodes: readonly PromptNode[],
  lengthOf: (node: PromptNode) => number,
): ReadonlyMap<number, readonly End[]> {
  const bySegment = new Map<number, End[]>()
  for (const node of [...nodes].sort((left, right) => lengthOf(left) - lengthOf(right))) {
    const length = lengthOf(node)
    const segment = length > 0 ? segmentAt(node.path, length - 1) : 0
    const ends = bySegment.get(segment) ?? []
    const last = ends.at(-1)
    if (last?.length === length) last.nodes.push(node)
    else ends.push({ length, nodes: [node] })
    bySegment.set(segment, ends)
  }
  return bySegment
}

/** Nodes of the longest end below `limit` on `path`; empty = none. */
function lastEnds(path: TokenPath, bySegment: ReadonlyMap<number, readonly End[]>, limit: number): PromptNode[] {
  const { segments } = path.tree
  let below = limit
  for (let number = segmentAt(path, Math.max(0, limit - 1)); number >= 0; ) {
    const ends = bySegment.get(number) ?? []
    let [low, high] = [0, ends.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((ends[middle]?.length ?? 0) < below) low = middle + 1
      else high = middle
    }
    const found = ends[low - 1]
    if (found) return [...found.nodes]
    const segment = segments[number]
    below = Math.min(below, (segment?.start ?? 0) + 1)
    number = segment?.parent ?? -1
  }
  return []
}

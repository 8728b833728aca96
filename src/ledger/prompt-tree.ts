// The distinct prompts of one session as a tree: for each prompt the longest other prompt that is a proper prefix of it,
// and the nearest one that is a prefix once its generation prompt is taken off. Found by one rolling hash per prompt,
// looked up at the lengths where known prompts end, verified against the ids. Linear in the tokens of the prompts.

import type { CompletionRecord } from '../domain/completion.js'
import { RolloutError } from '../domain/errors.js'
import type { Call } from './screen.js'
import { feed, hasAt, hashKey, hashOf, sameIds, startHash } from './token-hash.js'

export interface PromptNode {
  /** Counts from 0 in the order of first sight: a key, nothing more. */
  readonly number: number
  readonly ids: Int32Array
  /** Length without the generation prompt. */
  stemLength: number
  /** Usable calls with this prompt, in rank order. May be empty. */
  readonly calls: Call[]
  /** Longest other prompt that is a proper prefix of `ids`. Following it gives all of them. */
  prefix: PromptNode | null
  /** Prompts with the longest stem that is a prefix of `ids` and shorter than this stem. Following the first gives all stems. */
  before: readonly PromptNode[]
}

export interface PromptTree {
  /** By length, shortest first. */
  readonly nodes: readonly PromptNode[]
  nodeOf(ids: Int32Array): PromptNode
}

export function buildPromptTree(observed: readonly CompletionRecord[], calls: readonly Call[]): PromptTree {
  const { nodes, byPrompt, byArray } = distinctPrompts(observed)
  const byStem = new Map<number, PromptNode[]>()
  for (const node of nodes) put(byStem, hashOf(node.ids.subarray(0, node.stemLength)), node)
  const lengths = [...new Set(nodes.flatMap(node => [node.ids.length, node.stemLength]))].sort((a, b) => a - b)
  for (const node of nodes) place(node, lengths, byPrompt, byStem)
  const nodeOf = (ids: Int32Array): PromptNode => {
    const node = byArray.get(ids)
    if (!node) throw new RolloutError('INTERNAL_BUG', 'a prompt is not in the tree that was built from it')
    return node
  }
  for (const call of calls) nodeOf(call.prompt).calls.push(call)
  return { nodes, nodeOf }
}

function distinctPrompts(observed: readonly CompletionRecord[]) {
  const byPrompt = new Map<number, PromptNode[]>()
  const byArray = new Map<Int32Array, PromptNode>()
  const nodes: PromptNode[] = []
  for (const { promptIds, generationPromptLength } of observed) {
    if (promptIds === null) continue
    const stemLength = Math.max(0, promptIds.length - Math.max(0, generationPromptLength))
    const key = hashOf(promptIds)
    let node = byPrompt.get(key)?.find(other => sameIds(other.ids, promptIds))
    if (!node) {
      node = { number: nodes.length, ids: promptIds, stemLength, calls: [], prefix: null, before: [] }
      put(byPrompt, key, node)
      nodes.push(node)
    }
    node.stemLength = Math.min(node.stemLength, stemLength)
    byArray.set(promptIds, node)
  }
  nodes.sort((left, right) => left.ids.length - right.ids.length)
  return { nodes, byPrompt, byArray }
}

/** Rolls over the ids of `node` once and looks up both indexes at every length where a known prompt or stem ends. */
function place(
  node: PromptNode,
  lengths: readonly number[],
  byPrompt: ReadonlyMap<number, readonly PromptNode[]>,
  byStem: ReadonlyMap<number, readonly PromptNode[]>,
): void {
  const prefixes: PromptNode[] = []
  const stems: PromptNode[] = []
  const state = startHash()
  let at = 0
  for (const length of lengths) {
    if (length > node.ids.length) break
    feed(state, node.ids, at, length)
    at = length
    const key = hashKey(state)
    for (const other of byPrompt.get(key) ?? [])
      if (other.ids.length === length && length < node.ids.length) prefixes.push(other)
    for (const other of byStem.get(key) ?? [])
      if (other.stemLength === length && length > 0 && length < node.stemLength) stems.push(other)
  }
  for (let i = prefixes.length - 1; i >= 0 && node.prefix === null; i--) {
    const other = prefixes[i]
    if (other && hasAt(node.ids, other.ids, 0)) node.prefix = other
  }
  const before: PromptNode[] = []
  for (let i = stems.length - 1; i >= 0; i--) {
    const other = stems[i]
    if (!other || (before[0] && other.stemLength < before[0].stemLength)) break
    if (hasAt(node.ids, other.ids.subarray(0, other.stemLength), 0)) before.push(other)
  }
  node.before = before
}

function put(index: Map<number, PromptNode[]>, key: number, node: PromptNode): void {
  const list = index.get(key)
  if (list) list.push(node)
  else index.set(key, [node])
}

// What the reference system's merge rule would have kept of the same capture, written out with its losses, for comparison
// only: chains by prompt prefix against the newest prompt of each chain, joints at the first end-of-turn id in the tail,
// the rest of a chain dropped where there is none, and a trace without usable logprobs lost as a whole.

import type { CompletionRecord } from '../domain/completion.js'
import type { LedgerCounts } from '../domain/trajectory.js'
import type { PromptNode, PromptTree } from './prompt-tree.js'
import { isUnfinished, validLogprobs } from './screen.js'

interface Chain {
  /** Order of opening. */
  readonly index: number
  /** Node of the newest prompt. */
  tip: PromptNode
  readonly records: CompletionRecord[]
}

/** `sampledTokens`: of the whole session; what is not kept is lost. */
export function referenceFigures(
  records: readonly CompletionRecord[],
  tree: PromptTree,
  endToken: number | null,
  sampledTokens: number,
): LedgerCounts['reference'] {
  const sorted = records
    .filter(record => !isUnfinished(record))
    .sort((left, right) => left.finishedAtMs - right.finishedAtMs || (left.completionId < right.completionId ? -1 : 1))
  const chains: Chain[] = []
  const byTip = new Map<PromptNode, Chain[]>()
  let loose = 0
  for (const record of sorted) {
    if (record.promptIds === null) {
      loose++ // a trace with an empty prompt, which the trainer drops
      continue
    }
    const node = tree.nodeOf(record.promptIds)
    const chain = chainFor(node, byTip)
    if (chain) {
      remove(byTip, chain)
      chain.records.push(record)
      chain.tip = node
      add(byTip, chain)
    } else {
      const opened = { index: chains.length, tip: node, records: [record] }
      chains.push(opened)
      add(byTip, opened)
    }
  }
  let keptTokens = 0
  let misplacedTokens = 0
  for (const chain of chains) {
    const kept = stitch(chain.records, endToken)
    keptTokens += kept.tokens
    misplacedTokens += kept.misplaced
  }
  return { traces: chains.length + loose, keptTokens, lostTokens: sampledTokens - keptTokens, misplacedTokens }
}

/** The chain with the longest non-empty tip that is a prefix of (or equal to) the prompt; the first on a tie. */
function chainFor(node: PromptNode, byTip: ReadonlyMap<PromptNode, readonly Chain[]>): Chain | undefined {
  for (let at: PromptNode | null = node; at && at.ids.length > 0; at = at.prefix) {
    const chain = byTip.get(at)?.[0]
    if (chain) return chain
  }
  return undefined
}

/** Tokens of a chain that end up in its trace, and those of them behind a context the model never saw. */
function stitch(
  records: readonly CompletionRecord[],
  configured: number | null,
): { tokens: number; misplaced: number } {
  const endToken =
    configured ??
    records
      .find(({ finish, sampledIds }) => (finish === 'stop' || finish === 'tool_calls') && sampledIds?.length)
      ?.sampledIds?.at(-1) ??
    null
  let tokens = 0
  let misplaced = 0
  let faithful = true
  let last: CompletionRecord | undefined
  for (const record of records) {
    if (last) {
      const joint = jointOf(last, record, endToken)
      if (joint === null) break
      faithful &&= joint.faithful
    }
    if (record.sampledIds?.length && !validLogprobs(record)) return { tokens: 0, misplaced: 0 }
    tokens += record.sampledIds?.length ?? 0
    if (!faithful) misplaced += record.sampledIds?.length ?? 0
    last = record
  }
  return { tokens, misplaced }
}

/** null: no end-of-turn id in the tail, the rest of the chain is dropped. */
function jointOf(
  last: CompletionRecord,
  next: CompletionRecord,
  endToken: number | null,
): { faithful: boolean } | null {
  const prompt = next.promptIds
  if (endToken === null || !prompt || !last.promptIds) return null
  const from = last.promptIds.length
  const found = prompt.indexOf(endToken, from)
  if (found < 0) return null
  const sampled = last.sampledIds ?? new Int32Array(0)
  const end = sampled.at(-1) === endToken ? found + 1 : found
  return { faithful: end - from === sampled.length && sampled.every((id, i) => prompt[from + i] === id) }
}

function add(byTip: Map<PromptNode, Chain[]>, chain: Chain): void {
  const list = byTip.get(chain.tip)
  if (list) list.push(chain)
  if (list) list.sort((left, right) => left.index - right.index)
  else byTip.set(chain.tip, [chain])
}

function remove(byTip: Map<PromptNode, Chain[]>, chain: Chain): void {
  const list = byTip.get(chain.tip)?.filter(other => other !== chain) ?? []
  if (list.length > 0) byTip.set(chain.tip, list)
  else byTip.delete(chain.tip)
}

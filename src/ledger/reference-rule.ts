// What the reference system's merge rule would have kept of the same capture, written out with its losses, for comparison
// only: chains by prompt prefix against the newest prompt of each chain, joints at the first end-of-turn id in the tail,
// the rest of a chain dropped where there is none, and a trace without usable logprobs lost as a whole.

import type { LedgerCounts } from '../domain/trajectory.js'
import type { PromptNode, PromptTree } from './prompt-tree.js'
import { isUnfinished, validLogprobs } from './screen.js'
import { pathHas, positionOf } from './token-tree.js'
import type { Seen } from './view.js'

interface Chain {
  /** Order of opening. */
  readonly index: number
  /** Node of the newest prompt. */
  tip: PromptNode
  readonly calls: Seen[]
}

/** `sampledTokens`: of the whole session; what is not kept is lost. */
export function referenceFigures(
  calls: readonly Seen[],
  tree: PromptTree,
  endToken: number | null,
  sampledTokens: number,
): LedgerCounts['reference'] {
  const sorted = calls
    .filter(({ record }) => !isUnfinished(record))
    .sort(
      ({ record: left }, { record: right }) =>
        left.finishedAtMs - right.finishedAtMs || (left.completionId < right.completionId ? -1 : 1),
    )
  const chains: Chain[] = []
  const byTip = new Map<PromptNode, Chain[]>()
  let loose = 0
  for (const call of sorted) {
    if (call.prompt === null) {
      loose++ // a trace with an empty prompt, which the trainer drops
      continue
    }
    const node = tree.nodeOf(call.prompt)
    const chain = chainFor(node, byTip)
    if (chain) {
      remove(byTip, chain)
      chain.calls.push(call)
      chain.tip = node
      add(byTip, chain)
    } else {
      const opened = { index: chains.length, tip: node, calls: [call] }
      chains.push(opened)
      add(byTip, opened)
    }
  }
  let keptTokens = 0
  let misplacedTokens = 0
  for (const chain of chains) {
    const kept = stitch(chain.calls, endToken)
    keptTokens += kept.tokens
    misplacedTokens += kept.misplaced
  }
  return { traces: chains.length + loose, keptTokens, lostTokens: sampledTokens - keptTokens, misplacedTokens }
}

/** The chain with the longest non-empty tip that is a prefix of (or equal to) the prompt; the first on a tie. */
function chainFor(node: PromptNode, byTip: ReadonlyMap<PromptNode, readonly Chain[]>): Chain | undefined {
  for (let at: PromptNode | null = node; at && at.path.length > 0; at = at.prefix) {
    const chain = byTip.get(at)?.[0]
    if (chain) return chain
  }
  return undefined
}

/** Tokens of a chain that end up in its trace, and those of them behind a context the model never saw. */
function stitch(calls: readonly Seen[], configured: number | null): { tokens: number; misplaced: number } {
  const endToken =
    configured ??
    calls
      .find(({ record }) => (record.finish === 'stop' || record.finish === 'tool_calls') && record.sampledIds?.length)
      ?.record.sampledIds?.at(-1) ??
    null
  let tokens = 0
  let misplaced = 0
  let faithful = true
  let last: Seen | undefined
  for (const call of calls) {
    const { record } = call
    if (last) {
      const joint = jointOf(last, call, endToken)
      if (joint === null) break
      faithful &&= joint.faithful
    }
    if (record.sampledIds?.length && !validLogprobs(record)) return { tokens: 0, misplaced: 0 }
    tokens += record.sampledIds?.length ?? 0
    if (!faithful) misplaced += record.sampledIds?.length ?? 0
    last = call
  }
  return { tokens, misplaced }
}

/** null: no end-of-turn id in the tail, the rest of the chain is dropped. */
function jointOf(last: Seen, { prompt }: Seen, endToken: number | null): { faithful: boolean } | null {
  if (endToken === null || !prompt || !last.prompt) return null
  const from = last.prompt.length
  const found = positionOf(prompt, endToken, from)
  if (found < 0) return null
  const sampled = last.record.sampledIds ?? new Int32Array(0)
  const end = sampled.at(-1) === endToken ? found + 1 : found
  return { faithful: end - from === sampled.length && pathHas(prompt, sampled, from) }
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

// From parents to paths. Leaves become traces; on a path shared by several leaves an answer is trained in one trace only:
// the one that follows the first child. Work comes before side calls, then the branch with the most turns, then start time
// and content decide (rank).

import type { Match } from './joins.js'
import type { Call } from './screen.js'
import { differingIds } from './token-hash.js'
import { idsOf } from './token-tree.js'

export type Links = ReadonlyMap<Call, Match>

export interface Path {
  /** Root first; never empty. */
  readonly calls: readonly Call[]
  /** Calls of this path that are trained in it. */
  readonly own: ReadonlySet<Call>
}

/** Paths from root to leaf, in the order of their roots and branches. Each call is `own` in exactly one. */
export function pathsOf(calls: readonly Call[], links: Links): Path[] {
  const precedence = precedenceOf(calls, links)
  const children = childrenOf(calls, links, precedence)
  const paths: Path[] = []
  const open = calls.filter(call => !links.has(call)).map(root => ({ start: root, above: [] as readonly Call[] }))
  open.sort((left, right) => right.start.rank - left.start.rank)
  for (let branch = open.pop(); branch; branch = open.pop()) {
    const path = [...branch.above]
    const own = new Set<Call>()
    const later: typeof open = []
    for (let call: Call | undefined = branch.start; call; ) {
      path.push(call)
      own.add(call)
      const [first, ...others]: readonly Call[] = children.get(call) ?? []
      for (const other of others) later.push({ start: other, above: path.slice() })
      call = first
    }
    open.push(...later.reverse())
    paths.push({ calls: path, own })
  }
  return paths
}

export interface ForestFigures {
  readonly traces: number
  readonly trainerTokens: number
  readonly trainedTokens: number
  readonly contextIdsDiffering: number
}

/** What a trainer would get of these parents, without building the traces. O(calls + answers). */
export function figuresOf(calls: readonly Call[], links: Links): ForestFigures {
  const parents = new Set([...links.values()].map(link => link.parent))
  const length = new Map<Call, number>()
  let contextIdsDiffering = 0
  for (const call of [...calls].sort((left, right) => left.prompt.length - right.prompt.length)) {
    const link = links.get(call)
    const before = link ? (length.get(link.parent) ?? 0) + call.prompt.length - link.end : call.prompt.length
    length.set(call, before + call.sampled.length)
    if (link && link.join !== 'exact')
      contextIdsDiffering += differingIds(link.parent.sampled, idsOf(call.prompt, link.parent.prompt.length, link.end))
  }
  const leaves = calls.filter(call => !parents.has(call))
  return {
    traces: leaves.length,
    trainerTokens: leaves.reduce((sum, leaf) => sum + (length.get(leaf) ?? 0), 0),
    trainedTokens: calls.reduce((sum, call) => sum + call.sampled.length, 0),
    contextIdsDiffering,
  }
}

type Precedence = (left: Call, right: Call) => number

function childrenOf(calls: readonly Call[], links: Links, precedence: Precedence): Map<Call, Call[]> {
  const children = new Map<Call, Call[]>()
  for (const call of calls) {
    const parent = links.get(call)?.parent
    if (!parent) continue
    const list = children.get(parent)
    if (list) list.push(call)
    else children.set(parent, [call])
  }
  for (const list of children.values()) list.sort(precedence)
  return children
}

/** Which of several branches comes first. A parent's prompt is shorter than its child's: one pass from the longest finds all heights. */
function precedenceOf(calls: readonly Call[], links: Links): Precedence {
  const turns = new Map<Call, number>()
  for (const call of [...calls].sort((left, right) => right.prompt.length - left.prompt.length)) {
    const own = turns.get(call) ?? 1
    turns.set(call, own)
    const parent = links.get(call)?.parent
    if (parent) turns.set(parent, Math.max(turns.get(parent) ?? 1, own + 1))
  }
  return (left, right) =>
    Number(left.side) - Number(right.side) || (turns.get(right) ?? 1) - (turns.get(left) ?? 1) || left.rank - right.rank
}

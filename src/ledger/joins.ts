// Parents and join classes (design: trajectory.md, section 3). The parent of a call is, among all other calls, the one whose
// prompt + answer, in the sampled ids or in other ids of the very same text, is the longest prefix of its prompt.
// A side call is never a parent of a call that is none.

import type { JoinClass } from '../domain/trajectory.js'
import type { PromptNode, PromptTree } from './prompt-tree.js'
import type { Call } from './screen.js'
import { type Asking, type AskingMany, leadingIdsOfText, sideBySide } from './text-match.js'
import { idsOf, isPrefix, pathHas, positionOf, type TokenPath } from './token-tree.js'

/** `parent`'s answer stands in the prompt of the later call and ends there at `end`. */
export interface Match {
  readonly parent: Call
  readonly end: number
  readonly join: JoinClass
}

/** Which calls may be looked at; changes when retries are dropped. */
export type Eligible = (call: Call) => boolean

export const eligibleFor =
  (side: boolean, gone: ReadonlySet<Call>): Eligible =>
  call =>
    (side || !call.side) && !gone.has(call)

/** Parents of calls with one prompt: among all calls, and among those that are no side calls. */
export interface Parents {
  readonly all: Match | null
  readonly work: Match | null
}

/**
 * The parents for every prompt of `tree`. What holds for the longest prompt that is a prefix holds for the prompt too, so that only
 * the calls of that one are looked at, and those whose answer could reach beyond it. Linear in prompts and answers.
 */
export function* findParents({ nodes }: PromptTree): AskingMany<ReadonlyMap<PromptNode, Parents>> {
  const unlike = new Map<PromptNode, readonly Call[]>()
  for (const node of nodes) {
    const calls = node.prefix?.calls.filter(call => !pathHas(node.path, call.sampled, call.prompt.length)) ?? []
    if (calls.length > 0) unlike.set(node, calls)
  }
  const texts = yield* textsOf([...new Set([...unlike.values()].flat())])
  const parents = new Map<PromptNode, Parents>()
  const open = new Map<PromptNode, readonly Call[]>()
  const probes: { readonly node: PromptNode; readonly call: Call; readonly text: string }[] = []
  for (const node of nodes) {
    const { prefix, path } = node
    if (!prefix) continue
    const direct = new Set(unlike.get(node))
    let found = parents.get(prefix)
    const doubtful: Call[] = [...direct]
    for (const call of prefix.calls) if (!direct.has(call)) found = withMatch(found, exactMatch(call))
    for (const call of open.get(prefix) ?? [])
      if (pathHas(path, call.sampled, call.prompt.length)) found = withMatch(found, exactMatch(call))
      else doubtful.push(call)
    if (found) parents.set(node, found)
    for (const call of doubtful) {
      const text = texts.get(call) ?? null
      if (text !== null && call.prompt.length + mostIds(text) > (found?.work?.end ?? 0))
        probes.push({ node, call, text })
    }
    const cut = doubtful.filter(call => reachOf(call, texts.get(call) ?? null) > path.length)
    if (cut.length > 0) open.set(node, cut)
  }
  const counts = yield* sideBySide(
    probes.map(({ node, call, text }) => leadingIdsOfText(text, windowOf(node.path, call.prompt.length, text))),
  )
  const retokenised = new Map<PromptNode, Match[]>()
  probes.forEach(({ node, call }, i) => {
    const count = counts[i] ?? 0
    if (count === 0) return
    const match: Match = { parent: call, end: call.prompt.length + count, join: 'retokenised' }
    const list = retokenised.get(node)
    if (list) list.push(match)
    else retokenised.set(node, [match])
  })
  if (retokenised.size === 0) return parents
  for (const node of nodes) {
    let found = parents.get(node)
    const above = node.prefix && parents.get(node.prefix)
    for (const match of [above?.all, above?.work, ...(retokenised.get(node) ?? [])])
      if (match) found = withMatch(found, match)
    if (found) parents.set(node, found)
  }
  return parents
}

const exactMatch = (parent: Call): Match => ({
  parent,
  end: parent.prompt.length + parent.sampled.length,
  join: 'exact',
})

const withMatch = (found: Parents | undefined, match: Match): Parents => ({
  all: better(found?.all ?? null, match),
  work: match.parent.side ? (found?.work ?? null) : better(found?.work ?? null, match),
})

/** Where an answer's place can end at most. */
const reachOf = ({ prompt, sampled }: Call, text: string | null): number =>
  prompt.length + Math.max(sampled.length, text === null ? 0 : mostIds(text))

function* textsOf(calls: readonly Call[]): AskingMany<ReadonlyMap<Call, string | null>> {
  const texts = calls.length > 0 ? yield calls.map(call => call.sampled) : []
  return new Map(calls.map((call, i) => [call, texts[i] ?? null]))
}

/** The longer one; of equally long ones the exact, then the one that arrived, then the later attempt, then by rank. */
export function better(left: Match | null, right: Match): Match {
  if (left === null || right.end > left.end) return right
  if (right.end < left.end) return left
  const order =
    Number(right.join === 'exact') - Number(left.join === 'exact') ||
    arrived(right.parent) - arrived(left.parent) ||
    right.parent.record.retryCount - left.parent.record.retryCount ||
    left.parent.rank - right.parent.rank
  return order > 0 ? right : left
}

/** Unknown counts as yes everywhere, so that a lost second fact changes nothing. */
const arrived = (call: Call): number => Number(call.delivered !== 'no')

/** Nodes nearest before `node` that still hold an eligible call; empty = no predecessor. All have the same stem. */
export function nearestBefore(node: PromptNode, eligible: Eligible): readonly PromptNode[] {
  let nodes = node.before
  while (nodes.length > 0 && !nodes.some(other => other.calls.some(eligible))) nodes = nodes[0]?.before ?? []
  return nodes.filter(other => other.calls.some(eligible))
}

/** Class of a call by its nearest predecessors; null = a root. */
export function classify(nearest: readonly PromptNode[], match: Match | null): JoinClass | null {
  if (match !== null && (nearest.length === 0 || nearest.some(node => node.calls.includes(match.parent))))
    return match.join
  return nearest.length > 0 ? 'rewritten' : null
}

const withoutSpace = (text: string): string => text.replace(/\s+/g, '')

/** Match of a rewritten call that differs from its nearest predecessor in white space only (also in JSON separators). */
export function* findLenient(
  node: PromptNode,
  nearest: readonly PromptNode[],
  eligible: Eligible,
): Asking<Match | null> {
  let best: Match | null = null
  for (const other of nearest) {
    const at = other.path.length
    if (at >= node.path.length || !isPrefix(other.path, node.path)) continue
    for (const call of other.calls) {
      if (!eligible(call)) continue
      const text = yield call.sampled
      if (text === null || withoutSpace(text) === '') continue
      const count = yield* leadingIdsOfText(text, windowOf(node.path, at, text), withoutSpace)
      if (count !== null && count > 0) best = better(best, { parent: call, end: at + count, join: 'rewritten' })
    }
  }
  return best
}

/**
 * Match under `prompt_prefix`: the longest prompt that is a prefix, whatever the answer's place says. The answer ends
 * after the first end token found there, or before it where the sampled ids lack it; without one there is no match.
 */
export function findByPrompt(node: PromptNode, eligible: Eligible, endToken: number | null): Match | null {
  let other = node.prefix
  while (other && !(other.path.length > 0 && other.calls.some(eligible))) other = other.prefix
  const parent = other?.calls.filter(eligible).at(-1)
  if (!other || !parent) return null
  const end = endToken ?? parent.record.endTokenId
  if (end === null) return null
  const found = positionOf(node.path, end, other.path.length)
  if (found < 0) return null
  return { parent, end: parent.sampled.at(-1) === end ? found + 1 : found, join: 'rewritten' }
}

/** The ids of `path` from `at` on that can say `text`: an id says at least one byte, some say none. */
export const windowOf = (path: TokenPath, at: number, text: string): Int32Array => idsOf(path, at, at + mostIds(text))

const mostIds = (text: string): number => 3 * text.length + 16

// Parents and join classes (design: trajectory.md, section 3). The parent of a call is, among all other calls, the one whose
// prompt + answer, in the sampled ids or in other ids of the very same text, is the longest prefix of its prompt.
// A side call is never a parent of a call that is none.

import type { JoinClass } from '../domain/trajectory.js'
import type { PromptNode } from './prompt-tree.js'
import type { Call } from './screen.js'
import { type Asking, leadingIdsOfText } from './text-match.js'
import { hasAt } from './token-hash.js'

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

/** The parent of a call with the prompt of `node`, or null. */
export function* findParent(node: PromptNode, eligible: Eligible): Asking<Match | null> {
  let best: Match | null = null
  const unlike: { readonly call: Call; readonly at: number }[] = []
  for (let other = node.prefix; other; other = other.prefix)
    for (const call of other.calls) {
      if (!eligible(call)) continue
      const at = other.ids.length
      if (!hasAt(node.ids, call.sampled, at)) unlike.push({ call, at })
      else best = better(best, { parent: call, end: at + call.sampled.length, join: 'exact' })
    }
  for (const { call, at } of unlike) {
    const text = yield call.sampled
    if (text === null) continue
    if (best !== null && at + mostIds(text) <= best.end) continue
    const count = yield* leadingIdsOfText(text, windowOf(node.ids, at, text))
    if (count !== null && count > 0) best = better(best, { parent: call, end: at + count, join: 'retokenised' })
  }
  return best
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
    const at = other.ids.length
    if (at >= node.ids.length || !hasAt(node.ids, other.ids, 0)) continue
    for (const call of other.calls) {
      if (!eligible(call)) continue
      const text = yield call.sampled
      if (text === null || withoutSpace(text) === '') continue
      const count = yield* leadingIdsOfText(text, windowOf(node.ids, at, text), withoutSpace)
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
  while (other && !(other.ids.length > 0 && other.calls.some(eligible))) other = other.prefix
  const parent = other?.calls.filter(eligible).at(-1)
  if (!other || !parent) return null
  const end = endToken ?? parent.record.endTokenId
  if (end === null) return null
  const found = node.ids.indexOf(end, other.ids.length)
  if (found < 0) return null
  return { parent, end: parent.sampled.at(-1) === end ? found + 1 : found, join: 'rewritten' }
}

/** The part of `ids` from `at` on that can say `text`: an id says at least one byte, some say none. */
export const windowOf = (ids: Int32Array, at: number, text: string): Int32Array =>
  ids.subarray(at, Math.min(ids.length, at + mostIds(text)))

const mostIds = (text: string): number => 3 * text.length + 16

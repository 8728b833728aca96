// Several calls with one prompt (trajectory.md, section 3; case book, rule 7): the answer that re-appears in a later prompt
// is the delivered one, the others are abandoned. If no prompt decides, undelivered answers go, then those that a marked
// retry replaced; what is left are samples taken on purpose.

import type { SetAsideReason } from '../domain/trajectory.js'
import { answerOf, isLikeAnswer, viewOf } from './chat.js'
import { type Eligible, eligibleFor, type Match, nearestBefore } from './joins.js'
import type { PromptNode, PromptTree } from './prompt-tree.js'
import type { Call } from './screen.js'
import { hasAt } from './token-hash.js'
import { commonLength, idsOf } from './token-tree.js'
import type { Seen } from './view.js'

/** A prompt that was seen, and the parent found for it among all calls. */
export interface Sighting {
  readonly seen: Seen
  readonly node: PromptNode
  readonly side: boolean
  readonly match: Match | null
}

/** Calls that are no part of the agent's work, with the reason. */
export function findAbandoned(tree: PromptTree, sightings: readonly Sighting[]): ReadonlyMap<Call, SetAsideReason> {
  const shown = new Set<Call>()
  const none: ReadonlySet<Call> = new Set()
  for (const sighting of sightings) {
    if (sighting.match) shown.add(sighting.match.parent)
    const eligible = eligibleFor(sighting.side, none)
    for (const node of nearestBefore(sighting.node, eligible)) showRemains(sighting, node, eligible, shown)
  }
  const gone = new Map<Call, SetAsideReason>()
  for (const node of tree.nodes) for (const group of attempts(node.calls)) settle(group, shown, gone)
  return gone
}

/** Calls of one prompt that could be attempts at one turn: same agent, same kind. */
function attempts(calls: readonly Call[]): readonly (readonly Call[])[] {
  const groups = new Map<string, Call[]>()
  for (const call of calls) {
    const key = `${call.side} ${call.record.agentId ?? ''}`
    const group = groups.get(key)
    if (group) group.push(call)
    else groups.set(key, [call])
  }
  return [...groups.values()]
}

/** Marks the calls of `node` of which the sighting shows what a template leaves of an answer, where it is in doubt. */
function showRemains(sighting: Sighting, node: PromptNode, eligible: Eligible, shown: Set<Call>): void {
  for (const group of attempts(node.calls.filter(eligible))) {
    const inDoubt = group.length > 1 || group[0]?.delivered === 'no'
    if (!inDoubt || (sighting.match && group.includes(sighting.match.parent))) continue
    const remains = group.map(call => remainsShown(call, sighting))
    const most = Math.max(...remains)
    const best = group[remains.indexOf(most)]
    if (most > 0 && best) shown.add(best)
  }
}

/** How much of `call`'s answer stands in its place in the sighted prompt: messages first, else a tail of its ids. */
function remainsShown(call: Call, { seen, node }: Sighting): number {
  const answer = answerOf(call.record)
  const [replay] = seen.messages.from(call.messages.count)
  if (answer && replay?.['role'] === 'assistant')
    return isLikeAnswer(viewOf(answer), viewOf(replay)) ? call.sampled.length : 0
  const { sampled } = call
  const at = commonLength(call.prompt, node.path)
  const place = idsOf(node.path, at, at + sampled.length)
  for (let from = 0; from < sampled.length; from++) {
    const rest = sampled.subarray(from)
    if (rest.length === 1 && rest[0] === call.record.endTokenId) return 0
    if (rest[0] === place[0] && hasAt(place, rest, 0)) return rest.length
  }
  return 0
}

function settle(group: readonly Call[], shown: ReadonlySet<Call>, gone: Map<Call, SetAsideReason>): void {
  const stays = group.filter(call => shown.has(call))
  if (stays.length > 0) {
    for (const call of group) if (!shown.has(call)) gone.set(call, 'abandoned_retry')
    return
  }
  const lost = group.filter(call => call.delivered === 'no')
  for (const call of lost) gone.set(call, group.length > 1 ? 'abandoned_retry' : 'aborted')
  dropReplaced(group, gone)
}

/** Each marked retry stands for one earlier attempt that the harness gave up; those already gone count. */
function dropReplaced(group: readonly Call[], gone: Map<Call, SetAsideReason>): void {
  const free = [...group].sort(
    (left, right) =>
      left.record.retryCount - right.record.retryCount ||
      Number(gone.has(right)) - Number(gone.has(left)) ||
      Number(left.delivered !== 'no') - Number(right.delivered !== 'no') ||
      left.rank - right.rank,
  )
  for (const retry of group.filter(call => call.record.retryCount > 0)) {
    const at = free.findIndex(call => call !== retry && call.record.retryCount < retry.record.retryCount)
    const [replaced] = at < 0 ? [] : free.splice(at, 1)
    if (replaced && !gone.has(replaced)) gone.set(replaced, 'abandoned_retry')
  }
}

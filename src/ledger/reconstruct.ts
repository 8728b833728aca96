// The token ledger: which captured calls belong together, what is trained and what is set aside, and why. Pure; what needs
// text is asked for (text-match.ts). The result does not depend on the order of the calls. Linear in the tokens received.

import type { SessionLedger } from '../domain/completion.js'
import type { BreakReason, JoinClass, JoinSetting, LedgerCounts, SetAsideReason } from '../domain/trajectory.js'
import { findBreakReason } from './break-reason.js'
import { type ForestFigures, figuresOf, type Links } from './forest.js'
import { classify, eligibleFor, findByPrompt, findLenient, findParents, type Match, nearestBefore } from './joins.js'
import { buildPromptTree, type PromptNode, type PromptTree } from './prompt-tree.js'
import { referenceFigures } from './reference-rule.js'
import { findAbandoned, type Sighting } from './retries.js'
import { type Call, type Screened, type SetAside, screen } from './screen.js'
import { type Asking, type AskingMany, sideBySide } from './text-match.js'

export interface LedgerSettings {
  readonly join: JoinSetting
  /** Side calls become traces of their own instead of being set aside. */
  readonly trainSideCalls: boolean
  /** Abandoned retries become traces of their own instead of being set aside. */
  readonly keepRetries: boolean
  /** For `prompt_prefix` and the reference's rule; null = the template's own. */
  readonly endOfTurnTokenId: number | null
}

export interface Reconstruction {
  /** Calls that are trained, in rank order. */
  readonly calls: readonly Call[]
  readonly setAside: readonly SetAside[]
  /** Parents under the chosen setting. */
  readonly links: Links
  /** Class of each call that has a predecessor; abandoned retries are classed too. */
  readonly classes: ReadonlyMap<Call, JoinClass>
  /** Calls that do not go on from their nearest predecessor: they start a trace, or go on from an older answer. */
  readonly breaks: ReadonlyMap<Call, BreakReason>
  readonly sampledTokens: number
  readonly alternatives: LedgerCounts['alternatives']
  readonly reference: LedgerCounts['reference']
}

/** Reconstructs a sealed session. Throws INTERNAL_BUG when a call belongs to another session. */
export function* reconstruct(ledger: SessionLedger, settings: LedgerSettings): AskingMany<Reconstruction> {
  const screened = screen(ledger)
  const tree = buildPromptTree(screened.observed, screened.calls)
  const sightings = yield* sight(tree, screened)
  const gone = leave(screened, findAbandoned(tree, sightings), settings)
  const calls = screened.calls.filter(call => !gone.has(call))
  const classed = screened.calls.filter(call => (gone.get(call) ?? 'abandoned_retry') === 'abandoned_retry')
  const goneCalls = new Set(gone.keys())
  const matches = new Map(sightings.map(({ node, side, match }) => [sightingKey(node, side), match]))
  const joined = yield* sideBySide(
    classed.map(call => {
      const node = tree.nodeOf(call.prompt)
      return join(call, node, matches.get(sightingKey(node, call.side)) ?? null, goneCalls, settings)
    }),
  )
  const links = (setting: JoinSetting): Map<Call, Match> =>
    new Map(
      joined.flatMap(({ call, matches: found }) =>
        found[setting] && !gone.has(call) ? [[call, found[setting]] as const] : [],
      ),
    )
  const figures = (setting: JoinSetting): ForestFigures => figuresOf(calls, links(setting))
  const chosen = links(settings.join)
  return {
    calls,
    setAside: [
      ...screened.setAside,
      ...[...gone].map(([call, reason]) => ({ seen: call, reason, tokens: call.sampled.length })),
    ],
    links: chosen,
    classes: new Map(joined.flatMap(({ call, joinClass }) => (joinClass ? [[call, joinClass] as const] : []))),
    breaks: new Map(
      joined.flatMap(({ call, reason, matches: { faithful } }) =>
        reason && !gone.has(call) && (chosen.get(call) ?? null) === faithful ? [[call, reason] as const] : [],
      ),
    ),
    sampledTokens: screened.sampledTokens,
    alternatives: {
      faithful: figures('faithful'),
      lenient: figures('lenient'),
      prompt_prefix: figures('prompt_prefix'),
    },
    reference: referenceFigures(screened.seen, tree, settings.endOfTurnTokenId, screened.sampledTokens),
  }
}

/** The parent of every distinct prompt among all usable calls, once for main work and once for side calls. */
function* sight(tree: PromptTree, { observed }: Screened): AskingMany<Sighting[]> {
  const parents = yield* findParents(tree)
  const sightings = new Map<number, Sighting>()
  for (const seen of observed) {
    const node = tree.nodeOf(seen.prompt)
    const side = seen.record.sideRule !== null
    const key = sightingKey(node, side)
    const match = parents.get(node)?.[side ? 'all' : 'work'] ?? null
    if (!sightings.has(key)) sightings.set(key, { seen, node, side, match })
  }
  return [...sightings.values()]
}

const sightingKey = (node: PromptNode, side: boolean): number => node.number * 2 + Number(side)

/** Calls that leave after the retries are settled, with their reasons. */
function leave(
  { calls }: Screened,
  abandoned: ReadonlyMap<Call, SetAsideReason>,
  { trainSideCalls, keepRetries }: LedgerSettings,
): ReadonlyMap<Call, SetAsideReason> {
  const gone = new Map<Call, SetAsideReason>()
  for (const call of calls) {
    const reason = call.side && !trainSideCalls ? 'side_call' : abandoned.get(call)
    if (reason && !(reason === 'abandoned_retry' && keepRetries)) gone.set(call, reason)
  }
  return gone
}

interface Joined {
  readonly call: Call
  readonly joinClass: JoinClass | null
  readonly reason: BreakReason | null
  readonly matches: Readonly<Record<JoinSetting, Match | null>>
}

function* join(
  call: Call,
  node: PromptNode,
  match: Match | null,
  gone: ReadonlySet<Call>,
  settings: LedgerSettings,
): Asking<Joined> {
  const eligible = eligibleFor(call.side, gone)
  const nearest = nearestBefore(node, eligible)
  const faithful = match && eligible(match.parent) ? match : null
  const joinClass = classify(nearest, faithful)
  if (joinClass !== 'rewritten')
    return { call, joinClass, reason: null, matches: { faithful, lenient: faithful, prompt_prefix: faithful } }
  const lenient = (yield* findLenient(node, nearest, eligible)) ?? faithful
  const before = nearest.flatMap(other => other.calls.filter(eligible))[0]
  const reason = before ? yield* findBreakReason(before, call, node) : 'unknown'
  const byPrompt = findByPrompt(node, eligible, settings.endOfTurnTokenId) ?? faithful
  return { call, joinClass, reason, matches: { faithful, lenient, prompt_prefix: byPrompt } }
}

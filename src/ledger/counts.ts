// The `ledger` object of every result. What must hold: sampled = trained + the sum of what is set aside.

import type { BreakReason, JoinClass, LedgerCounts, SetAsideReason } from '../domain/trajectory.js'

/** Adds `tokens` to `counts[key]`; zero leaves no entry. */
export function addTo<K extends string>(counts: Partial<Record<K, number>>, key: K, tokens: number): void {
  if (tokens > 0) counts[key] = (counts[key] ?? 0) + tokens
}

export function countBy<K extends string>(values: Iterable<K>): Partial<Record<K, number>> {
  const counts: Partial<Record<K, number>> = {}
  for (const value of values) addTo(counts, value, 1)
  return counts
}

/** The same counts with their keys in alphabetical order, so that equal results are equal as text. */
export const byKey = <K extends string>(counts: Partial<Record<K, number>>): Partial<Record<K, number>> =>
  Object.fromEntries(Object.entries(counts).sort(([left], [right]) => (left < right ? -1 : 1))) as typeof counts // same keys

/** sampled - trained - set aside: 0 in every sound ledger. */
export const unaccountedTokens = ({ tokens }: LedgerCounts): number =>
  tokens.sampled - tokens.trained - Object.values(tokens.setAside).reduce((sum, n) => sum + n, 0)

const NOTHING = { traces: 0, trainerTokens: 0, trainedTokens: 0, contextIdsDiffering: 0 }

/** Counts of a session without a single call. */
export const emptyCounts = (): LedgerCounts => ({
  calls: 0,
  failedCalls: 0,
  traces: 0,
  tokens: { sampled: 0, trained: 0, setAside: {} satisfies Partial<Record<SetAsideReason, number>> },
  notTrainable: {},
  joins: {} satisfies Partial<Record<JoinClass, number>>,
  breaks: {} satisfies Partial<Record<BreakReason, number>>,
  rules: {},
  sideCalls: {},
  alternatives: { faithful: NOTHING, lenient: NOTHING, prompt_prefix: NOTHING },
  perRequest: { traces: 0, trainerTokens: 0 },
  reference: { traces: 0, keptTokens: 0, lostTokens: 0, misplacedTokens: 0 },
})

// What must come out of a scenario with a CLI, and whether it did.

import type { SessionRow } from '../../src/cli/quickstart/view.js'
import { isObject } from '../../src/domain/json.js'
import { type CapturedCall, sideCalls } from './check.js'

type Range = readonly [least: number, most: number]

export interface Expectation {
  /** Where this stands: a section of the harness book, the decisions or the contract; `measured` = no document says it. */
  readonly basis: string
  readonly status: 'COMPLETED' | 'ERROR'
  readonly failureClass: string | null
  /** Errors that some seeds lead this CLI to, by its own rules; such a session is ERROR, harness. */
  readonly mayFail?: RegExp
  /** Calls that gave no answer. */
  readonly failed: Range
  /** Calls of the main agent, at least. */
  readonly calls: number
  /** Answers of the main agent that call tools, at least. */
  readonly turns?: number
  /** Traces of the main agent. */
  readonly main: Range
  readonly sub: Range
  /** Side calls by the rule that knows them; a rule that is not named has none. */
  readonly side: Readonly<Record<string, Range>>
  /** All joins; null = any whose break has a name, since the run breaks prefixes on purpose. */
  readonly joins: 'exact' | null
  readonly note?: string
}

/** What one or more sessions came to, for the table. */
export interface SessionFacts {
  /** Answers of the main agent that call tools. */
  readonly turns: number
  /** Of the main agent. */
  readonly traces: number
  /** Calls of any agent that follow another one, and how many of them extend it token for token. */
  readonly joins: number
  readonly exact: number
  /** Rule -> side calls. */
  readonly side: Readonly<Record<string, number>>
}

export const NO_FACTS: SessionFacts = { turns: 0, traces: 0, joins: 0, exact: 0, side: {} }

export function sessionFacts(
  result: Readonly<Record<string, unknown>>,
  { joins }: Pick<SessionRow, 'joins'>,
  calls: readonly CapturedCall[],
): SessionFacts {
  return {
    turns: calls.filter(({ agent, turn }) => agent === 'main' && turn.calls.length > 0).length,
    traces: tracesOf(result, 'main'),
    joins: Object.values(joins).reduce((sum, count) => sum + count, 0),
    exact: joins['exact'] ?? 0,
    side: sideCalls(result),
  }
}

export function summedFacts(all: readonly SessionFacts[]): SessionFacts {
  const sum = (key: 'turns' | 'traces' | 'joins' | 'exact'): number => all.reduce((total, one) => total + one[key], 0)
  return {
    turns: sum('turns'),
    traces: sum('traces'),
    joins: sum('joins'),
    exact: sum('exact'),
    side: summedCounts(all.map(({ side }) => side)),
  }
}

export function summedCounts(all: readonly Readonly<Record<string, number>>[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const one of all) for (const [name, count] of Object.entries(one)) counts[name] = (counts[name] ?? 0) + count
  return counts
}

/** Nothing = all as expected. */
export function expectationProblems(
  expected: Expectation,
  row: SessionRow,
  calls: readonly CapturedCall[],
  result: Readonly<Record<string, unknown>>,
): readonly string[] {
  const facts = sessionFacts(result, row, calls)
  const isAllowed = row.status === 'ERROR' && row.failureClass === 'harness' && expected.mayFail?.test(row.error ?? '')
  const aside = facts.side
  return [
    ...(isAllowed || row.status === expected.status
      ? []
      : [`status: wanted ${expected.status}, got ${row.status} (${row.error})`]),
    ...(isAllowed || row.failureClass === expected.failureClass
      ? []
      : [`failure_class: wanted ${expected.failureClass}, got ${row.failureClass}`]),
    ...within('failed calls', row.failedCalls, expected.failed),
    ...within('main traces', facts.traces, expected.main),
    ...within('sub traces', tracesOf(result, 'sub'), expected.sub),
    ...Object.keys({ ...expected.side, ...aside }).flatMap(rule =>
      within(`side calls ${rule}`, aside[rule] ?? 0, expected.side[rule] ?? [0, 0]),
    ),
    ...within('calls', row.calls, [expected.calls, Number.POSITIVE_INFINITY]),
    ...within('turns', facts.turns, [expected.turns ?? 0, Number.POSITIVE_INFINITY]),
    ...(expected.joins === 'exact' && facts.exact < facts.joins
      ? [`${facts.joins - facts.exact} joins not exact: ${JSON.stringify(row.breaks)}`]
      : []),
    ...unnamedBreaks(row),
  ]
}

/** A join that is not exact is a break with a cause, or drift that is counted. */
function unnamedBreaks({ joins, breaks }: SessionRow): readonly string[] {
  const rewritten = joins['rewritten'] ?? 0
  const named = Object.entries(breaks).reduce((sum, [reason, count]) => sum + (reason === 'unknown' ? 0 : count), 0)
  return named < rewritten
    ? [`${rewritten - named} of ${rewritten} breaks have no name: ${JSON.stringify(breaks)}`]
    : []
}

function tracesOf(result: Readonly<Record<string, unknown>>, agent: string): number {
  const traces = isObject(result['trajectory']) ? result['trajectory']['traces'] : []
  return (Array.isArray(traces) ? traces : []).filter(
    trace => isObject(trace) && isObject(trace['metadata']) && trace['metadata']['agent'] === agent,
  ).length
}

const within = (name: string, value: number, [least, most]: Range): readonly string[] =>
  value >= least && value <= most ? [] : [`${name}: wanted ${least} to ${most}, got ${value}`]

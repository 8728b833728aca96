// The results of the cells: a line as each ends, one table in order at the end, and the same as Markdown or JSON in a file.

import Table from 'cli-table3'
import { summedCounts } from './expect.js'
import type { Outcome } from './outcome.js'

/** What a report says of its run. */
export interface RunFacts {
  /** null = not in a repository. */
  readonly commit: string | null
  readonly startedAt: string
  readonly seconds: number
  readonly jobs: number
  readonly node: string
  readonly processors: number
  readonly command: string
}

export interface Totals {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

export const isBad = ({ problems }: Outcome): boolean => problems.length > 0

export function totalsOf(outcomes: readonly Outcome[]): Totals {
  const failed = outcomes.filter(isBad).length
  const skipped = outcomes.filter(outcome => outcome.skipped !== null).length
  return { passed: outcomes.length - failed - skipped, failed, skipped }
}

export const totalsText = ({ passed, failed, skipped }: Totals): string =>
  `${passed} passed, ${failed} failed, ${skipped} skipped`

/** For a terminal. A cell that did not run is empty; one that cannot exist is a dash. */
export function terminalTable(outcomes: readonly Outcome[]): string {
  const { harnesses, scenarios, at } = grid(outcomes)
  const table = new Table({ head: ['harness', ...scenarios], style: { head: [], border: [] } })
  for (const harness of harnesses)
    table.push([harness, ...scenarios.map(scenario => cell(at(harness, scenario)).join('\n'))])
  return table.toString()
}

/** One block for a cell: verdict, its sessions, what is wrong with it. */
export function outcomeText(outcome: Outcome): string {
  const { harness, scenario, problems, note, seconds, rows, folder, skipped } = outcome
  if (skipped !== null) return `-    ${harness} ${scenario}: ${skipped}`
  const sessions = rows.map(({ status, failureClass, traces, joins, breaks }) => {
    const ended = failureClass === null ? status : `${status} (${failureClass})`
    return `${ended}, ${traces} traces, joins ${JSON.stringify(joins)}, breaks ${JSON.stringify(breaks)}`
  })
  const lines = [
    ...sessions,
    ...problems.map(problem => `problem: ${problem}`),
    ...(note === null ? [] : [note]),
    ...(folder === null ? [] : [`see ${folder}`]),
  ]
  const words = factsOf(outcome)
  const head = `${verdict(outcome)} ${harness} ${scenario} (${seconds.toFixed(0)} s)`
  return [words.length === 0 ? head : `${head}: ${words.join(', ')}`, ...lines.map(text => `     ${text}`)].join('\n')
}

/** How often each harness showed a captured call again, and in which way. */
export function agreementText(outcomes: readonly Outcome[]): string {
  const lines = grid(outcomes).harnesses.map(harness => {
    const own = outcomes.filter(outcome => outcome.harness === harness)
    const sum = (key: 'matched' | 'total'): number => own.reduce((total, { agreement }) => total + agreement[key], 0)
    const ways = summedCounts(own.map(({ agreement }) => agreement.ways))
    const list = Object.entries(ways)
      .map(([way, count]) => `${way} ${count}`)
      .join(', ')
    return `${harness}: ${sum('matched')} of ${sum('total')}${list === '' ? '' : ` (${list})`}`
  })
  return lines.join('\n')
}

export function markdownReport(outcomes: readonly Outcome[], facts: RunFacts): string {
  const { harnesses, scenarios, at } = grid(outcomes)
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const ran = outcomes.filter(({ skipped }) => skipped === null)
  const remarks = outcomes.filter(outcome => isBad(outcome) || outcome.note !== null || outcome.skipped !== null)
  return [
    '# Harness results',
    '',
    '<!-- Written by `npm run e2e:harnesses -- --report FILE`; do not edit. -->',
    '',
    `Commit ${facts.commit ?? 'unknown'}, ${facts.startedAt}, Node ${facts.node}, ${facts.processors} processors: \`${facts.command}\`, ${facts.jobs} at a time, ${duration(facts.seconds)}. **${totalsText(totalsOf(outcomes))}**`,
    '',
    row(['', ...scenarios]),
    row(['---', ...scenarios.map(() => '---')]),
    ...harnesses.map(harness => row([harness, ...scenarios.map(scenario => cell(at(harness, scenario)).join('<br>'))])),
    '',
    'Calls that the harness shows again as they were captured:',
    '',
    ...agreementText(outcomes)
      .split('\n')
      .map(line => `- ${line}`),
    '',
    ...(remarks.length === 0 ? [] : ['Remarks:', '']),
    ...remarks.map(
      ({ harness, scenario, problems, note, skipped }) =>
        `- ${harness}, ${scenario}: ${[...problems, ...[note, skipped].filter(text => text !== null)].join('; ')}`,
    ),
    ...(remarks.length === 0 ? [] : ['']),
    'Where each expectation stands:',
    '',
    ...scenarios.flatMap(scenario => bases(scenario, ran)),
    '',
  ].join('\n')
}

export const jsonReport = (outcomes: readonly Outcome[], facts: RunFacts): string =>
  `${JSON.stringify({ ...facts, ...totalsOf(outcomes), cells: outcomes.map(outcome => ({ ...outcome, verdict: verdict(outcome), text: factsOf(outcome) })) }, null, 1)}\n`

/** Equal bases of one scenario in one line. */
function bases(scenario: string, outcomes: readonly Outcome[]): readonly string[] {
  const byBasis = new Map<string, string[]>()
  for (const { harness, basis, scenario: own } of outcomes)
    if (own === scenario && basis !== null) byBasis.set(basis, [...(byBasis.get(basis) ?? []), harness])
  return [...byBasis].map(([basis, harnesses]) =>
    byBasis.size === 1 ? `- ${scenario}: ${basis}` : `- ${scenario}, ${harnesses.join(', ')}: ${basis}`,
  )
}

const verdict = (outcome: Outcome): string => (outcome.skipped !== null ? '-' : isBad(outcome) ? 'FAIL' : 'pass')

function cell(outcome: Outcome | undefined): readonly string[] {
  return outcome === undefined ? [] : [verdict(outcome), ...factsOf(outcome)]
}

/** In a few words each: calls, turns, traces, joins, breaks, failures. */
function factsOf({ skipped, agreement, rows, facts }: Outcome): readonly string[] {
  if (skipped !== null || rows.length === 0) return []
  const sum = (key: 'calls' | 'failedCalls'): number => rows.reduce((total, row) => total + row[key], 0)
  const calls = agreement.total === 0 ? `${sum('calls')} calls` : `${agreement.matched} of ${agreement.total} calls`
  return [
    ...(rows.length > 1 ? [`${rows.length} sessions`] : []),
    calls,
    ...(facts.turns > 0 ? [plural(facts.turns, 'turn')] : []),
    plural(facts.traces, 'main trace'),
    `${facts.exact}/${facts.joins} exact`,
    ...Object.entries(summedCounts(rows.map(({ breaks }) => breaks))).map(([reason, count]) => `${reason} ${count}`),
    ...Object.entries(facts.side).map(([rule, count]) => `${plural(count, 'side call')}: ${rule}`),
    ...(sum('failedCalls') > 0 ? [`${sum('failedCalls')} failed`] : []),
  ]
}

function grid(outcomes: readonly Outcome[]) {
  return {
    harnesses: [...new Set(outcomes.map(({ harness }) => harness))],
    scenarios: [...new Set(outcomes.map(({ scenario }) => scenario))],
    at: (harness: string, scenario: string): Outcome | undefined =>
      outcomes.find(outcome => outcome.harness === harness && outcome.scenario === scenario),
  }
}

const plural = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? '' : 's'}`

const duration = (seconds: number): string => `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`

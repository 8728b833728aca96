// The quickstart's last word: what came of each session, the group's advantages, and what the capture is worth. Pure text.

import Table from 'cli-table3'
import { groupAdvantages } from '../../domain/advantages.js'
import { isAccounted, type SessionRow, sum } from './view.js'

export interface RunFigures {
  readonly harness: string
  readonly downloadedBytes: number
  readonly secondsToFirstReward: number | null
  readonly seconds: number
  readonly saveDir: string
  readonly taskId: string
  readonly killed: boolean
  readonly drift: readonly string[]
}

const seconds = (ms: number | undefined): string => (ms === undefined ? '-' : (ms / 1000).toFixed(1))
const named = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ') || '-'

/** Tables without colour codes when the output is no terminal. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const made = new Table({ head: [...head], style: { head: [], border: [] } })
  for (const row of rows) made.push([...row])
  return made.toString()
}

/** `rows` in sample order, one per session. */
export function report(rows: readonly SessionRow[], figures: RunFigures): string {
  const lines: string[] = []
  lines.push(
    table(
      [
        'session',
        'status',
        'reward',
        'calls',
        'traces',
        'sampled',
        'trained',
        'set aside',
        'joins',
        'init',
        'run',
        'build',
        'eval',
      ],
      rows.map(row => [
        row.sessionId.slice(0, 10),
        row.failureClass === null ? row.status : `${row.status} (${row.failureClass})`,
        row.reward === null ? 'none' : String(row.reward),
        String(row.calls),
        String(row.traces),
        String(row.sampled),
        String(row.trained),
        named(row.setAside),
        named(row.joins),
        seconds(row.timing.init_ms),
        seconds(row.timing.run_ms),
        seconds(row.timing.build_ms),
        seconds(row.timing.eval_ms),
      ]),
    ),
  )
  lines.push('Tokens are counted; stage times are in seconds.')
  for (const row of rows) if (row.error !== null) lines.push(`${row.sessionId.slice(0, 10)}: ${row.error}`)
  lines.push('', groupLine(rows), accountLine(rows), referenceLine(rows))
  const breaks = merged(rows.map(row => row.breaks))
  if (figures.drift.length > 0 || Object.keys(breaks).length > 0) {
    lines.push(
      `Broken prefixes by cause: ${named(breaks)}${figures.drift.length > 0 ? ` (asked for: ${figures.drift.join(', ')})` : ''}.`,
    )
  }
  if (figures.killed) {
    const lost = sum(rows.map(row => row.lost))
    const cut = sum(rows.map(row => row.failedCalls))
    lines.push(
      `The proxy's thread was killed in mid-run: ${lost === 0 ? 'no recorded token was lost' : `${lost} recorded tokens were lost`}; calls cut: ${cut}.`,
    )
  }
  const megabytes = (figures.downloadedBytes / 1e6).toFixed(1)
  const first =
    figures.secondsToFirstReward === null
      ? 'no reward'
      : `first reward after ${figures.secondsToFirstReward.toFixed(1)} s`
  lines.push(
    '',
    `${figures.harness}: ${megabytes} MB downloaded, ${first}, ${figures.seconds.toFixed(1)} s in all (from the end of the downloads).`,
    `Results: ${figures.saveDir}/task_${figures.taskId}/`,
    `Look at a trace: node dist/main.js inspect ${rows[0]?.sessionId ?? '<session>'} [--html page.html]`,
  )
  return lines.join('\n')
}

function groupLine(rows: readonly SessionRow[]): string {
  const shown = groupAdvantages(rows).map(({ advantage }) => (advantage === null ? 'none' : advantage.toFixed(3)))
  return `GRPO advantages (reward - mean over the group's sessions): ${shown.join(', ')}`
}

function accountLine(rows: readonly SessionRow[]): string {
  const wrong = rows.filter(row => !isAccounted(row))
  const sampled = sum(rows.map(row => row.sampled))
  const trained = sum(rows.map(row => row.trained))
  const aside = sum(rows.map(row => sum(Object.values(row.setAside))))
  if (wrong.length > 0) return `ACCOUNTS DO NOT BALANCE in ${wrong.map(row => row.sessionId).join(', ')}`
  return `Every sampled token accounted for: ${sampled} sampled = ${trained} trained + ${aside} set aside.`
}

function referenceLine(rows: readonly SessionRow[]): string {
  const kept = sum(rows.map(row => row.referenceKept))
  const lost = sum(rows.map(row => row.referenceLost))
  const misplaced = sum(rows.map(row => row.referenceMisplaced))
  const context = misplaced === 0 ? '' : ` (${misplaced} of them behind a context that the model did not see)`
  const trainer = sum(rows.map(row => row.trainerTokens))
  const perRequest = sum(rows.map(row => row.perRequestTokens))
  return [
    `The reference system's merge rule on the same capture: ${kept} sampled tokens kept${context}, ${lost} lost.`,
    `Tokens for the trainer: ${trainer}; one trace per call would make it ${perRequest}.`,
  ].join('\n')
}

function merged(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const total: Record<string, number> = {}
  for (const counts of all) for (const [name, count] of Object.entries(counts)) total[name] = (total[name] ?? 0) + count
  return total
}

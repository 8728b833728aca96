// What `sextant try` says: what was tried, what was seen, what to change, and the verdict. Pure text.

import type { ProbeFinding, ProbeReport } from '../../upstreams/probe.js'
import { isAccounted, type SessionRow, sum } from '../quickstart/view.js'

/** How the harness session went; `reason`: why there was none, or why it proves nothing. */
export interface Proof {
  readonly harness: string
  readonly row: SessionRow | null
  readonly reason: string | null
}

const MARKS: Readonly<Record<ProbeFinding['outcome'], string>> = {
  ok: 'ok',
  note: 'note',
  warning: 'WARNING',
  fault: 'FAULT',
}

/** Faults first, then warnings; each with its cure on a line of its own. */
export function findingsText(report: ProbeReport): string {
  const rank = (finding: ProbeFinding) => ['fault', 'warning', 'ok', 'note'].indexOf(finding.outcome)
  const findings = [...report.findings].sort((a, b) => rank(a) - rank(b))
  const width = Math.max(0, ...findings.map(({ check }) => check.length))
  const lines = findings.flatMap(({ check, outcome, seen, cure }) => {
    const line = `  ${MARKS[outcome].padEnd(8)}${check.padEnd(width + 2)}${seen}`
    return cure === null ? [line] : [line, `${' '.repeat(width + 12)}change: ${cure}`]
  })
  const seconds = (report.durationMs / 1000).toFixed(1)
  const where = `${report.urls.join(', ')} (profile ${report.profile}, model ${report.model || 'unknown'})`
  return [`Tried ${where}: ${report.calls} small calls in ${seconds} s. What was seen:`, ...lines].join('\n')
}

export function proofText({ harness, row, reason }: Proof): string {
  if (row === null) return `No session of ${harness}: ${reason ?? 'none was asked for'}.`
  const aside = Object.entries(row.setAside)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${count} ${name}`)
  const why = Object.entries(row.notTrainable).map(([name, count]) => `${count} ${name}`)
  const joins = Object.entries(row.joins).map(([name, count]) => `${count} ${name}`)
  const lines = [
    `One session of ${harness}: ${row.status}, ${row.calls} model calls, ${row.traces} traces.`,
    `  ${row.sampled} sampled tokens = ${row.trained} trained + ${sum(Object.values(row.setAside))} set aside` +
      `${aside.length === 0 ? '' : ` (${aside.join(', ')})`}${isAccounted(row) ? '' : ': THE ACCOUNTS DO NOT BALANCE'}`,
    `  joins between calls: ${joins.join(', ') || 'none'}`,
  ]
  if (why.length > 0) lines.push(`  calls that may not be trained: ${why.join(', ')} tokens`)
  if (row.error !== null) lines.push(`  ${row.error}`)
  if (reason !== null) lines.push(`  It proves nothing: ${reason}.`)
  return lines.join('\n')
}

export function verdictText(report: ProbeReport, proof: Proof | null): string {
  if (report.verdict === 'unreachable') return 'Verdict: NOT REACHED'
  if (report.verdict === 'evaluation_only') {
    return `Verdict: EVALUATION ONLY (${report.reasons.join(', ')})`
  }
  if (proof === null || proof.row === null) return 'Verdict: TRAINABLE (by the probe alone; no session has proven it)'
  return proof.reason === null
    ? 'Verdict: TRAINABLE'
    : `Verdict: EVALUATION ONLY (the probe passed, the session did not: ${proof.reason})`
}

/** 0 = trainable, 3 = evaluation only, 1 = not reached. */
export function exitCodeOf(report: ProbeReport, proof: Proof | null): number {
  if (report.verdict === 'unreachable') return 1
  const isDisproven = proof !== null && proof.row !== null && proof.reason !== null
  return report.verdict === 'trainable' && !isDisproven ? 0 : 3
}

/** Why a session of a server that passed its probe proves nothing; null = it proves what it should. */
export function unprovenReason(row: SessionRow): string | null {
  if (!isAccounted(row)) return 'the accounts do not balance'
  if (row.calls === 0) return `no model call was recorded${row.error === null ? '' : ` (${row.error})`}`
  if (row.trained === 0) return `none of its ${row.sampled} sampled tokens may be trained on`
  return null
}

// An audit as text for people and as JSON for programs. Pure.

import Table from 'cli-table3'
import type { JsonObject } from '../domain/json.js'
import { type CaptureAudit, hasFaults, RULES, type RuleFigures, type RuleName, type SessionAudit } from './figures.js'

const TITLES: Readonly<Record<RuleName, string>> = {
  exported: 'as exported',
  reference: 'reference',
  per_request: 'per_request',
  prompt_prefix: 'prompt_prefix',
  lenient: 'lenient',
  faithful: 'faithful',
}

const STYLE = { head: [], border: [] }
const NAMED_FILES = 20

/** `rows`: at most so many sessions, those with the most faults first. */
export function auditText(audit: CaptureAudit, rows: number): string {
  const { total, sessions, unreadable } = audit
  const parts = [
    `${total.sessions} sessions, ${known(total.calls)} calls, ${known(total.sampled)} tokens sampled`,
    rulesTable(audit),
    ...[
      countsLine('faithful sets aside', total.setAside, 'tokens'),
      countsLine('joins', total.joins, 'calls'),
      countsLine('breaks', total.breaks, 'calls'),
    ].filter(line => line !== null),
    sessionsTable(sessions, rows),
  ]
  if (unreadable.length > 0) {
    const named = unreadable.slice(0, NAMED_FILES).map(({ path, reason }) => `  ${path}: ${reason}`)
    const more = unreadable.length - named.length
    parts.push(
      [`${unreadable.length} unreadable:`, ...named, ...(more > 0 ? [`  and ${more} more (--json)`] : [])].join('\n'),
    )
  }
  return `${parts.join('\n')}\n`
}

function rulesTable({ total }: CaptureAudit): string {
  const table = new Table({
    head: [
      'join rule',
      'traces',
      'trainer tokens',
      'trained',
      'set aside',
      'lost',
      'context not seen',
      'same text, other ids',
      'trained twice',
      'not sampled',
    ],
    style: STYLE,
    wordWrap: true,
    colAligns: ['left', ...Array<'right'>(9).fill('right')],
    colWidths: [19, null, null, null, null, null, 11, 12, 9, 9],
  })
  for (const rule of RULES) {
    const figures = total.rules[rule]
    if (!figures) continue
    const partial = total.ruleSessions[rule] < total.sessions ? ` (${total.ruleSessions[rule]})` : ''
    table.push([
      `${TITLES[rule]}${partial}`,
      ...[
        figures.traces,
        figures.trainerTokens,
        figures.trained,
        figures.setAside,
        figures.lost,
        figures.unseen,
        figures.otherIds,
        figures.twice,
        figures.foreign,
      ].map(known),
    ])
  }
  return table.toString()
}

const faultsOf = (figures: RuleFigures | undefined): number =>
  figures ? (figures.lost ?? 0) + (figures.unseen ?? 0) + figures.twice + figures.foreign : 0

function sessionsTable(sessions: readonly SessionAudit[], rows: number): string {
  const judged = ({ rules }: SessionAudit) => rules.exported ?? rules.reference
  const sorted = [...sessions].sort((left, right) => faultsOf(judged(right)) - faultsOf(judged(left)))
  const shown = sorted.slice(0, rows)
  if (shown.length === 0) return ''
  const table = new Table({
    head: ['session', 'status', 'calls', 'sampled', 'by', 'lost', 'not seen', 'twice', 'faithful', 'notes'],
    style: STYLE,
    wordWrap: true,
    colWidths: [null, null, null, null, null, null, null, null, null, 40],
  })
  for (const session of shown) {
    const { rules } = session
    const figures = judged(session)
    table.push([
      `${session.taskId}/${session.sessionId}`,
      session.status ?? '-',
      known(session.calls),
      known(session.sampled),
      rules.exported ? 'export' : figures ? 'reference' : '-',
      known(figures?.lost ?? null),
      known(figures?.unseen ?? null),
      known(figures?.twice ?? null),
      rules.faithful ? `${rules.faithful.traces} traces, ${rules.faithful.trained}` : '-',
      session.notes.join('; '),
    ])
  }
  const hidden = sessions.length - shown.length
  return hidden > 0 ? `${table.toString()}\nand ${hidden} more sessions (--sessions N)` : table.toString()
}

function countsLine(title: string, counts: Readonly<Record<string, number>>, unit: string): string | null {
  const parts = Object.entries(counts).map(([key, value]) => `${key} ${value}`)
  return parts.length === 0 ? null : `${title} (${unit}): ${parts.join(', ')}`
}

const known = (value: number | null): string => (value === null ? '?' : String(value))

export const auditJson = (audit: CaptureAudit): JsonObject => ({
  schema_version: 1,
  total: { sessions: audit.total.sessions, rule_sessions: audit.total.ruleSessions, ...sessionFigures(audit.total) },
  sessions: audit.sessions.map(session => ({
    task_id: session.taskId,
    session_id: session.sessionId,
    status: session.status,
    source: session.source,
    builder: session.builder,
    faults: hasFaults(session),
    ...sessionFigures(session),
    notes: session.notes,
  })),
  unreadable: audit.unreadable,
  ignored_files: audit.ignoredFiles,
})

const sessionFigures = ({
  calls,
  sampled,
  rules,
  setAside,
  joins,
  breaks,
}: Pick<SessionAudit, 'calls' | 'sampled' | 'rules' | 'setAside' | 'joins' | 'breaks'>): JsonObject => ({
  calls,
  sampled,
  rules: Object.fromEntries(
    RULES.flatMap(rule => {
      const figures = rules[rule]
      if (!figures) return []
      return [
        [
          rule,
          {
            traces: figures.traces,
            trainer_tokens: figures.trainerTokens,
            trained: figures.trained,
            set_aside: figures.setAside,
            lost: figures.lost,
            context_not_seen: figures.unseen,
            same_text_other_ids: figures.otherIds,
            trained_twice: figures.twice,
            not_sampled: figures.foreign,
          },
        ],
      ]
    }),
  ),
  set_aside: setAside,
  joins,
  breaks,
})

// What the quickstart reads of a result: a typed, tolerant view over the wire JSON, as any client of the service would have it.

import { isObject } from '../../domain/json.js'

export interface SessionRow {
  readonly sessionId: string
  readonly status: string
  readonly error: string | null
  readonly failureClass: string | null
  readonly reward: number | null
  readonly calls: number
  readonly failedCalls: number
  readonly traces: number
  readonly sampled: number
  readonly trained: number
  readonly setAside: Readonly<Record<string, number>>
  /** Of these, tokens of calls that may not be trained, by reason. */
  readonly notTrainable: Readonly<Record<string, number>>
  readonly joins: Readonly<Record<string, number>>
  readonly breaks: Readonly<Record<string, number>>
  /** The contract's timing, milliseconds. */
  readonly timing: Readonly<Record<string, number>>
  /** The longest trace whose joins are all `exact`: number of its calls. */
  readonly longestExactTrace: number
  readonly referenceKept: number
  readonly referenceLost: number
  /** Of the kept: trained behind a context that the model did not see. */
  readonly referenceMisplaced: number
  /** Tokens a trainer reads of these traces, and what one trace per call would have made it read. */
  readonly trainerTokens: number
  readonly perRequestTokens: number
  readonly lost: number
}

const record = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {})
const number = (value: unknown): number => (typeof value === 'number' ? value : 0)
const text = (value: unknown): string | null => (typeof value === 'string' ? value : null)

function counts(value: unknown): Record<string, number> {
  const entries = Object.entries(record(value)).filter(
    (entry): entry is [string, number] => typeof entry[1] === 'number',
  )
  return Object.fromEntries(entries)
}

/** One row of a SessionResult as the service sends it. */
export function sessionRow(result: unknown): SessionRow {
  const session = record(result)
  const trajectory = record(session.trajectory)
  const trajectoryMetadata = record(trajectory.metadata)
  const ledger = record(trajectoryMetadata.ledger)
  const tokens = record(ledger.tokens)
  const reference = record(ledger.reference)
  const traces = Array.isArray(trajectory.traces) ? trajectory.traces.map(record) : []
  const last = traces.at(-1)
  const evaluation = record(trajectoryMetadata.evaluation)
  const metadata = record(session.metadata)
  return {
    sessionId: text(session.session_id) ?? '?',
    status: text(session.status) ?? '?',
    error: text(session.error),
    failureClass: text(metadata.failure_class),
    reward:
      typeof last?.reward === 'number'
        ? last.reward
        : typeof evaluation.outcome_reward === 'number'
          ? evaluation.outcome_reward
          : null,
    calls: number(ledger.calls),
    failedCalls: number(ledger.failed_calls),
    traces: traces.length,
    sampled: number(tokens.sampled),
    trained: number(tokens.trained),
    setAside: counts(tokens.set_aside),
    notTrainable: counts(ledger.not_trainable),
    joins: counts(ledger.joins),
    breaks: counts(ledger.breaks),
    timing: counts(session.timing),
    longestExactTrace: Math.max(0, ...traces.map(exactCalls)),
    referenceKept: number(reference.kept_tokens),
    referenceLost: number(reference.lost_tokens),
    referenceMisplaced: number(reference.misplaced_tokens),
    trainerTokens: number(record(record(ledger.alternatives).faithful).trainer_tokens),
    perRequestTokens: number(record(ledger.per_request).trainer_tokens),
    lost: number(record(metadata.lost).sampled_tokens),
  }
}

/** Number of calls of a trace whose joins are all exact; 0 when one is not. */
function exactCalls(trace: Record<string, unknown>): number {
  const calls = record(trace.metadata).completion_metadata
  if (!Array.isArray(calls)) return 0
  const joins = calls.map(call => record(call).join)
  return joins.every((join, index) => (index === 0 ? join === null : join === 'exact')) ? calls.length : 0
}

export const sum = (values: Iterable<number>): number => {
  let total = 0
  for (const value of values) total += value
  return total
}

/** sampled = trained + set aside + lost, the promise of every session. */
export const isAccounted = (row: SessionRow): boolean => row.sampled === row.trained + sum(Object.values(row.setAside))

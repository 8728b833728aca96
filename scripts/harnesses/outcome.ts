// What became of one cell: a scenario with a CLI.

import type { SessionRow } from '../../src/cli/quickstart/view.js'
import type { Agreement } from './check.js'
import { NO_FACTS, type SessionFacts } from './expect.js'
import type { CliId } from './scenarios.js'

export interface Outcome {
  readonly harness: CliId
  readonly scenario: string
  /** Why there is nothing to run; null = it ran. */
  readonly skipped: string | null
  readonly problems: readonly string[]
  readonly agreement: Agreement
  readonly rows: readonly SessionRow[]
  readonly facts: SessionFacts
  /** Where the expectation stands. */
  readonly basis: string | null
  readonly note: string | null
  readonly seconds: number
  /** Kept only where something failed, or on request. */
  readonly folder: string | null
}

const NO_AGREEMENT: Agreement = { matched: 0, total: 0, ways: {}, problems: [] }

/** A cell that came to no result. */
export function failed(harness: CliId, scenario: string, startedAt: number, problem: string, folder?: string): Outcome {
  return {
    ...skipped(harness, scenario, ''),
    skipped: null,
    problems: [problem],
    seconds: since(startedAt),
    folder: folder ?? null,
  }
}

/** A cell that cannot exist for this CLI. */
export const skipped = (harness: CliId, scenario: string, why: string): Outcome => ({
  harness,
  scenario,
  skipped: why,
  problems: [],
  agreement: NO_AGREEMENT,
  rows: [],
  facts: NO_FACTS,
  basis: null,
  note: null,
  seconds: 0,
  folder: null,
})

/** Seconds. */
export const since = (startedAt: number): number => (performance.now() - startedAt) / 1000

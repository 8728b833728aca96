// What can be seen of a running system: the tree of actors with their mailboxes, restarts and state summaries. Plain data, so that it
// travels between threads and prints as JSON. Summaries come from the behaviors; they hold no secrets.

import type { ErrorData } from '../../src/domain/errors.js'
import type { Cell, Phase } from './cell.js'
import type { DeadLetterCounts } from './dead-letters.js'

export interface ActorInspection {
  readonly path: string
  readonly phase: Phase
  readonly mailbox: { readonly depth: number; readonly capacity: number; readonly overflows: number }
  readonly restarts: number
  readonly lastError: ErrorData | null
  readonly summary: Readonly<Record<string, unknown>> | null
  readonly children: readonly ActorInspection[]
}

export interface SystemInspection {
  readonly name: string
  readonly actors: readonly ActorInspection[]
  readonly deadLetters: DeadLetterCounts
  /** Questions without an answer yet. */
  readonly asks: number
  readonly watches: number
  /** Names of the systems linked to this one. */
  readonly links: readonly string[]
}

export const inspectCell = (cell: Cell): ActorInspection => ({
  path: cell.address.path,
  phase: cell.phase,
  mailbox: { depth: cell.mailbox.size, capacity: cell.mailbox.spec.capacity, overflows: cell.mailbox.overflows },
  restarts: cell.restarts,
  lastError: cell.lastError,
  summary: cell.summary(),
  children: cell.family.children.map(inspectCell),
})

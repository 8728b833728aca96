// What the control store keeps, as plain JSON data: tasks as they were accepted, sessions that began, results (or where their files
// are), deliveries that no receiver has acknowledged, ids that a cancel has reserved. Times are milliseconds since the epoch.

import type { TerminalStatus } from '../domain/session.js'
import type { RuntimeSpec, TaskRequest } from '../domain/task.js'

export interface KeptDelivery {
  readonly state: 'pending' | 'delivered' | 'undelivered'
  readonly attempts: number
  readonly error: string | null
}

export interface KeptTask {
  readonly taskId: string
  readonly generation: number
  /** Order of submission over all lives of the service. */
  readonly arrival: number
  readonly status: 'running' | 'completed' | 'failed' | 'cancelling' | 'cancelled'
  /** With every default filled in, so that a restart with another config runs what was accepted. */
  readonly request: TaskRequest
  readonly runtime: RuntimeSpec
  /** In sample order. */
  readonly sessionIds: readonly string[]
  readonly deliveryId: string | null
  /** null = no callback, or the task has not ended. */
  readonly delivery: KeptDelivery | null
  readonly createdAtMs: number
  readonly updatedAtMs: number
}

/** What is known of a result without reading it. */
export interface KeptResult {
  readonly status: TerminalStatus
  readonly calls: number
  readonly sampledTokens: number
  /** Counts towards early stop. */
  readonly usable: boolean
  /** Result file (JSON, the binary form beside it); null = the binary form is in the store. */
  readonly path: string | null
  readonly atMs: number
}

/** A session that began, or that ended without beginning. Those that only wait have no record of their own. */
export interface KeptSession {
  readonly sessionId: string
  readonly taskId: string
  readonly generation: number
  readonly index: number
  /** Number of the pair that served it, whose shard holds its records. */
  readonly pair: number
  readonly dispatchedAtMs: number | null
  /** null = it began and has no result. */
  readonly result: KeptResult | null
}

/** An entry of the outbox. The body is made of the task's results, which are kept as they were written: the same bytes each time. */
export interface KeptOutbox {
  readonly deliveryId: string
  readonly taskId: string
  readonly generation: number
  readonly url: string
  readonly attempts: number
  readonly error: string | null
  /** Start of the first attempt; null = none was made. */
  readonly firstAtMs: number | null
  /** When it is due. */
  readonly nextAtMs: number
  /** From then on it is not tried again; null = not tried yet. */
  readonly expiresAtMs: number | null
}

export interface KeptTombstone {
  readonly taskId: string
  readonly untilMs: number
}

/** Everything but the texts of results. */
export interface KeptState {
  /** In order of arrival. */
  readonly tasks: readonly KeptTask[]
  readonly sessions: readonly KeptSession[]
  readonly outbox: readonly KeptOutbox[]
  readonly tombstones: readonly KeptTombstone[]
}

export const NOTHING_KEPT: KeptState = { tasks: [], sessions: [], outbox: [], tombstones: [] }

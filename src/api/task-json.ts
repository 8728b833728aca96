// Tasks as the contract writes them (3.6): TaskStatus for GET and DELETE, TaskResult for the callback. Extra fields are allowed (W-3).

import type { JsonObject } from '../domain/json.js'
import type { SessionResult } from '../domain/session.js'

/** A result that is read from disk when it is asked for, in its binary form (result-binary.ts). */
export interface StoredResult {
  readonly sessionId: string
  readonly binary: Uint8Array
}

export type TaskResult = SessionResult | StoredResult

/** What is needed of a task. */
export interface TaskSnapshot {
  readonly taskId: string
  readonly generation: number
  readonly status: string
  readonly totalSessions: number
  /** In sample order; only sessions that ended. */
  readonly results: readonly TaskResult[]
  readonly resultPaths: readonly string[]
  readonly sessions: readonly {
    readonly sessionId: string
    readonly sampleIndex: number
    readonly status: string
    readonly calls: number
    readonly sampledTokens: number
  }[]
  readonly delivery: { readonly state: string; readonly attempts: number; readonly error: string | null } | null
  readonly createdAtMs: number
  readonly updatedAtMs: number
}

/** A result as JSON text: token arrays are large, so they are written once and never become arrays of numbers. */
export type EncodeResult = (result: TaskResult) => string

/** The compact form (result-binary.ts). */
export type EncodeBinary = (result: TaskResult) => Promise<Uint8Array>

/** A result without its traces, and where the whole is. `generation`: of its task. */
export type EncodeReference = (result: TaskResult, generation: number) => string

/** Body of the trainer's callback, as JSON text. */
export const taskResultJson = (task: TaskSnapshot, encode: EncodeResult): string =>
  withResults(task, encode, {
    task_id: task.taskId,
    status: task.status,
    result_paths: task.resultPaths,
  })

/** Answer to GET and DELETE of a task, as JSON text. */
export const taskStatusJson = (task: TaskSnapshot, encode: EncodeResult): string =>
  withResults(task, encode, {
    task_id: task.taskId,
    status: task.status,
    total_sessions: task.totalSessions,
    completed_sessions: task.results.length,
    result_paths: task.resultPaths,
    generation: task.generation,
    status_counts: statusCounts(task),
    sessions: task.sessions.map(session => ({
      session_id: session.sessionId,
      sample_index: session.sampleIndex,
      status: session.status,
      calls: session.calls,
      sampled_tokens: session.sampledTokens,
    })),
    delivery: task.delivery,
    created_at: isoTime(task.createdAtMs),
    updated_at: isoTime(task.updatedAtMs),
  })

function withResults(task: TaskSnapshot, encode: EncodeResult, rest: JsonObject): string {
  return `${JSON.stringify(rest).slice(0, -1)},"results":[${task.results.map(encode).join(',')}]}`
}

/** Sessions per status, so that a task that "completed" with errors alone can be told. */
function statusCounts(task: TaskSnapshot): JsonObject {
  const counts: Record<string, number> = {}
  for (const { status } of task.sessions) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

/** ISO 8601 in UTC; null for 0 = never. */
const isoTime = (ms: number): string | null => (ms === 0 ? null : new Date(ms).toISOString())

// A result in the form that is asked for, whether it is in memory or was read from disk. Both give the same bytes.

import { isObject, type JsonObject } from '../domain/json.js'
import { sessionReferenceJson, sessionResultJson } from './encode.js'
import { binaryResultJson, sessionResultBinary } from './result-binary.js'
import type { TaskResult } from './task-json.js'

export const resultJson = (result: TaskResult): string =>
  'binary' in result ? binaryResultJson(result.binary, `result of ${result.sessionId}`) : sessionResultJson(result)

export const resultBinary = (result: TaskResult): Promise<Uint8Array> =>
  'binary' in result ? Promise.resolve(result.binary) : sessionResultBinary(result)

export interface ReferredResult {
  readonly taskId: string
  readonly sessionId: string
  readonly traces: number
  /** Tokens of all its traces, prompts included. */
  readonly trainerTokens: number
  readonly trainedTokens: number
}

/** A result without its traces; `refOf` says where the whole is. */
export function referenceJson(result: TaskResult, refOf: (of: ReferredResult) => JsonObject): string {
  if (!('binary' in result)) {
    const { taskId, sessionId, trajectory } = result
    const { traces, ledger } = trajectory
    const trainerTokens = traces.reduce((sum, trace) => sum + trace.promptIds.length + trace.responseIds.length, 0)
    const trainedTokens = ledger.tokens.trained
    return sessionReferenceJson(
      result,
      refOf({ taskId, sessionId, traces: traces.length, trainerTokens, trainedTokens }),
    )
  }
  const whole = JSON.parse(resultJson(result)) as JsonObject // what we wrote ourselves
  const trajectory = objectIn(whole, 'trajectory')
  const traces = Array.isArray(trajectory['traces']) ? trajectory['traces'] : []
  const length = (value: unknown): number => (Array.isArray(value) ? value.length : 0)
  const trainerTokens = traces.reduce(
    (sum: number, trace) => sum + (isObject(trace) ? length(trace['prompt_ids']) + length(trace['response_ids']) : 0),
    0,
  )
  const trainedTokens = Number(objectIn(objectIn(objectIn(trajectory, 'metadata'), 'ledger'), 'tokens')['trained'] ?? 0)
  const taskId = String(whole['task_id'])
  const ref = refOf({ taskId, sessionId: result.sessionId, traces: traces.length, trainerTokens, trainedTokens })
  return JSON.stringify({ ...whole, trajectory: { ...trajectory, traces: [] }, result_ref: ref })
}

const objectIn = (value: JsonObject, key: string): JsonObject => {
  const inner = value[key]
  return isObject(inner) ? (inner as JsonObject) : {}
}

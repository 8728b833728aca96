// A saved SessionResult of any server that keeps the contract (wire JSON) -> what an audit compares and a repair carries over. Token
// arrays become typed arrays at once; only the contract's keys are required, and the reference's files lack some of those. Pure.

import { RolloutError } from '../domain/errors.js'
import { isObject, type Json, type JsonObject } from '../domain/json.js'

export interface SavedTrace {
  readonly promptIds: Int32Array
  readonly responseIds: Int32Array
  /** What may be trained. Same length as `responseIds`. */
  readonly lossMask: Uint8Array
  /** Before a masking of the whole session, where the file keeps it; else the same. */
  readonly mask: Uint8Array
  readonly logprobs: Float32Array | null
  readonly reward: number | null
  readonly finishReason: string | null
  readonly promptMessages: readonly JsonObject[]
  readonly responseMessages: readonly JsonObject[]
  readonly tools: readonly JsonObject[] | null
  readonly metadata: JsonObject
}

export interface SavedSession {
  readonly sessionId: string
  readonly taskId: string
  readonly status: string
  readonly error: string | null
  readonly nodeId: string | null
  readonly traces: readonly SavedTrace[]
  readonly timing: JsonObject
  /** Of the result. */
  readonly metadata: JsonObject
  /** Of the trajectory. */
  readonly trajectory: JsonObject
}

export const isSavedResult = (value: unknown): boolean =>
  isObject(value) && typeof value['session_id'] === 'string' && isObject(value['trajectory'])

/** Throws TASK_INVALID, which says what is wrong. */
export function savedSessionOf(value: unknown): SavedSession {
  if (!isObject(value) || typeof value['session_id'] !== 'string') throw wrong('it has no session_id')
  const trajectory = value['trajectory']
  if (!isObject(trajectory)) throw wrong('it has no trajectory')
  const { traces } = trajectory
  if (!Array.isArray(traces)) throw wrong('trajectory.traces is no list')
  return {
    sessionId: value['session_id'],
    taskId: typeof value['task_id'] === 'string' ? value['task_id'] : '',
    status: typeof value['status'] === 'string' ? value['status'] : 'COMPLETED',
    error: typeof value['error'] === 'string' ? value['error'] : null,
    nodeId: typeof value['node_id'] === 'string' ? value['node_id'] : null,
    traces: traces.map((trace, i) => traceOf(trace, `trajectory.traces.${i}`)),
    timing: objectOf(value['timing']),
    metadata: objectOf(value['metadata']),
    trajectory: objectOf(trajectory['metadata']),
  }
}

function traceOf(value: unknown, path: string): SavedTrace {
  if (!isObject(value)) throw wrong(`${path} is no object`)
  const promptIds = idsOf(value['prompt_ids'], `${path}.prompt_ids`)
  const responseIds = idsOf(value['response_ids'], `${path}.response_ids`)
  const metadata = objectOf(value['metadata'])
  const discarded = metadata['discarded_loss_mask']
  const lossMask = maskOf(value['loss_mask'], responseIds.length, `${path}.loss_mask`)
  return {
    promptIds,
    responseIds,
    lossMask,
    mask: Array.isArray(discarded)
      ? maskOf(discarded, responseIds.length, `${path}.metadata.discarded_loss_mask`)
      : lossMask,
    logprobs: logprobsOf(value['response_logprobs'], responseIds.length),
    reward: typeof value['reward'] === 'number' ? value['reward'] : null,
    finishReason: typeof value['finish_reason'] === 'string' ? value['finish_reason'] : null,
    promptMessages: objectsOf(value['prompt_messages']),
    responseMessages: objectsOf(value['response_messages']),
    tools: Array.isArray(value['tools']) ? objectsOf(value['tools']) : null,
    metadata,
  }
}

function idsOf(value: unknown, path: string): Int32Array {
  if (!Array.isArray(value)) throw wrong(`${path} is no list`)
  const ids = new Int32Array(value.length)
  for (const [i, id] of value.entries()) {
    if (!Number.isInteger(id)) throw wrong(`${path}.${i} is no token id`)
    ids[i] = id
  }
  return ids
}

/** An empty mask beside tokens trains nothing (the reference may send one). */
function maskOf(value: unknown, length: number, path: string): Uint8Array {
  if (!Array.isArray(value)) throw wrong(`${path} is no list`)
  if (value.length !== length && value.length > 0)
    throw wrong(`${path} has ${value.length} values for ${length} tokens`)
  const mask = new Uint8Array(length)
  for (const [i, bit] of value.entries()) mask[i] = bit ? 1 : 0
  return mask
}

function logprobsOf(value: unknown, length: number): Float32Array | null {
  if (!Array.isArray(value) || value.length !== length) return null
  return value.every(one => typeof one === 'number') ? Float32Array.from(value) : null
}

const objectOf = (value: unknown): JsonObject => (isObject(value) ? (value as JsonObject) : {}) // decoded JSON
const objectsOf = (value: unknown): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter((one: unknown): one is JsonObject => isObject(one as Json)) : []

const wrong = (reason: string): RolloutError => new RolloutError('TASK_INVALID', `no session result: ${reason}`)

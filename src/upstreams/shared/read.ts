// Reading JSON of inference servers: tolerant of what is missing, never of what has another meaning.

import { RolloutError } from '../../domain/errors.js'
import { isObject, type Json, type JsonObject } from '../../domain/json.js'

export const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)

export const countOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

// What JSON.parse gave is JSON all the way down; `isObject` loses that, this says it again.
export const objectOf = (value: unknown): JsonObject | null => (isObject(value) ? (value as JsonObject) : null)

/** Token ids, or null when it is no list of non-negative integers below 2^31. */
export function idsOf(value: unknown): Int32Array | null {
  // Read from the answer's bytes.
  if (value instanceof Int32Array) return value
  if (!Array.isArray(value)) return null
  const ids = new Int32Array(value.length)
  for (let index = 0; index < value.length; index += 1) {
    const id: unknown = value[index]
    if (typeof id !== 'number' || id < 0 || id !== (id | 0)) return null
    ids[index] = id
  }
  return ids
}

/** Any JSON value, or undefined when `text` is none. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

export const malformed = (message: string): RolloutError =>
  new RolloutError('UPSTREAM_MALFORMED', `answer of the inference server: ${message}`)

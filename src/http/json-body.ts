// Body of an answer as a JSON object, for clients of ours.

import { RolloutError } from '../domain/errors.js'
import { isObject, type JsonObject } from '../domain/json.js'

/** Throws RolloutError UPSTREAM_MALFORMED saying what came in its place; never with a part of the body. */
export const parseJsonObject = (text: string): JsonObject => jsonObjectBy(JSON.parse, text)

/** The same of what `parse` makes of `body`; it throws where the body is not JSON. */
export function jsonObjectBy<B>(parse: (body: B) => unknown, body: B): JsonObject {
  let value: unknown
  try {
    value = parse(body)
  } catch (cause) {
    throw new RolloutError('UPSTREAM_MALFORMED', 'answer of the inference server: the body is not JSON', { cause })
  }
  if (!isObject(value)) {
    throw new RolloutError('UPSTREAM_MALFORMED', 'answer of the inference server: the body is not a JSON object')
  }
  // What JSON.parse gave is JSON all the way down.
  return value as JsonObject
}

// What a dialect does with a field: sends it through the decoder, with and without, and compares. Carried: the canonical request differs.
// Loss: it is dropped and the request's losses say so. Refused: a typed 400. None: it changes nothing, and nothing is recorded.

import { isDeepStrictEqual } from 'node:util'
import { detect } from '../src/dialects/detect.js'
import type { CanonicalRequest, DialectId } from '../src/domain/conversation.js'
import { RolloutError } from '../src/domain/errors.js'
import type { Json, JsonObject } from '../src/domain/json.js'
import type { Field } from './dialect-fields.js'

export type Fate = 'carried' | 'loss' | 'refused' | 'none'

const PATHS: Readonly<Record<DialectId, string>> = {
  anthropic_messages: '/v1/messages',
  openai_chat: '/v1/chat/completions',
  openai_responses: '/v1/responses',
  google_generate: '/v1beta/models/m:generateContent',
}

/** Fields of the Gen AI SDK's `config` that stand beside `generationConfig` in the body. */
const BESIDE = ['systemInstruction', 'tools', 'toolConfig', 'safetySettings', 'cachedContent', 'labels', 'serviceTier']
/** Fields that the SDK keeps for itself. */
export const CLIENT_ONLY = ['httpOptions', 'abortSignal', 'automaticFunctionCalling', 'betas', 'user_profile_id']

/** The body as it travels. Only Google's differs from the SDK's words. */
export function wireBody(id: DialectId, body: JsonObject): JsonObject {
  if (id !== 'google_generate') return body
  const { config, ...rest } = body
  if (config === undefined) return rest
  const entries = Object.entries(config as JsonObject)
  return {
    ...rest,
    ...Object.fromEntries(entries.filter(([key]) => BESIDE.includes(key))),
    generationConfig: Object.fromEntries(entries.filter(([key]) => !BESIDE.includes(key))) as Json,
  }
}

/** The canonical request, or why it was refused. */
export function decoded(id: DialectId, body: JsonObject): CanonicalRequest | RolloutError {
  const head = { method: 'POST', path: PATHS[id], query: new URLSearchParams(), headers: {} }
  const found = detect(head)
  if (found === null) throw new Error(`${PATHS[id]} is no route`)
  try {
    const { stored } = found.dialect
    // An earlier answer that is stored; one that is not is refused by name (case responses-request-11).
    if (stored !== undefined && stored.previousId(body) !== null) {
      return stored.decodeContinued(body, [{ type: 'message', role: 'user', content: 'earlier' }])
    }
    return found.dialect.decodeRequest(wireBody(id, body), found.route, head)
  } catch (cause) {
    if (cause instanceof RolloutError && cause.code === 'DIALECT_INVALID_REQUEST') return cause
    throw cause
  }
}

export function fateOf(id: DialectId, { body, other }: Pick<Field, 'body' | 'other'>): Fate {
  const sent = decoded(id, body)
  if (sent instanceof RolloutError) return 'refused'
  if (other === null) return sent.losses.length > 0 ? 'loss' : 'carried'
  const unsent = decoded(id, other)
  if (unsent instanceof RolloutError) return sent.losses.length > 0 ? 'loss' : 'carried'
  const known = new Set(unsent.losses.map(({ path, reason }) => `${path} ${reason}`))
  if (sent.losses.some(({ path, reason }) => !known.has(`${path} ${reason}`))) return 'loss'
  const { losses: _, ...one } = sent
  const { losses: __, ...two } = unsent
  return isDeepStrictEqual(one, two) ? 'none' : 'carried'
}

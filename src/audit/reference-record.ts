// A completion file of the reference system -> CompletionRecord. Which ids and logprobs a file holds is decided as the reference decides
// it (choice 0; sources are never mixed; one bad element voids a list); nothing is tokenised. What such a file does not say (side
// calls, delivery, sampling in force, generation prompt) stays unknown. Pure.

import type { CompletionRecord } from '../domain/completion.js'
import { type DialectId, FINISH_WORDS } from '../domain/conversation.js'
import type { CompletionId, SessionId } from '../domain/ids.js'
import { isObject, type JsonObject } from '../domain/json.js'

/** A record, and whether the file tells how much was sampled: long calls lose their answer to the reference's size limit. */
export interface ReadCompletion {
  readonly record: CompletionRecord
  readonly tokensKnown: boolean
}

/** null = the value is no completion. `sequence`: its place among the session's files, which is the order of finish. */
export function completionOf(value: unknown, sessionId: string, sequence: number): ReadCompletion | null {
  if (!isObject(value) || typeof value['completion_id'] !== 'string' || !('response' in value)) return null
  const response = objectIn(value, 'response')
  const choices = Array.isArray(response['choices']) ? response['choices'] : []
  const choice = isObject(choices[0]) ? choices[0] : {}
  const usage = objectIn(response, 'usage')
  const { sampledIds, logprobs } = sampledOf(choice, response)
  const promptIds = promptOf(choice, response)
  const finishedAtMs = timeOf(value['timestamp'])
  const engineFinish = typeof choice['finish_reason'] === 'string' ? choice['finish_reason'] : ''
  const usageTokens = countOf(usage['completion_tokens'])
  const request = isObject(value['transformed_request']) ? value['transformed_request'] : objectIn(value, 'request')
  const record: CompletionRecord = {
    ...UNTOLD,
    completionId: value['completion_id'] as CompletionId, // any text is an id here
    sessionId: sessionId as SessionId, // of the folder or the file
    sequence,
    dialect: (typeof value['api_type'] === 'string' ? value['api_type'] : '') as DialectId, // only passed on
    modelRequested: textOf(value['model_requested']),
    modelUsed: textOf(value['model_used']),
    promptIds,
    sampledIds,
    logprobs,
    completionTokens: sampledIds?.length ?? usageTokens ?? 0,
    promptTokens: promptIds?.length ?? countOf(usage['prompt_tokens']) ?? 0,
    cachedTokens: countOf(objectIn(usage, 'prompt_tokens_details')['cached_tokens']) ?? 0,
    finish: FINISH_WORDS.get(engineFinish) ?? 'stop',
    engineFinish,
    startedAtMs: finishedAtMs - (durationOf(value) ?? 0),
    finishedAtMs,
    request: request as JsonObject, // decoded JSON
    response: isObject(choice['message']) ? { choices: [{ message: choice['message'] as JsonObject }] } : {},
  }
  return { record, tokensKnown: sampledIds !== null || usageTokens !== null }
}

/** Fields of a record that neither a completion file nor a trace tells. */
export const UNTOLD = {
  attempt: 0,
  upstream: '',
  notTrainable: null,
  sampling: {
    temperature: null,
    topP: null,
    topK: null,
    minP: null,
    presencePenalty: null,
    frequencyPenalty: null,
    maxTokens: null,
    seed: null,
  },
  generationPromptLength: 0,
  endTokenId: null,
  policyVersionStart: null,
  policyVersionEnd: null,
  replica: '',
  retryCount: 0,
  sideRule: null,
  agentId: null,
  firstTokenAtMs: null,
  originalRequest: '',
  originalLike: null,
  losses: [],
  rulesApplied: [],
} as const satisfies Partial<CompletionRecord>

const objectIn = (value: Record<string, unknown>, key: string): Record<string, unknown> => {
  const found = value[key]
  return isObject(found) ? found : {}
}
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const countOf = (value: unknown): number | null =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? Number(value) : null

function timeOf(value: unknown): number {
  const at = typeof value === 'string' ? Date.parse(value) : typeof value === 'number' ? value * 1000 : Number.NaN
  return Number.isFinite(at) ? at : 0
}

/** What the call took, in ms; null = the file does not say. */
function durationOf(value: Record<string, unknown>): number | null {
  const { e2e_ms: ms } = objectIn(objectIn(value, 'metadata'), 'inference_timings')
  return typeof ms === 'number' && Number.isFinite(ms) && ms >= 0 ? ms : null
}

/** Ids as they are in the file; null = absent, or one of them is no token id. */
function idsOf(value: unknown): Int32Array | null {
  if (!Array.isArray(value)) return null
  const ids = new Int32Array(value.length)
  for (const [i, id] of value.entries()) {
    if (!Number.isInteger(id) || id < 0 || id > 0x7fffffff) return null
    ids[i] = id
  }
  return ids
}

/** First list that is not empty. */
function promptOf(choice: Record<string, unknown>, response: Record<string, unknown>): Int32Array | null {
  for (const list of [choice['input_token_ids'], choice['prompt_token_ids'], response['prompt_token_ids']]) {
    const ids = idsOf(list)
    if (ids !== null && ids.length > 0) return ids
  }
  return null
}

interface Sampled {
  readonly sampledIds: Int32Array | null
  readonly logprobs: Float32Array | null
}

function sampledOf(choice: Record<string, unknown>, response: Record<string, unknown>): Sampled {
  const sampledIds = idsOf(choice['token_ids']) ?? idsOf(response['token_ids'])
  const sources = [
    pairsOf(objectIn(choice, 'logprobs')['content']),
    pairsOf(objectIn(choice, 'meta_info')['output_token_logprobs']),
  ]
  if (sampledIds === null) {
    const first = sources.find(pairs => pairs !== null && pairs.ids.length > 0)
    return { sampledIds: first?.ids ?? null, logprobs: first?.logprobs ?? null }
  }
  const fitting = sources.find(
    pairs =>
      pairs !== null && pairs.ids.length === sampledIds.length && pairs.ids.every((id, i) => id === sampledIds[i]),
  )
  return { sampledIds, logprobs: fitting?.logprobs ?? null }
}

/** `{token_id, logprob}`, `{token_id, token_logprob}` or `[logprob, id, ...]`; an incomplete item voids the list. */
function pairsOf(value: unknown): { readonly ids: Int32Array; readonly logprobs: Float32Array } | null {
  if (!Array.isArray(value)) return null
  const logprobs = new Float32Array(value.length)
  const ids: unknown[] = []
  for (const [i, item] of value.entries()) {
    const [logprob, id]: readonly unknown[] = Array.isArray(item)
      ? item
      : isObject(item)
        ? [item['logprob'] ?? item['token_logprob'], item['token_id']]
        : []
    if (typeof logprob !== 'number' || !Number.isFinite(logprob)) return null
    ids.push(id)
    logprobs[i] = logprob
  }
  const checked = idsOf(ids)
  return checked && { ids: checked, logprobs }
}

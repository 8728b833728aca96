// vLLM's answer bodies: the whole completion and the chunks of a stream. Fields and their order as vLLM writes them.

import { randomUUID } from 'node:crypto'
import type { Json, JsonObject } from '../domain/json.js'
import type { Tokenizer } from '../tokenizer/tokenizer.js'
import type { AnswerDelta, ParsedAnswer } from './answer-parser.js'
import type { Draw } from './distribution.js'
import type { Ending } from './generate.js'
import type { ChatRequest } from './request.js'

/** What all bodies of one answer share. */
export interface AnswerHead {
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  readonly model: string
}

export interface UsageCounts {
  readonly promptTokens: number
  readonly cachedTokens: number
}

export const newId = (prefix: string): string => prefix + randomUUID().replaceAll('-', '')

export const usageBody = ({ promptTokens, cachedTokens }: UsageCounts, completionTokens: number): JsonObject => ({
  prompt_tokens: promptTokens,
  total_tokens: promptTokens + completionTokens,
  completion_tokens: completionTokens,
  prompt_tokens_details: { cached_tokens: cachedTokens },
})

/** `logprobs` of a choice for `draws`, as far as `request` asked for it. */
export function logprobsBody(draws: readonly Draw[], request: ChatRequest, tokenizer: Tokenizer): JsonObject | null {
  if (!request.logprobs) return null
  const entry = (id: number, logprob: number): JsonObject => ({
    token: request.tokensAsIds ? `token_id:${id}` : tokenizer.decode([id]),
    logprob: shortest(logprob),
    bytes: [...tokenizer.bytesOf(id)],
  })
  return {
    content: draws.map(({ id, logprob, reported }) => ({
      ...entry(id, logprob),
      top_logprobs: reported
        .slice(0, request.topLogprobs)
        .map(candidate => entry(candidate.id, Math.log(candidate.probability))),
    })),
  }
}

/** The shortest decimal that rounds to the same float32; what is below -9999 is clamped to it. */
function shortest(logprob: number): number {
  const value = Math.max(logprob, -9999)
  const single = Math.fround(value)
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits))
    if (Math.fround(short) === single) return short
  }
  return Number(value.toPrecision(9))
}

export interface WholeAnswer {
  readonly parsed: ParsedAnswer
  readonly draws: readonly Draw[]
  readonly ending: Ending
  readonly promptIds: Int32Array
  readonly usage: UsageCounts
}

export function completionBody(
  head: AnswerHead,
  answer: WholeAnswer,
  request: ChatRequest,
  tokenizer: Tokenizer,
): JsonObject {
  const { parsed, draws, ending, promptIds, usage } = answer
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: parsed.content,
          refusal: null,
          annotations: null,
          audio: null,
          function_call: null,
          ...(parsed.calls.length > 0 && {
            tool_calls: parsed.calls.map(call => ({
              id: newId('chatcmpl-tool-'),
              type: 'function',
              function: { ...call },
            })),
          }),
          reasoning: request.includeReasoning ? parsed.reasoning : null,
        },
        logprobs: logprobsBody(draws, request, tokenizer),
        finish_reason: finishReason(ending, parsed.calls.length > 0),
        stop_reason: ending.matched,
        token_ids: request.returnTokenIds ? draws.map(draw => draw.id) : null,
      },
    ],
    service_tier: null,
    system_fingerprint: null,
    usage: usageBody(usage, draws.length),
    prompt_logprobs: null,
    prompt_token_ids: request.returnTokenIds ? [...promptIds] : null,
    kv_transfer_params: null,
  }
}

export const finishReason = (ending: Ending, called: boolean): string =>
  ending.reason === 'stop' && called ? 'tool_calls' : ending.reason

/** One chunk. `extra`: fields of the choice besides the delta. */
export const chunkBody = (
  head: AnswerHead,
  delta: JsonObject,
  extra: JsonObject,
  top: JsonObject = {},
): JsonObject => ({
  id: head.id,
  object: 'chat.completion.chunk',
  created: head.created,
  model: head.model,
  choices: [{ index: 0, delta, logprobs: null, finish_reason: null, ...extra }],
  ...top,
})

/** A delta of the parser as Chat Completions writes it; null when the request does not want it. */
export function deltaBody(delta: AnswerDelta, request: ChatRequest): JsonObject | null {
  const call = (body: Readonly<Record<string, Json>>): JsonObject => ({ tool_calls: [body] })
  switch (delta.type) {
    case 'reasoning':
      return request.includeReasoning ? { reasoning: delta.text } : null
    case 'content':
      return { content: delta.text }
    case 'call-start':
      return call({ id: newId('chatcmpl-tool-'), type: 'function', index: delta.index, function: { name: delta.name } })
    case 'call-arguments':
      return call({ index: delta.index, function: { arguments: delta.text } })
  }
}

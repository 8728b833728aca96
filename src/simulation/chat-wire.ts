// What an engine's answer bodies are made of, and vLLM's: the whole completion and the chunks of a stream. Fields and their order as
// vLLM writes them. SGLang's stand in sglang-wire.ts.

import { randomUUID } from 'node:crypto'
import type { Json, JsonObject } from '../domain/json.js'
import type { Tokenizer } from '../tokenizer/tokenizer.js'
import type { AnswerDelta, ParsedAnswer } from './answer-parser.js'
import type { Distribution, Draw } from './distribution.js'
import { EngineError } from './errors.js'
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
  /** Sampled before the thinking was closed, its tags not counted. */
  readonly reasoningTokens: number
}

export const newId = (prefix: string): string => prefix + randomUUID().replaceAll('-', '')

export const usageBody = (
  { promptTokens, cachedTokens, reasoningTokens }: UsageCounts,
  completionTokens: number,
): JsonObject => ({
  prompt_tokens: promptTokens,
  total_tokens: promptTokens + completionTokens,
  completion_tokens: completionTokens,
  prompt_tokens_details: { cached_tokens: cachedTokens },
  completion_tokens_details: { reasoning_tokens: reasoningTokens },
})

/** `logprobs` of a choice for `draws`, as far as `request` asked for it. */
export function logprobsBody(
  draws: readonly Draw[],
  request: ChatRequest,
  tokenizer: Tokenizer,
  /** vLLM lists the sampled token first whatever its rank, and the others up to the number asked for. */
  sampledFirst: boolean,
): JsonObject | null {
  if (!request.logprobs) return null
  const entry = (id: number, logprob: number): JsonObject => ({
    token: request.tokensAsIds ? `token_id:${id}` : tokenizer.decode([id]),
    logprob: shortest(logprob),
    bytes: [...tokenizer.bytesOf(id)],
  })
  return {
    content: draws.map(({ id, logprob, reported }) => ({
      ...entry(id, logprob),
      top_logprobs: (sampledFirst ? before(id, reported) : reported)
        .slice(0, request.topLogprobs)
        .map(candidate => entry(candidate.id, Math.log(candidate.probability))),
    })),
  }
}

function before(id: number, candidates: Distribution): Distribution {
  const sampled = candidates.filter(candidate => candidate.id === id)
  return [...sampled, ...candidates.filter(candidate => candidate.id !== id)]
}

/** The shortest decimal that rounds to the same float32; what is below -9999 is clamped to it. */
export function shortest(logprob: number): number {
  const value = Math.max(logprob, -9999)
  const single = Math.fround(value)
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits))
    if (Math.fround(short) === single) return short
  }
  return Number(value.toPrecision(9))
}

/** Draws as they are told. Both are what was drawn, unless a fault is planted. */
export interface Report {
  /** For ids, and for logprobs that stand beside ids. */
  readonly tokens: readonly Draw[]
  /** For `logprobs.content`. */
  readonly content: readonly Draw[]
}

export type ReasoningKey = 'reasoning' | 'reasoning_content'

export interface WholeAnswer {
  readonly head: AnswerHead
  readonly parsed: ParsedAnswer
  readonly reasoningKey: ReasoningKey
  readonly report: Report
  readonly ending: Ending
  /** Finish reason in Chat's words. */
  readonly finish: string
  readonly promptIds: Int32Array
  readonly usage: UsageCounts
  /** Tokens sampled. */
  readonly sampled: number
  readonly request: ChatRequest
}

/** How one engine writes answers. */
export interface AnswerWire {
  /** Where thinking is looked for. */
  parserReasoning(thinking: boolean): 'tagged' | 'always' | 'never'
  /** True: `max_tokens` over what is left is cut; false: refused. */
  readonly clampsMaxTokens: boolean
  /** False: every model name is served. */
  readonly checksModel: boolean
  readonly reasoningKey: ReasoningKey
  readonly hasFlatErrors: boolean
  /** Throws EngineError 400 for what this engine refuses and others take. */
  check(request: ChatRequest): void
  contextLengthError(window: number, promptTokens: number, outputTokens: number): EngineError
  whole(answer: WholeAnswer, tokenizer: Tokenizer): JsonObject
  /** Fields at the top of a stream's first chunk. */
  promptFields(request: ChatRequest, promptIds: Int32Array): JsonObject
  /** Fields of the choice in the first chunk of a group of tokens. */
  groupFields(report: Report, request: ChatRequest, tokenizer: Tokenizer): JsonObject
  /** Fields of the choice in the last chunk. */
  lastFields(ending: Ending, finish: string, tokenizer: Tokenizer): JsonObject
  /** True: `/tokenize` takes `messages`. */
  readonly tokenizesChats: boolean
  readonly detokenizedKey: 'prompt' | 'text'
}

export const vllmWire: AnswerWire = {
  parserReasoning: thinking => (thinking ? 'always' : 'never'),
  clampsMaxTokens: true,
  checksModel: true,
  reasoningKey: 'reasoning',
  hasFlatErrors: false,
  check() {},
  // It stops counting one token over the window.
  contextLengthError(window) {
    return new EngineError(
      400,
      `This model's maximum context length is ${window} tokens. However, your prompt contains at least ${window + 1} input tokens, ` +
        'which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. ' +
        `(parameter=input_tokens, value=${window + 1})`,
      'input_tokens',
    )
  },
  whole({ head, parsed, reasoningKey, report, ending, finish, promptIds, usage, sampled, request }, tokenizer) {
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
            ...(parsed.calls.length > 0 && { tool_calls: messageCalls(parsed.calls, 'chatcmpl-tool-') }),
            [reasoningKey]: request.includeReasoning ? parsed.reasoning : null,
          },
          logprobs: logprobsBody(report.content, request, tokenizer, true),
          finish_reason: finish,
          stop_reason: ending.matched,
          token_ids: request.returnTokenIds ? report.tokens.map(draw => draw.id) : null,
          routed_experts: null,
        },
      ],
      service_tier: null,
      system_fingerprint: null,
      usage: usageBody(usage, sampled),
      prompt_logprobs: null,
      prompt_token_ids: request.returnTokenIds ? [...promptIds] : null,
      prompt_text: null,
      kv_transfer_params: null,
      ec_transfer_params: null,
      metrics: null,
    }
  },
  promptFields: (request, promptIds) =>
    request.returnTokenIds ? { prompt_token_ids: [...promptIds], prompt_text: null } : {},
  groupFields: (report, request, tokenizer) => ({
    logprobs: logprobsBody(report.content, request, tokenizer, true),
    ...(request.returnTokenIds && { token_ids: report.tokens.map(({ id }) => id) }),
  }),
  lastFields: (ending, finish) => ({ finish_reason: finish, stop_reason: ending.matched }),
  tokenizesChats: true,
  detokenizedKey: 'prompt',
}

export const messageCalls = (calls: ParsedAnswer['calls'], idPrefix: string): JsonObject[] =>
  calls.map(call => ({ id: newId(idPrefix), type: 'function', function: { ...call } }))

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
export function deltaBody(delta: AnswerDelta, request: ChatRequest, reasoningKey: ReasoningKey): JsonObject | null {
  const call = (body: Readonly<Record<string, Json>>): JsonObject => ({ tool_calls: [body] })
  switch (delta.type) {
    case 'reasoning':
      return request.includeReasoning ? { [reasoningKey]: delta.text } : null
    case 'content':
      return { content: delta.text }
    case 'call-start':
      return call({ id: newId('chatcmpl-tool-'), type: 'function', index: delta.index, function: { name: delta.name } })
    case 'call-arguments':
      return call({ index: delta.index, function: { arguments: delta.text } })
  }
}

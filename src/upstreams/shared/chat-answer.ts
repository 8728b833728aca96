// Parts of a Chat Completions answer that all engines share: text, reasoning, tool calls, finish, usage, logprobs.

import type { PolicySpan } from '../../domain/completion.js'
import { FINISH_WORDS, type FinishReason, type ToolCall, type Usage } from '../../domain/conversation.js'
import type { JsonObject } from '../../domain/json.js'
import { LogprobList } from '../../http/answer-bytes.js'
import { countOf, listOf, malformed, objectOf, textOf } from './read.js'

export interface ChatMessageParts {
  readonly content: string | null
  readonly reasoning: string | null
  readonly toolCalls: readonly ToolCall[]
}

/** First choice of a body. Throws UPSTREAM_MALFORMED when there is none: an answer without choices is no answer. */
export function firstChoice(body: JsonObject): JsonObject {
  const choice = objectOf(listOf(body['choices'])[0])
  if (choice === null) throw malformed('choices is missing or empty')
  return choice
}

export function messageParts(choice: JsonObject): ChatMessageParts {
  const message = objectOf(choice['message'])
  if (message === null) throw malformed('choices[0].message is missing')
  return {
    content: textOf(message['content']),
    reasoning: reasoningOf(message),
    toolCalls: listOf(message['tool_calls']).map((entry, index) => {
      const call = objectOf(entry)
      const fn = objectOf(call?.['function'])
      const name = textOf(fn?.['name'])
      if (name === null) throw malformed(`choices[0].message.tool_calls[${index}].function.name is missing`)
      // An id is filled in by the gateway where the engine gives none.
      return { id: textOf(call?.['id']) ?? '', name, arguments: argumentsText(fn?.['arguments']) }
    }),
  }
}

/** Newer engines say `reasoning`, older ones `reasoning_content`. */
export const reasoningOf = (message: JsonObject): string | null =>
  textOf(message['reasoning']) ?? textOf(message['reasoning_content'])

export const argumentsText = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value)

/** Normalised finish. With calls, `stop` (named tool choice) means `tool_calls`; an unknown word counts as `stop`, none as `error`. */
export function finishOf(word: string | null, hasCalls: boolean): FinishReason {
  if (word === null) return 'error'
  const finish = FINISH_WORDS.get(word) ?? 'stop'
  return finish === 'stop' && hasCalls ? 'tool_calls' : finish
}

export function usageOf(value: unknown): Usage | null {
  const usage = objectOf(value)
  const promptTokens = countOf(usage?.['prompt_tokens'])
  const completionTokens = countOf(usage?.['completion_tokens'])
  if (promptTokens === null || completionTokens === null) return null
  const cached = countOf(objectOf(usage?.['prompt_tokens_details'])?.['cached_tokens'])
  return { promptTokens, completionTokens, cachedTokens: cached ?? 0 }
}

/** `logprobs.content` of a choice or chunk; null where there is none. */
export function logprobContentOf(choice: JsonObject): LogprobList | readonly JsonObject[] | null {
  const content: unknown = objectOf(choice['logprobs'])?.['content']
  if (content instanceof LogprobList) return content
  if (!Array.isArray(content)) return null
  return content.filter((entry): entry is JsonObject => objectOf(entry) !== null)
}

export const logprobEntriesOf = (choice: JsonObject): readonly JsonObject[] | null => {
  const content = logprobContentOf(choice)
  return content instanceof LogprobList ? content.entries() : content
}

/** Logprobs in nats; null when one entry has none. */
export function logprobsOf(content: LogprobList | readonly JsonObject[] | null): Float32Array | null {
  if (content === null) return null
  if (content instanceof LogprobList) return content.values
  const logprobs = new Float32Array(content.length)
  for (const [index, entry] of content.entries()) {
    const value = entry['logprob']
    if (typeof value !== 'number' || !Number.isFinite(value)) return null
    logprobs[index] = value
  }
  return logprobs
}

/** `weight_versions` of an answer: `[{version, start, end}]` in sampled ids. null = none, or no such list. */
export function weightSpansOf(value: unknown): readonly PolicySpan[] | null {
  const spans: PolicySpan[] = []
  for (const entry of listOf(value)) {
    const span = objectOf(entry)
    const version = versionOf(span?.['version'])
    const start = countOf(span?.['start'])
    const end = countOf(span?.['end'])
    if (version === null || start === null || end === null) return null
    spans.push({ version, start, end })
  }
  return spans.length === 0 ? null : spans
}

/** Engines name their weights by text or number. */
export const versionOf = (value: unknown): string | null =>
  textOf(value) ?? (typeof value === 'number' ? String(value) : null)

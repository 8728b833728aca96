// Error bodies of inference servers: nested and flat forms, plain text, and the many ways to say that a prompt is too long.

import type { UpstreamErrorInfo } from '../base.js'
import { countOf, objectOf, parseJson, textOf } from './read.js'

const MAX_MESSAGE_CHARACTERS = 2_000

/** Fragments that mean "over the context window" (inference-server manuals and sources). */
const CONTEXT_PATTERNS = [
  /maximum context length is/i,
  /longer than the model's context length/i,
  /longer than the maximum model length/i,
  /exceeds? the model's (maximum )?context length/i,
  /exceeds? the available context size/i,
  /exceeds? the configured limit/i,
  /exceeded model/i,
  /`inputs` tokens \+ `max_new_tokens` must be <=/,
  /context_length_exceeded/,
]
/** vLLM names what is too long: ids, or characters before it has counted any. */
const CONTEXT_PARAMS = ['input_tokens', 'input_text']
const WINDOW_PATTERNS = [
  /maximum context length (?:is|of) (\d+)/i,
  /context length \((\d+) tokens\)/i,
  /context size \((\d+) tokens\)/i,
  /maximum model length of (\d+)/i,
  /`max_new_tokens` must be <= (\d+)/,
]
const PROMPT_PATTERNS = [
  /passed (\d+) input tokens/i,
  /\((\d+) in the messages/i,
  /(\d+) tokens from the input messages/i,
  /contains (?:at least )?(\d+) input tokens/i,
  /(?:input|request|prompt) \((\d+) tokens\)/i,
  /prompt \(length (\d+)\)/i,
  /resulted in (\d+) tokens/i,
  /request has (\d+) input tokens/i,
  /Given: (\d+) `inputs` tokens/,
]

export function readError(
  status: number,
  headers: Readonly<Record<string, string | undefined>>,
  body: string,
): UpstreamErrorInfo {
  return { ...readErrorBody(status, body), retryAfter: headers['retry-after'] ?? null }
}

export function readErrorBody(status: number, body: string): Omit<UpstreamErrorInfo, 'retryAfter'> {
  const parsed = objectOf(parseJson(body))
  const error = objectOf(parsed?.['error']) ?? parsed
  const message =
    textOf(error?.['message']) ??
    textOf(parsed?.['error']) ??
    textOf(parsed?.['detail']) ??
    (body.trim() === '' ? `HTTP ${status} without a body` : body.trim())
  const isContext =
    (status === 400 || status === 413 || status === 422) &&
    (CONTEXT_PATTERNS.some(pattern => pattern.test(message)) ||
      error?.['type'] === 'exceed_context_size_error' ||
      CONTEXT_PARAMS.includes(textOf(error?.['param']) ?? ''))
  return {
    status,
    message: message.slice(0, MAX_MESSAGE_CHARACTERS),
    contextLength: isContext
      ? {
          promptTokens: countOf(error?.['n_prompt_tokens']) ?? firstNumber(PROMPT_PATTERNS, message),
          window: countOf(error?.['n_ctx']) ?? firstNumber(WINDOW_PATTERNS, message),
        }
      : null,
  }
}

function firstNumber(patterns: readonly RegExp[], text: string): number | null {
  for (const pattern of patterns) {
    const digits = pattern.exec(text)?.[1]
    if (digits !== undefined) return Number(digits)
  }
  return null
}

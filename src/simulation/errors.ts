// Errors as vLLM sends them: `{"error": {message, type, param, code}}`.

import type { JsonObject } from '../domain/json.js'

const TYPES: Readonly<Record<number, string>> = {
  400: 'BadRequestError',
  404: 'NotFoundError',
  405: 'MethodNotAllowedError',
  413: 'RequestEntityTooLargeError',
  500: 'InternalServerError',
}

export class VllmError extends Error {
  readonly status: number
  readonly param: string | null

  constructor(status: number, message: string, param: string | null = null) {
    super(message)
    this.name = 'VllmError'
    this.status = status
    this.param = param
  }

  body(): JsonObject {
    const type = TYPES[this.status] ?? 'BadRequestError'
    return { error: { message: this.message, type, param: this.param, code: this.status } }
  }
}

/** The prompt alone, or the prompt and what was asked for, is over the window. */
export function contextLengthError(window: number, promptTokens: number, outputTokens: number): VllmError {
  const alone = promptTokens >= window
  return new VllmError(
    400,
    `This model's maximum context length is ${window} tokens. However, you passed ${promptTokens} input tokens and requested ` +
      `${outputTokens} output tokens. Please reduce the length of the input prompt${alone ? '' : ' or the number of requested output tokens'}.`,
    alone ? 'input_tokens' : 'max_tokens',
  )
}

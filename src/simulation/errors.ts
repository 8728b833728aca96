// Errors as inference servers send them: nested `{"error": {message, type, param, code}}` (vLLM) or flat `{"object": "error", ...}` (SGLang).

import type { JsonObject } from '../domain/json.js'

const TYPES: Readonly<Record<number, string>> = {
  400: 'BadRequestError',
  404: 'NotFoundError',
  405: 'MethodNotAllowedError',
  413: 'RequestEntityTooLargeError',
  429: 'RateLimitError',
  500: 'InternalServerError',
}

export class EngineError extends Error {
  readonly status: number
  readonly param: string | null

  constructor(status: number, message: string, param: string | null = null) {
    super(message)
    this.name = 'EngineError'
    this.status = status
    this.param = param
  }

  body(isFlat: boolean): JsonObject {
    const type = TYPES[this.status] ?? 'BadRequestError'
    const error = { message: this.message, type, param: this.param, code: this.status }
    return isFlat ? { object: 'error', ...error } : { error }
  }
}

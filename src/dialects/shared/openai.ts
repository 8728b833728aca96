// What Chat Completions and Responses have in common: error bodies, model lists, the words for an over-long prompt, output formats.

import type { JsonObject } from '../../domain/json.js'

export const CONTEXT_LENGTH_CODE = 'context_length_exceeded'

const BY_STATUS: Readonly<Record<number, readonly [type: string, code: string | null]>> = {
  400: ['invalid_request_error', null],
  401: ['invalid_request_error', 'invalid_api_key'],
  403: ['permission_error', 'permission_denied'],
  404: ['invalid_request_error', 'not_found'],
  413: ['invalid_request_error', 'request_too_large'],
  415: ['invalid_request_error', 'unsupported_encoding'],
  429: ['rate_limit_error', 'rate_limit_exceeded'],
  500: ['server_error', 'server_error'],
  502: ['server_error', 'upstream_error'],
  503: ['server_error', 'service_unavailable'],
  504: ['server_error', 'timeout'],
  529: ['server_error', 'overloaded'],
}

/** OpenAI's error body. `code` replaces the status's own, except on 401, which is always `invalid_api_key` for its clients. */
export function openaiErrorBody(status: number, message: string, code?: string): JsonObject {
  const [type, ownCode] =
    BY_STATUS[status] ?? (status < 500 ? ['invalid_request_error', null] : ['server_error', 'server_error'])
  return {
    error: {
      message,
      type,
      param: code === CONTEXT_LENGTH_CODE ? 'messages' : null,
      code: status === 401 ? ownCode : (code ?? ownCode),
    },
  }
}

export function openaiModels(names: readonly string[], one: string | null): JsonObject {
  const model = (id: string) => ({ id, object: 'model', created: 0, owned_by: 'sextant' })
  return one === null ? { object: 'list', data: names.map(model) } : model(one)
}

export function openaiContextLength(promptTokens: number | null, window: number | null): string {
  const limit = window === null ? 'is exceeded' : `is ${window} tokens`
  const got = promptTokens === null ? '' : ` However, your messages resulted in ${promptTokens} tokens.`
  return `This model's maximum context length ${limit}.${got} Please reduce the length of the messages.`
}

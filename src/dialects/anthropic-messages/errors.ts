// Anthropic's error vocabulary, for whole answers and for the error event in a stream.

import type { JsonObject } from '../../domain/json.js'

const TYPE_BY_STATUS: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  502: 'api_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

/** By this error code the SDK's tool runner learns to send its whole history. */
export const THREAD_UNSUPPORTED = 'thread_unsupported_request'

/** `{"type":"error","error":{"type":...,"message":...}}`; of our codes Anthropic's clients know only the one for threads. */
export const errorBody = (status: number, message: string, code?: string): JsonObject => ({
  type: 'error',
  error: {
    type: TYPE_BY_STATUS[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error'),
    message,
    ...(code === THREAD_UNSUPPORTED && { details: { error_code: code, unsupported: ['thread'] } }),
  },
})

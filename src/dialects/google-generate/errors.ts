// Google's error vocabulary, for whole answers and for the error object in a stream.

import type { JsonObject } from '../../domain/json.js'

const STATUS_NAMES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  413: 'INVALID_ARGUMENT',
  415: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
  529: 'UNAVAILABLE',
}

/** `{"error":{"code":HTTP,"message":...,"status":...}}`; Google has no further codes. */
export const errorBody = (status: number, message: string): JsonObject => ({
  error: { code: status, message, status: STATUS_NAMES[status] ?? (status < 500 ? 'INVALID_ARGUMENT' : 'INTERNAL') },
})

// Anthropic Messages: routes, error vocabulary, model lists. Requests are read in anthropic-messages/decode.ts, answers written in
// anthropic-messages/encode.ts. Clients: Claude Code, the Anthropic SDK, OpenCode, Pi.

import type { JsonObject } from '../domain/json.js'
import { decodeMessagesRequest } from './anthropic-messages/decode.js'
import { encodeMessage, messageStream } from './anthropic-messages/encode.js'
import { errorBody } from './anthropic-messages/errors.js'
import type { Dialect, HttpRequestHead, RouteMatch } from './base.js'
import { endsWithRoute, lastSegmentUnder } from './shared/paths.js'
import { findSessionKey } from './shared/session-key.js'

export const anthropicMessages: Dialect = {
  id: 'anthropic_messages',
  summary: 'Anthropic Messages (/v1/messages)',
  route,
  sessionKey: findSessionKey,
  decodeRequest: decodeMessagesRequest,
  encodeResponse: encodeMessage,
  streamEncoder: messageStream,
  onBrokenEngine: 'error',
  keepAlive: 'event: ping\ndata: {"type": "ping"}\n\n',
  countResponse: tokens => ({ input_tokens: tokens }),
  modelsResponse,
  errorBody,
  contextLengthMessage: (promptTokens, window) =>
    promptTokens === null || window === null
      ? 'prompt is too long'
      : `prompt is too long: ${promptTokens} tokens > ${window} maximum`,
}

/** Model lists are shared with OpenAI's path: a request is ours when it says so by `anthropic-version`. */
function route({ method, path, headers }: HttpRequestHead): RouteMatch | null {
  const match = (operation: RouteMatch['operation'], model: string | null = null): RouteMatch => ({
    operation,
    model,
    stream: null,
    sse: true,
  })
  if (method === 'POST') {
    if (endsWithRoute(path, 'messages/count_tokens')) return match('count')
    return endsWithRoute(path, 'messages') ? match('generate') : null
  }
  if (method === 'HEAD' && (path === '/' || path === '' || endsWithRoute(path, 'api/hello'))) return match('hello')
  if (method !== 'GET') return null
  if (endsWithRoute(path, 'api/hello')) return match('hello')
  if (headers['anthropic-version'] === undefined) return null
  if (endsWithRoute(path, 'models')) return match('models')
  const model = lastSegmentUnder(path, 'models')
  return model === null ? null : match('model', model)
}

function modelsResponse(names: readonly string[], one: string | null): JsonObject {
  const model = (id: string) => ({ type: 'model', id, display_name: id, created_at: '1970-01-01T00:00:00Z' })
  if (one !== null) return model(one)
  return { data: names.map(model), has_more: false, first_id: names[0] ?? null, last_id: names.at(-1) ?? null }
}

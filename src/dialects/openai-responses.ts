// OpenAI Responses: routes and shapes. Requests are read in openai-responses/decode.ts, answers written in openai-responses/encode.ts.
// Clients: Codex, OpenCode and Pi with OpenAI models, the OpenAI SDK. Answers are stored within
// their session only, for `previous_response_id` (openai-responses/stored.ts).

import type { Dialect, HttpRequestHead, RouteMatch } from './base.js'
import { decodeResponsesRequest } from './openai-responses/decode.js'
import { encodeResponseObject, responsesStream } from './openai-responses/encode.js'
import { storedResponses } from './openai-responses/stored.js'
import { openaiContextLength, openaiErrorBody, openaiModels } from './shared/openai.js'
import { endsWithRoute } from './shared/paths.js'
import { findSessionKey } from './shared/session-key.js'

export const openaiResponses: Dialect = {
  id: 'openai_responses',
  summary: 'OpenAI Responses (/v1/responses)',
  route,
  sessionKey: findSessionKey,
  decodeRequest: decodeResponsesRequest,
  stored: storedResponses,
  encodeResponse: encodeResponseObject,
  streamEncoder: responsesStream,
  onBrokenEngine: 'error',
  keepAlive: ': keep-alive\n\n',
  countResponse: tokens => ({ object: 'response.input_tokens', input_tokens: tokens }),
  modelsResponse: openaiModels,
  errorBody: openaiErrorBody,
  contextLengthMessage: openaiContextLength,
}

/** `/v1/responses/compact` and stored responses are no routes of ours. Model lists belong to Chat. */
function route({ method, path }: HttpRequestHead): RouteMatch | null {
  if (method !== 'POST') return null
  const operation = endsWithRoute(path, 'responses')
    ? 'generate'
    : endsWithRoute(path, 'responses/input_tokens')
      ? 'count'
      : null
  return operation === null ? null : { operation, model: null, stream: null, sse: true }
}

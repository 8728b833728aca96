// Google generateContent: routes, error vocabulary, model lists. Requests are read in google-generate/decode.ts, answers written in
// google-generate/encode.ts. Clients: Gemini CLI, the Gen AI SDK, OpenCode, Pi. Model and streaming are in the path alone (obligation A-62).

import type { JsonObject } from '../domain/json.js'
import type { Dialect, HttpRequestHead, RouteMatch } from './base.js'
import { decodeGoogleRequest } from './google-generate/decode.js'
import { encodeContent, googleStream } from './google-generate/encode.js'
import { errorBody } from './google-generate/errors.js'
import { decodeSegment, endsWithRoute, lastSegmentUnder } from './shared/paths.js'
import { findSessionKey } from './shared/session-key.js'

export const googleGenerate: Dialect = {
  id: 'google_generate',
  summary: 'Google generateContent (/v1beta/models/{model}:generateContent)',
  route,
  sessionKey: findSessionKey,
  decodeRequest: decodeGoogleRequest,
  encodeResponse: encodeContent,
  streamEncoder: googleStream,
  // Gemini CLI loses the chunk that follows a comment.
  onBrokenEngine: 'error',
  keepAlive: null,
  countResponse: tokens => ({ totalTokens: tokens }),
  modelsResponse,
  errorBody,
  contextLengthMessage: (promptTokens, window) =>
    promptTokens === null || window === null
      ? 'The input token count exceeds the maximum number of tokens allowed.'
      : `The input token count (${promptTokens}) exceeds the maximum number of tokens allowed (${window}).`,
}

/** The method stands after the last colon, matched by hand; any prefix before `models/` is legal (Vertex has one of its own). */
const METHOD = /^(?:.*\/)?models\/(.+):(generateContent|streamGenerateContent|countTokens)\/?$/

function route({ method, path, query, headers }: HttpRequestHead): RouteMatch | null {
  const isSse = query.get('alt') === 'sse'
  if (method === 'POST') {
    const [, name, operation] = METHOD.exec(path) ?? []
    if (name === undefined) return null
    const model = decodeSegment(name)
    if (operation === 'countTokens') return { operation: 'count', model, stream: false, sse: isSse }
    return { operation: 'generate', model, stream: operation === 'streamGenerateContent', sse: isSse }
  }
  if (method !== 'GET') return null
  const isOurs = /\/v1beta\d*\//.test(path) || headers['x-goog-api-key'] !== undefined || query.has('key')
  if (!isOurs) return null
  if (endsWithRoute(path, 'models')) return { operation: 'models', model: null, stream: false, sse: isSse }
  const model = lastSegmentUnder(path, 'models')
  return model === null ? null : { operation: 'model', model, stream: false, sse: isSse }
}

function modelsResponse(names: readonly string[], one: string | null): JsonObject {
  const model = (id: string) => ({
    name: `models/${id}`,
    displayName: id,
    supportedGenerationMethods: ['generateContent', 'countTokens'],
  })
  return one === null ? { models: names.map(model) } : model(one)
}

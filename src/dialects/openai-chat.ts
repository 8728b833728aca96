// OpenAI Chat Completions: routes and shapes. Requests are read in openai-chat/decode.ts, answers written in openai-chat/encode.ts. Clients:
// Qwen Code, OpenCode, Pi, the OpenAI SDK. It also owns `/v1/tokenize`, a count for chat-shaped bodies, and OpenAI's model lists.

import type { Dialect, HttpRequestHead, RouteMatch } from './base.js'
import { decodeChatRequest } from './openai-chat/decode.js'
import { chatStream, encodeChatCompletion } from './openai-chat/encode.js'
import { openaiContextLength, openaiErrorBody, openaiModels } from './shared/openai.js'
import { endsWithRoute, lastSegmentUnder } from './shared/paths.js'
import { findSessionKey } from './shared/session-key.js'

export const openaiChat: Dialect = {
  id: 'openai_chat',
  summary: 'OpenAI Chat Completions (/v1/chat/completions)',
  route,
  sessionKey: findSessionKey,
  decodeRequest: decodeChatRequest,
  encodeResponse: encodeChatCompletion,
  streamEncoder: chatStream,
  onBrokenEngine: 'break',
  keepAlive: ': keep-alive\n\n',
  countResponse: tokens => ({ count: tokens }),
  modelsResponse: openaiModels,
  errorBody: openaiErrorBody,
  contextLengthMessage: openaiContextLength,
}

function route({ method, path }: HttpRequestHead): RouteMatch | null {
  const match = (operation: RouteMatch['operation'], model: string | null = null): RouteMatch => ({
    operation,
    model,
    stream: null,
    sse: true,
  })
  if (method === 'POST') {
    if (endsWithRoute(path, 'tokenize')) return match('count')
    return endsWithRoute(path, 'chat/completions') ? match('generate') : null
  }
  if (method !== 'GET') return null
  if (endsWithRoute(path, 'models')) return match('models')
  const model = lastSegmentUnder(path, 'models')
  return model === null ? null : match('model', model)
}

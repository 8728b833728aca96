// Calls dialects as the proxy does: a path and a body in, the canonical request out. And clients in miniature, which put a stream's frames
// together again as each API's SDK does.

import type { HttpRequestHead, SseFrame, StreamEncoder } from '../../src/dialects/base.js'
import { detect } from '../../src/dialects/detect.js'
import { dialects } from '../../src/dialects/registry.js'
import type {
  CanonicalEvent,
  CanonicalRequest,
  CanonicalResponse,
  DialectId,
  ToolCall,
} from '../../src/domain/conversation.js'
import type { JsonObject } from '../../src/domain/json.js'

/** A small PNG, base64. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

export const PATHS: Readonly<Record<DialectId, string>> = {
  anthropic_messages: '/v1/messages',
  openai_chat: '/v1/chat/completions',
  openai_responses: '/v1/responses',
  google_generate: '/v1beta/models/m:generateContent',
}

export const head = (method: string, url: string, headers: Record<string, string> = {}): HttpRequestHead => {
  const { pathname, searchParams } = new URL(url, 'http://gateway')
  return { method, path: pathname, query: searchParams, headers }
}

/** Decodes `body` as POSTed to the dialect's path. */
export function decode(id: DialectId, body: unknown, path: string = PATHS[id]): CanonicalRequest {
  const request = head('POST', path)
  const found = detect(request)
  if (found?.dialect.id !== id) throw new Error(`${path} is no path of ${id}`)
  return dialects[id].decodeRequest({ model: 'm', ...(body as JsonObject) }, found.route, request)
}

export const answer = (fields: Partial<CanonicalResponse> = {}): CanonicalResponse => ({
  id: 'msg_0123456789ab',
  createdAt: 1,
  model: 'm',
  content: null,
  toolCalls: [],
  finish: 'stop',
  usage: { promptTokens: 100, completionTokens: 2, cachedTokens: 0 },
  ...fields,
})

/** The events of `response`, its texts cut into pieces by `cut`. */
export function eventsOf(
  response: CanonicalResponse,
  cut: (text: string) => readonly string[] = text => [text],
): CanonicalEvent[] {
  const { id, createdAt, model, usage } = response
  const pieces = (text: string) => cut(text).filter(piece => piece !== '')
  return [
    { type: 'response-start', id, createdAt, model, promptTokens: usage.promptTokens },
    ...pieces(response.reasoning ?? '').map(text => ({ type: 'reasoning-delta', text }) as const),
    ...pieces(response.content ?? '').map(text => ({ type: 'text-delta', text }) as const),
    ...response.toolCalls.flatMap((call, index) => callEvents(call, index, pieces)),
    { type: 'response-end', response },
  ]
}

const callEvents = (
  call: ToolCall,
  index: number,
  pieces: (text: string) => readonly string[],
): readonly CanonicalEvent[] => [
  { type: 'tool-call-start', index, id: call.id, name: call.name },
  ...pieces(call.arguments).map(text => ({ type: 'tool-call-delta', index, arguments: text }) as const),
  { type: 'tool-call-end', index },
]

export type HeldFrame = ReturnType<StreamEncoder['push']>[number]

export const framesOf = (encoder: StreamEncoder, events: readonly CanonicalEvent[]): HeldFrame[] =>
  events.flatMap(event => encoder.push(event))

/** The `data` objects of frames; `[DONE]` is left out. */
export const dataOf = (frames: readonly { readonly frame: SseFrame }[]): Record<string, never>[] =>
  frames.flatMap(({ frame }) => (frame.data === '[DONE]' ? [] : [JSON.parse(frame.data) as Record<string, never>]))

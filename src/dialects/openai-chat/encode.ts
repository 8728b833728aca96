// Canonical answers as chat completions, whole and streamed. What must hold: no ids and no logprobs unless asked (obligation A-107); the
// usage chunk only when asked, last before `[DONE]` (case chat-wire-1); raw argument text passes as it is.

import type { CanonicalEvent, CanonicalRequest, CanonicalResponse, ToolCall, Usage } from '../../domain/conversation.js'
import type { JsonObject } from '../../domain/json.js'
import type { SseFrame, StreamEncoder } from '../base.js'
import { endingOf, idStem } from '../shared/answer.js'
import { openaiErrorBody } from '../shared/openai.js'

/** Body of a non-streaming answer. Throws UPSTREAM_ERROR for half answers. */
export function encodeChatCompletion(response: CanonicalResponse, request: CanonicalRequest): JsonObject {
  return {
    ...head(response, 'chat.completion'),
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: response.content,
          ...(response.reasoning && { reasoning_content: response.reasoning }),
          ...(response.toolCalls.length > 0 && { tool_calls: response.toolCalls.map(toolCall) }),
        },
        ...(response.logprobs && request.wantsLogprobs && { logprobs: response.logprobs }),
        finish_reason: endingOf(response, response.toolCalls.length),
      },
    ],
    usage: usageBody(response.usage),
  }
}

/** Encoder of one live answer. Held: the chunk with the finish reason, and all after it. */
export function chatStream(request: CanonicalRequest): StreamEncoder {
  let chunkHead: JsonObject = {}
  let isHeld = false
  let isEmpty = true
  const out = (data: JsonObject) => ({ frame: dataFrame(data), hold: isHeld })
  const delta = (fields: JsonObject, rest: JsonObject = { finish_reason: null }) =>
    out({ ...chunkHead, choices: [{ index: 0, delta: fields, ...rest }] })
  const callDelta = (index: number, fields: JsonObject) => delta({ tool_calls: [{ index, ...fields }] })

  const end = (response: CanonicalResponse) => {
    const finish = endingOf(response, response.toolCalls.length)
    const whole = isEmpty ? wholeDeltas(response).map(fields => delta(fields)) : []
    isHeld = true
    const logprobs = response.logprobs && request.wantsLogprobs ? { logprobs: response.logprobs } : {}
    return [
      ...whole,
      delta({}, { ...logprobs, finish_reason: finish }),
      ...(request.echo['includeUsage'] === true
        ? [out({ ...chunkHead, choices: [], usage: usageBody(response.usage) })]
        : []),
      { frame: { event: null, data: '[DONE]' }, hold: true },
    ]
  }

  return {
    push(event: CanonicalEvent) {
      if (event.type !== 'response-start' && event.type !== 'response-end') isEmpty = false
      switch (event.type) {
        case 'response-start':
          chunkHead = head(event, 'chat.completion.chunk')
          return [delta({ role: 'assistant', content: '' })]
        case 'reasoning-delta':
          return [delta({ reasoning_content: event.text })]
        case 'text-delta':
          return [delta({ content: event.text })]
        case 'tool-call-start': {
          const { id, name } = event
          return [callDelta(event.index, { id, type: 'function', function: { name, arguments: '' } })]
        }
        case 'tool-call-delta':
          return [callDelta(event.index, { function: { arguments: event.arguments } })]
        case 'tool-call-end':
          return []
        case 'response-end':
          return end(event.response)
      }
    },
    fail: (status, message, code): readonly SseFrame[] => [dataFrame(openaiErrorBody(status, message, code))],
  }
}

/** Deltas of an answer that came whole (a buffered call). */
const wholeDeltas = ({ reasoning, content, toolCalls }: CanonicalResponse): JsonObject[] => [
  ...(reasoning ? [{ reasoning_content: reasoning }] : []),
  ...(content ? [{ content }] : []),
  ...toolCalls.map((call, index) => ({ tool_calls: [{ index, ...toolCall(call) }] })),
]

const head = ({ id, createdAt, model }: Pick<CanonicalResponse, 'id' | 'createdAt' | 'model'>, object: string) => ({
  id: `chatcmpl-${idStem(id)}`,
  object,
  created: createdAt,
  model,
})

const toolCall = ({ id, name, arguments: text }: ToolCall) => ({
  id,
  type: 'function',
  function: { name, arguments: text },
})

const usageBody = ({ promptTokens, completionTokens, cachedTokens }: Usage): JsonObject => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
  ...(cachedTokens > 0 && { prompt_tokens_details: { cached_tokens: cachedTokens } }),
})

const dataFrame = (data: JsonObject): SseFrame => ({ event: null, data: JSON.stringify(data) })

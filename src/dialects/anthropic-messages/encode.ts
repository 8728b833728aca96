// Canonical answers as Anthropic messages, whole and streamed. What must hold: a block closes before the next opens and indexes rise by one;
// `message_start` has every key the SDK reads; no `tool_use` carries an input that the model did not write (case anthropic-response-7).

import type { CanonicalEvent, CanonicalRequest, CanonicalResponse, Usage } from '../../domain/conversation.js'
import type { JsonObject } from '../../domain/json.js'
import type { SseFrame, StreamEncoder } from '../base.js'
import { argumentsObject, callAsText, type Ending, endingOf, mayBeCut } from '../shared/answer.js'
import { BlockSequencer, type BlockStep } from '../shared/blocks.js'
import { errorBody } from './errors.js'

/** Body of a non-streaming answer. A call whose arguments are no JSON object becomes a text block. Throws UPSTREAM_ERROR for half answers. */
export function encodeMessage(response: CanonicalResponse, _request: CanonicalRequest): JsonObject {
  const content: JsonObject[] = []
  if (response.reasoning) {
    content.push({ type: 'thinking', thinking: response.reasoning, signature: signature(response.reasoning) })
  }
  if (response.content) content.push({ type: 'text', text: response.content })
  let calls = 0
  for (const [index, call] of response.toolCalls.entries()) {
    const cut = mayBeCut(response, index)
    const input = argumentsObject(call.arguments, cut)
    if (input === null) {
      content.push({ type: 'text', text: callAsText(call, cut) })
    } else {
      calls += 1
      content.push({ type: 'tool_use', id: call.id, name: call.name, input })
    }
  }
  return {
    id: response.id,
    type: 'message',
    role: 'assistant',
    model: response.model,
    content,
    ...stopFields(response, calls),
    usage: { ...inputUsage(response.usage), output_tokens: response.usage.completionTokens },
  }
}

/** Encoder of one live answer. Held: the end of a `tool_use` block, `message_delta`, and all that follows either. */
export function messageStream(_request: CanonicalRequest): StreamEncoder {
  const blocks = new BlockSequencer()
  let index = 0
  let calls = 0
  let kind: 'reasoning' | 'text' | 'call' = 'text'
  let isHeld = false
  const out = (data: JsonObject & { readonly type: string }) => ({
    frame: { event: data.type, data: JSON.stringify(data) },
    hold: isHeld,
  })

  const step = (block: BlockStep) => {
    switch (block.type) {
      case 'open':
        kind = block.kind
        if (kind === 'call') calls += 1
        return [out({ type: 'content_block_start', index, content_block: emptyBlock(block) })]
      case 'delta':
        return [out({ type: 'content_block_delta', index, delta: delta(kind, block.text) })]
      case 'close': {
        const sealed = block.kind === 'reasoning' ? [signature(block.text)] : []
        const frames = sealed.map(text =>
          out({ type: 'content_block_delta', index, delta: { type: 'signature_delta', signature: text } }),
        )
        isHeld ||= block.kind === 'call'
        frames.push(out({ type: 'content_block_stop', index }))
        index += 1
        return frames
      }
    }
  }

  return {
    push(event: CanonicalEvent) {
      if (event.type === 'response-start') return [out(messageStart(event))]
      if (event.type === 'response-end') endingOf(event.response, calls)
      const frames = blocks.push(event).flatMap(step)
      if (event.type !== 'response-end') return frames
      isHeld = true
      const { response } = event
      const usage = { ...inputUsage(response.usage), output_tokens: response.usage.completionTokens }
      return [
        ...frames,
        out({ type: 'message_delta', delta: stopFields(response, calls), usage }),
        out({ type: 'message_stop' }),
      ]
    },
    fail: (status, message): readonly SseFrame[] => [
      { event: 'error', data: JSON.stringify(errorBody(status, message)) },
    ],
  }
}

const STOP_REASONS = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  content_filter: 'refusal',
} as const satisfies Record<Ending, string>

function stopFields(response: CanonicalResponse, calls: number): JsonObject {
  const ending = endingOf(response, calls)
  const matched = ending === 'stop' ? response.stopSequence : undefined
  return {
    stop_reason: matched === undefined ? STOP_REASONS[ending] : 'stop_sequence',
    stop_sequence: matched ?? null,
  }
}

/** Anthropic counts cached prompt tokens apart from `input_tokens`. */
const inputUsage = ({ promptTokens, cachedTokens }: Pick<Usage, 'promptTokens' | 'cachedTokens'>): JsonObject => ({
  input_tokens: promptTokens - cachedTokens,
  ...(cachedTokens > 0 && { cache_read_input_tokens: cachedTokens }),
})

const messageStart = (event: Extract<CanonicalEvent, { type: 'response-start' }>) => ({
  type: 'message_start' as const,
  message: {
    id: event.id,
    type: 'message',
    role: 'assistant',
    model: event.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: event.promptTokens ?? 0, output_tokens: 0 },
  },
})

function emptyBlock(block: Extract<BlockStep, { type: 'open' }>): JsonObject {
  switch (block.kind) {
    case 'reasoning':
      return { type: 'thinking', thinking: '', signature: '' }
    case 'text':
      return { type: 'text', text: '' }
    case 'call':
      return { type: 'tool_use', id: block.id, name: block.name, input: {} }
  }
}

function delta(kind: 'reasoning' | 'text' | 'call', text: string): JsonObject {
  if (kind === 'reasoning') return { type: 'thinking_delta', thinking: text }
  return kind === 'text' ? { type: 'text_delta', text } : { type: 'input_json_delta', partial_json: text }
}

/** Clients replay a signature and never check it; ours says only how long the text was. */
const signature = (thinking: string): string => `sg_${thinking.length}`

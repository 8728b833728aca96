// Canonical answers as Responses objects, whole and streamed. What must hold: every item has `response.output_item.done` (Codex reads nothing
// else) and the stream one terminal event; a cut answer is `incomplete`, never `completed` (case responses-response-1); sequence numbers rise
// by one from 0.

import type { CanonicalEvent, CanonicalRequest, CanonicalResponse, Usage } from '../../domain/conversation.js'
import type { JsonObject } from '../../domain/json.js'
import type { SseFrame, StreamEncoder } from '../base.js'
import { callAsText, endingOf, idStem, mayBeCut } from '../shared/answer.js'
import { BlockSequencer, type BlockStep } from '../shared/blocks.js'
import { callHead, callItem, customInput, type ItemContext, messageItem, reasoningItem, textContent } from './items.js'
import { declaredTool } from './tools.js'

/** Body of a non-streaming answer. Throws UPSTREAM_ERROR for half answers. */
export function encodeResponseObject(response: CanonicalResponse, request: CanonicalRequest): JsonObject {
  const context: ItemContext = { stem: idStem(response.id), echo: request.echo }
  const output: JsonObject[] = []
  if (response.reasoning) output.push(reasoningItem(context, output.length, response.reasoning))
  if (response.content) {
    const cut = response.finish === 'length' && response.toolCalls.length === 0
    output.push(messageItem(context, output.length, response.content, cut ? 'incomplete' : 'completed'))
  }
  for (const [index, call] of response.toolCalls.entries()) {
    output.push(callItem(context, output.length, call, mayBeCut(response, index)))
  }
  return responseObject(response, request, { ...terminalFields(response), output, usage: usageBody(response.usage) })
}

/** Encoder of one live answer. Held: the first `response.output_item.done` of a call, the terminal event, and all that follows either. */
export function responsesStream(request: CanonicalRequest): StreamEncoder {
  const blocks = new BlockSequencer()
  const output: JsonObject[] = []
  let start: ResponseHead = { id: 'msg_0', createdAt: 0, model: request.model }
  let context: ItemContext = { stem: '0', echo: request.echo }
  let open: Extract<BlockStep, { type: 'open' }> = { type: 'open', kind: 'text' }
  let sequence = 0
  let isHeld = false

  const frame = (type: string, fields: JsonObject): SseFrame => ({
    event: type,
    data: JSON.stringify({ type, sequence_number: sequence++, ...fields }),
  })
  const out = (type: string, fields: JsonObject) => ({ frame: frame(type, fields), hold: isHeld })

  const opened = (block: Extract<BlockStep, { type: 'open' }>) => {
    open = block
    const index = output.length
    const added = (item: JsonObject) => out('response.output_item.added', { output_index: index, item })
    switch (block.kind) {
      case 'reasoning': {
        const item = reasoningItem(context, index, null)
        const part = { type: 'summary_text', text: '' }
        return [
          added(item),
          out('response.reasoning_summary_part.added', { ...at(item, index), summary_index: 0, part }),
        ]
      }
      case 'text': {
        const item = messageItem(context, index, null, 'in_progress')
        return [
          added(item),
          out('response.content_part.added', { ...at(item, index), content_index: 0, part: textContent('') }),
        ]
      }
      case 'call': {
        const declared = declaredTool(context.echo, block.name)
        const head = callHead(context, index, block, declared, 'in_progress')
        if (declared.kind === 'function') return [added({ ...head, arguments: '' })]
        // The other kinds are read from whole arguments and added when the call closes.
        return []
      }
    }
  }

  const grown = (text: string) => {
    const index = output.length
    switch (open.kind) {
      case 'reasoning':
        return [
          out('response.reasoning_summary_text.delta', {
            ...at(reasoningItem(context, index, null), index),
            summary_index: 0,
            delta: text,
          }),
        ]
      case 'text':
        return [
          out('response.output_text.delta', {
            ...at(messageItem(context, index, null, 'in_progress'), index),
            content_index: 0,
            delta: text,
            logprobs: [],
          }),
        ]
      case 'call': {
        const declared = declaredTool(context.echo, open.name)
        if (declared.kind !== 'function') return []
        const head = callHead(context, index, open, declared, 'in_progress')
        return [out('response.function_call_arguments.delta', { ...at(head, index), delta: text })]
      }
    }
  }

  const closed = (block: Extract<BlockStep, { type: 'close' }>) => {
    const index = output.length
    const status = block.cut ? 'incomplete' : 'completed'
    const item =
      block.kind === 'call'
        ? callItem(context, index, block.call, block.cut)
        : block.kind === 'text'
          ? messageItem(context, index, block.text, status)
          : reasoningItem(context, index, block.text)
    const frames = ending(block, item, index)
    isHeld ||= block.kind === 'call'
    output.push(item)
    return [...frames, out('response.output_item.done', { output_index: index, item })]
  }

  /** The events between an item's last delta and its `done`. */
  const ending = (block: Extract<BlockStep, { type: 'close' }>, item: JsonObject, index: number): EncodedFrame[] => {
    const place = at(item, index)
    if (block.kind === 'reasoning') {
      const part = { type: 'summary_text', text: block.text }
      return [
        out('response.reasoning_summary_text.done', { ...place, summary_index: 0, text: block.text }),
        out('response.reasoning_summary_part.done', { ...place, summary_index: 0, part }),
      ]
    }
    if (block.kind !== 'call') {
      return [
        out('response.output_text.done', { ...place, content_index: 0, text: block.text, logprobs: [] }),
        out('response.content_part.done', { ...place, content_index: 0, part: textContent(block.text) }),
      ]
    }
    const { call, cut } = block
    if (item['type'] === 'function_call') {
      const { name } = declaredTool(context.echo, call.name)
      return [out('response.function_call_arguments.done', { ...place, name, arguments: call.arguments })]
    }
    if (item['type'] === 'message') {
      // A shell call without a command: a text of its own, which nothing announced before.
      const text = callAsText(call, cut)
      const shown = { type: 'close', kind: 'text', text, cut } as const
      return [...opened({ type: 'open', kind: 'text' }), ...grown(text), ...ending(shown, item, index)]
    }
    const isCustom = item['type'] === 'custom_tool_call'
    const announced = { ...item, status: 'in_progress', ...(isCustom && { input: '' }) }
    const added = out('response.output_item.added', { output_index: index, item: announced })
    if (!isCustom) return [added]
    const input = customInput(call.arguments, cut)
    return [
      added,
      out('response.custom_tool_call_input.delta', { ...place, delta: input }),
      out('response.custom_tool_call_input.done', { ...place, input }),
    ]
  }

  return {
    push(event: CanonicalEvent) {
      if (event.type === 'response-start') {
        start = event
        context = { stem: idStem(event.id), echo: request.echo }
        const response = responseObject(start, request, { status: 'in_progress', output: [], usage: null })
        return [out('response.created', { response }), out('response.in_progress', { response })]
      }
      const terminal = event.type === 'response-end' ? terminalFields(event.response) : null
      const frames = blocks.push(event).flatMap(step => {
        if (step.type === 'open') return opened(step)
        return step.type === 'delta' ? grown(step.text) : closed(step)
      })
      if (event.type !== 'response-end' || terminal === null) return frames
      isHeld = true
      const fields = { ...terminal, output, usage: usageBody(event.response.usage) }
      frames.push(out(`response.${terminal.status}`, { response: responseObject(event.response, request, fields) }))
      return frames
    },
    fail(status, message, code) {
      const error = { code: failureCode(status, code), message }
      // Items that were held back are not repeated: a call that the client never got must not be acted on.
      const fields = { status: 'failed', error, output: [], usage: null }
      return [frame('response.failed', { response: responseObject(start, request, fields) })]
    },
  }
}

/** Codes by which clients decide what to do: Codex retries `server_error` and gives up on the others. */
const FAILURE_CODES = new Set([
  'context_length_exceeded',
  'rate_limit_exceeded',
  'insufficient_quota',
  'invalid_prompt',
])

function failureCode(status: number, code: string | undefined): string {
  if (code !== undefined && FAILURE_CODES.has(code)) return code
  return status === 429 ? 'rate_limit_exceeded' : 'server_error'
}

type EncodedFrame = ReturnType<StreamEncoder['push']>[number]

type ResponseHead = Pick<CanonicalResponse, 'id' | 'createdAt' | 'model'>

/** Where an event belongs. */
const at = (item: JsonObject, index: number): JsonObject => ({ item_id: item['id'] ?? null, output_index: index })

function terminalFields(response: CanonicalResponse): {
  readonly status: 'completed' | 'incomplete'
  readonly incomplete_details: JsonObject | null
} {
  switch (endingOf(response, response.toolCalls.length)) {
    case 'length':
      return { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }
    case 'content_filter':
      return { status: 'incomplete', incomplete_details: { reason: 'content_filter' } }
    case 'stop':
    case 'tool_calls':
      return { status: 'completed', incomplete_details: null }
  }
}

/** Id of an answer towards the harness. */
export const responseId = (completionId: string): string => `resp_${idStem(completionId)}`

/** The response object. Settings come back as asked; instructions and tools are not repeated, being large and read by no client. */
function responseObject(head: ResponseHead, { echo }: CanonicalRequest, fields: JsonObject): JsonObject {
  return {
    id: responseId(head.id),
    object: 'response',
    created_at: head.createdAt,
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: echo['maxOutputTokens'] ?? null,
    model: head.model,
    output: [],
    parallel_tool_calls: echo['parallelToolCalls'] ?? true,
    previous_response_id: echo['previousId'] ?? null,
    reasoning: { effort: echo['effort'] ?? null, summary: echo['summary'] ?? null },
    store: echo['store'] ?? true,
    temperature: echo['temperature'] ?? null,
    text: { format: echo['format'] ?? { type: 'text' } },
    tool_choice: echo['toolChoice'] ?? 'auto',
    tools: [],
    top_p: echo['topP'] ?? null,
    truncation: 'disabled',
    usage: null,
    user: null,
    metadata: echo['metadata'] ?? {},
    ...fields,
  }
}

const usageBody = ({ promptTokens, completionTokens, cachedTokens }: Usage): JsonObject => ({
  input_tokens: promptTokens,
  input_tokens_details: { cached_tokens: cachedTokens },
  output_tokens: completionTokens,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: promptTokens + completionTokens,
})

// Canonical answers as Gemini content, whole and streamed. What must hold: a function call is one whole part with an id of ours (recorded
// turns are matched by it); the last chunk has `finishReason` and `usageMetadata` (case gemini-2); an answer without any visible part gets
// one (gemini-3), which decode.ts takes out of the history again. Thoughts travel twice: as a thought part, which Gemini CLI drops, and in
// the `thoughtSignature` of the first visible part, which it keeps.

import type { CanonicalEvent, CanonicalRequest, CanonicalResponse, ToolCall, Usage } from '../../domain/conversation.js'
import type { JsonObject } from '../../domain/json.js'
import type { SseFrame, StreamEncoder } from '../base.js'
import { argumentsObject, callAsText, type Ending, endingOf, idStem, mayBeCut } from '../shared/answer.js'
import { sealText } from '../shared/base64.js'
import { BlockSequencer, type BlockStep } from '../shared/blocks.js'
import { errorBody } from './errors.js'

/** Gemini CLI takes an answer without visible text for a fault and asks again, so such an answer says this. */
export const VISIBLE_NOTE = '(no visible answer)'

/** Body of a non-streaming answer. Throws UPSTREAM_ERROR for half answers. */
export function encodeContent(response: CanonicalResponse, _request: CanonicalRequest): JsonObject {
  const parts = partWriter()
  const all = [
    ...(response.reasoning ? parts.thought(response.reasoning) : []),
    ...(response.content ? parts.text(response.content) : []),
    ...response.toolCalls.flatMap((call, index) => parts.call(call, mayBeCut(response, index))),
    ...parts.rest(),
  ]
  return chunk(response, all, finishFields(response))
}

/** Encoder of one live answer. Held: the first part with a function call, the last chunk, and all that follows either. */
export function googleStream(_request: CanonicalRequest): StreamEncoder {
  const blocks = new BlockSequencer()
  const parts = partWriter()
  let start: Pick<CanonicalResponse, 'id' | 'model'> = { id: '', model: '' }
  let kind: 'reasoning' | 'text' | 'call' = 'text'
  let isHeld = false

  const partsOf = (step: BlockStep): JsonObject[] => {
    switch (step.type) {
      case 'open':
        kind = step.kind
        return []
      case 'delta':
        if (kind === 'call') return []
        return kind === 'text' ? parts.text(step.text) : parts.thought(step.text)
      case 'close':
        return step.kind === 'call' ? parts.call(step.call, step.cut) : []
    }
  }
  const out = (list: readonly JsonObject[], rest: JsonObject = {}) => {
    isHeld ||= list.some(part => part['functionCall'] !== undefined)
    return { frame: frame(chunk(start, list, rest)), hold: isHeld }
  }

  return {
    push(event: CanonicalEvent) {
      if (event.type === 'response-start') {
        start = event
        return []
      }
      const isEnd = event.type === 'response-end'
      if (isEnd) {
        start = event.response
        endingOf(event.response, event.response.toolCalls.length)
      }
      const frames = blocks.push(event).flatMap(step => partsOf(step).map(part => out([part])))
      if (!isEnd) return frames
      frames.push(...parts.rest().map(part => out([part])))
      isHeld = true
      return [...frames, out([{ text: '' }], finishFields(event.response))]
    },
    fail: (status, message): readonly SseFrame[] => [frame(errorBody(status, message))],
  }
}

/** Makes the parts of one answer in order, and knows what is still owed at its end. */
function partWriter() {
  let thoughts = ''
  let isSigned = false
  let isVisible = false
  const visible = (part: JsonObject): JsonObject[] => {
    isVisible = true
    if (isSigned || thoughts === '') return [part]
    isSigned = true
    return [{ ...part, thoughtSignature: sealText(thoughts) }]
  }
  const text = (piece: string) => visible({ text: piece })
  return {
    thought(piece: string): JsonObject[] {
      thoughts += piece
      return [{ text: piece, thought: true }]
    },
    text,
    /** Arguments that are no object cannot be a part of this kind: the call is shown as text. */
    call(call: ToolCall, cut: boolean): JsonObject[] {
      const args = argumentsObject(call.arguments, cut)
      if (args === null) return text(callAsText(call, cut))
      return visible({ functionCall: { id: call.id, name: call.name, args } })
    },
    rest: (): JsonObject[] => (isVisible ? [] : text(VISIBLE_NOTE)),
  }
}

const FINISH_REASONS = {
  stop: 'STOP',
  tool_calls: 'STOP',
  length: 'MAX_TOKENS',
  content_filter: 'SAFETY',
} as const satisfies Record<Ending, string>

const finishFields = (response: CanonicalResponse): JsonObject => ({
  finishReason: FINISH_REASONS[endingOf(response, response.toolCalls.length)],
  usageMetadata: usageMetadata(response.usage),
})

function chunk(
  { id, model }: Pick<CanonicalResponse, 'id' | 'model'>,
  parts: readonly JsonObject[],
  { finishReason, usageMetadata: usage }: JsonObject,
): JsonObject {
  return {
    candidates: [{ content: { parts, role: 'model' }, ...(finishReason !== undefined && { finishReason }), index: 0 }],
    ...(usage !== undefined && { usageMetadata: usage }),
    modelVersion: model,
    responseId: idStem(id),
  }
}

const usageMetadata = ({ promptTokens, completionTokens, cachedTokens }: Usage): JsonObject => ({
  promptTokenCount: promptTokens,
  candidatesTokenCount: completionTokens,
  totalTokenCount: promptTokens + completionTokens,
  ...(cachedTokens > 0 && { cachedContentTokenCount: cachedTokens }),
})

const frame = (data: JsonObject): SseFrame => ({ event: null, data: JSON.stringify(data) })

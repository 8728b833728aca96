// Reads a streamed Chat Completions answer with token ids in its chunks (vLLM's form; plain OpenAI streams as well). Chunks
// without text may carry ids: none is skipped. Usage may come after the finish reason, ids of the prompt in any chunk.

import type { PolicySpan } from '../../domain/completion.js'
import type { ToolCall, Usage } from '../../domain/conversation.js'
import type { JsonObject } from '../../domain/json.js'
import type { UpstreamDelta, UpstreamStreamReader } from '../base.js'
import {
  argumentsText,
  finishOf,
  logprobEntriesOf,
  logprobsOf,
  reasoningOf,
  usageOf,
  weightSpansOf,
} from './chat-answer.js'
import { readErrorBody } from './errors.js'
import { idsOf, listOf, objectOf, parseJson, textOf } from './read.js'

export function chatStreamReader(): UpstreamStreamReader {
  let content: string | null = null
  let reasoning: string | null = null
  let usage: Usage | null = null
  let promptIds: Int32Array | null = null
  let promptTold = false
  let engineFinish: string | null = null
  let stopSequence: string | null = null
  let sampled: number[] | null = null
  let logprobContent: JsonObject[] | null = null
  /** By the engine's own index; `position` is ours, in order of appearance. */
  const calls = new Map<number, { id: string; name: string; arguments: string; position: number | null }>()
  let started = 0
  let spans: readonly PolicySpan[] | null = null

  function readCalls(delta: JsonObject, out: UpstreamDelta[]): void {
    for (const [order, entry] of listOf(delta['tool_calls']).entries()) {
      const part = objectOf(entry)
      if (part === null) continue
      const index = typeof part['index'] === 'number' ? part['index'] : order
      const call = calls.get(index) ?? { id: '', name: '', arguments: '', position: null }
      calls.set(index, call)
      const fn = objectOf(part['function'])
      if (call.position === null) {
        call.id ||= textOf(part['id']) ?? ''
        call.name += textOf(fn?.['name']) ?? ''
      }
      const piece = argumentsText(fn?.['arguments'])
      call.arguments += piece
      if (call.position === null) {
        if (call.name === '') continue
        call.position = started
        started += 1
        out.push({ type: 'tool-call-start', index: call.position, id: call.id, name: call.name })
        if (call.arguments !== '') {
          out.push({ type: 'tool-call-arguments', index: call.position, text: call.arguments })
        }
      } else if (piece !== '') {
        out.push({ type: 'tool-call-arguments', index: call.position, text: piece })
      }
    }
  }

  function readChoice(choice: JsonObject, out: UpstreamDelta[]): void {
    const ids = idsOf(choice['token_ids'])
    if (ids !== null) {
      sampled ??= []
      for (const id of ids) sampled.push(id)
    }
    const entries = logprobEntriesOf(choice)
    if (entries !== null) {
      logprobContent ??= []
      for (const entry of entries) logprobContent.push(entry)
    }
    const delta = objectOf(choice['delta']) ?? {}
    const thought = reasoningOf(delta)
    if (thought !== null) {
      reasoning = (reasoning ?? '') + thought
      if (thought !== '') out.push({ type: 'reasoning', text: thought })
    }
    const text = textOf(delta['content'])
    if (text !== null) {
      // An empty first piece announces the role; it does not make the content an empty text.
      if (text !== '') {
        content = (content ?? '') + text
        out.push({ type: 'text', text })
      }
    }
    readCalls(delta, out)
    engineFinish = textOf(choice['finish_reason']) ?? engineFinish
    stopSequence = textOf(choice['stop_reason']) ?? stopSequence
    // The last list stands for the whole answer.
    spans = weightSpansOf(choice['weight_versions']) ?? spans
  }

  return {
    push(data) {
      if (data.trim() === '[DONE]') return []
      const chunk = objectOf(parseJson(data))
      if (chunk === null) {
        return [{ type: 'error', status: 502, message: 'an event of the inference server is not a JSON object' }]
      }
      if (chunk['error'] !== undefined || chunk['object'] === 'error') {
        const { status, message } = readErrorBody(502, data)
        return [{ type: 'error', status, message }]
      }
      const out: UpstreamDelta[] = []
      const choice = objectOf(listOf(chunk['choices'])[0])
      usage = usageOf(chunk['usage']) ?? usage
      promptIds ??= idsOf(chunk['prompt_token_ids']) ?? idsOf(choice?.['prompt_token_ids'])
      const promptTokens = promptIds?.length ?? usage?.promptTokens
      if (!promptTold && promptTokens !== undefined) {
        promptTold = true
        out.push({ type: 'prompt', promptTokens })
      }
      if (choice !== null) readChoice(choice, out)
      return out
    },
    answer() {
      const toolCalls: ToolCall[] = [...calls.values()]
        .filter(call => call.position !== null)
        .map(({ id, name, arguments: text }) => ({ id, name, arguments: text }))
      return {
        complete: engineFinish !== null,
        answer: {
          content,
          reasoning,
          toolCalls,
          finish: finishOf(engineFinish, toolCalls.length > 0),
          engineFinish: engineFinish ?? '',
          stopSequence,
          usage,
          promptIds,
          sampledIds: sampled === null ? null : Int32Array.from(sampled),
          logprobs: logprobsOf(logprobContent),
          logprobContent,
          weightVersion: null,
          ...(spans !== null && { weightSpans: spans }),
        },
      }
    },
  }
}

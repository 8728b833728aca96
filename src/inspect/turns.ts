// A trace as turns: what came in before each answer, the answer's tokens with mask and logprob, its tool calls. Pure.

import { isObject } from '../domain/json.js'
import type { SavedCall, SavedTrace } from './read.js'

/** Text of each id, one piece an id (an id in the middle of a character gives ''); null = the ids are not of this vocabulary. */
export type TokenPieces = (ids: readonly number[]) => readonly string[] | null

export interface ShownMessage {
  readonly role: string
  readonly text: string
  readonly reasoning: string
  readonly calls: readonly { readonly name: string; readonly arguments: string }[]
}

export interface ShownToken {
  readonly id: number
  readonly text: string
  readonly trained: boolean
  /** Nats; null where the token is not trained. */
  readonly logprob: number | null
}

export interface Turn {
  readonly call: SavedCall
  /** Messages between the answer before and this one. */
  readonly context: readonly ShownMessage[]
  /** Ids between them, mask 0. */
  readonly contextIds: readonly number[]
  readonly tokens: readonly ShownToken[]
  readonly answer: ShownMessage | null
}

export interface ShownTrace {
  readonly prompt: readonly ShownMessage[]
  readonly promptIds: readonly number[]
  readonly turns: readonly Turn[]
  readonly trained: number
  /** false: the text of ids cannot be told, or is not what the recorded answers say. */
  readonly textKnown: boolean
}

/** Builds the turns of a saved trace. Without call spans the whole response is one turn. */
export function showTrace(trace: SavedTrace, pieces: TokenPieces): ShownTrace {
  const listed = trace.metadata.completion_metadata
  const calls = listed.length > 0 ? listed : [wholeResponse(trace)]
  const texts = pieces(trace.response_ids)
  let at = 0
  let messageAt = 0
  const turns = calls.map((call): Turn => {
    const index = call.message_index
    const answer = index === null ? undefined : trace.response_messages[index]
    const turn = {
      call,
      context: (index === null ? [] : trace.response_messages.slice(messageAt, index)).map(showMessage),
      contextIds: trace.response_ids.slice(at, call.start),
      tokens: tokensOf(trace, call, texts),
      answer: answer ? showMessage(answer) : null,
    }
    at = call.end
    messageAt = index === null ? messageAt : index + 1
    return turn
  })
  return {
    prompt: trace.prompt_messages.map(showMessage),
    promptIds: trace.prompt_ids,
    turns,
    trained: trace.loss_mask.filter(one => one === 1).length,
    textKnown: texts !== null && turns.every(saysWhatWasRecorded),
  }
}

function tokensOf(trace: SavedTrace, call: SavedCall, texts: readonly string[] | null): ShownToken[] {
  return trace.response_ids.slice(call.start, call.end).map((id, i) => {
    const at = call.start + i
    const trained = trace.loss_mask[at] === 1
    return {
      id,
      text: texts?.[at] ?? `⟨${id}⟩`,
      trained,
      logprob: trained ? (trace.response_logprobs?.[at] ?? null) : null,
    }
  })
}

function wholeResponse(trace: SavedTrace): SavedCall {
  return {
    completion_id: '?',
    join: null,
    start: 0,
    end: trace.response_ids.length,
    trained: trace.loss_mask.includes(1),
    set_aside: null,
    finish_reason: trace.finish_reason,
    policy_version_start: null,
    policy_version_end: null,
    message_index: null,
    started_at_ms: 0,
    finished_at_ms: 0,
    cached_tokens: 0,
    prompt_tokens: trace.prompt_ids.length,
  }
}

/** A wrong tokenizer gives other words: the first words of the recorded answer must stand in the tokens' text. */
function saysWhatWasRecorded({ tokens, answer }: Turn): boolean {
  const words = answer?.text.trim().slice(0, 40) ?? ''
  const spaceless = (text: string) => text.replace(/\s+/g, '')
  return spaceless(tokens.map(token => token.text).join('')).includes(spaceless(words))
}

export function showMessage(message: Readonly<Record<string, unknown>>): ShownMessage {
  const calls = Array.isArray(message['tool_calls']) ? message['tool_calls'] : []
  return {
    role: typeof message['role'] === 'string' ? message['role'] : '?',
    text: contentText(message['content']),
    reasoning: contentText(message['reasoning_content'] ?? message['reasoning']),
    calls: calls.filter(isObject).map(call => {
      const named = isObject(call['function']) ? call['function'] : call
      return { name: contentText(named['name']), arguments: contentText(named['arguments']) }
    }),
  }
}

function contentText(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) return JSON.stringify(value)
  return value
    .map(part => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : `[${partType(part)}]`))
    .join('\n')
}

const partType = (part: unknown): string => (isObject(part) && typeof part['type'] === 'string' ? part['type'] : 'part')

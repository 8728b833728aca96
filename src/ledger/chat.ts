// Reading the Chat form that records carry: the message of an answer, its reasoning and calls.

import type { LoggedRecord } from '../domain/completion.js'
import { isObject, type Json, type JsonObject } from '../domain/json.js'

export interface AnswerView {
  readonly content: string
  readonly reasoning: string
  readonly calls: readonly { readonly name: string; readonly arguments: string }[]
}

const objects = (value: unknown): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter((item): item is JsonObject => isObject(item)) : []

/** The assistant message of a recorded answer, from `choices[0].message`, `message`, or the answer itself; null = none. */
export function answerOf({ response }: Pick<LoggedRecord, 'response'>): JsonObject | null {
  const choice = objects(response['choices'])[0]
  for (const candidate of [choice?.['message'], response['message'], response])
    if (isObject(candidate) && candidate['role'] === 'assistant') return candidate as JsonObject // decoded JSON
  return null
}

/** An assistant message as text, reasoning and calls, whichever spelling it uses. */
export function viewOf(message: JsonObject): AnswerView {
  const calls = objects(message['tool_calls']).map(call => {
    const named = isObject(call['function']) ? call['function'] : {}
    return { name: textOf(named['name'] as Json), arguments: textOf(named['arguments'] as Json) } // decoded JSON
  })
  return {
    content: textOf(message['content']),
    reasoning: textOf(message['reasoning_content']) || textOf(message['reasoning']),
    calls,
  }
}

/** Text of a content field: a string, text parts put together, or a value as JSON. */
export function textOf(value: Json | undefined): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) return JSON.stringify(value)
  return value.map(part => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('')
}

/** Arguments as a JSON value with sorted keys; the raw text where it is no JSON. An empty text counts as `{}`. */
export function argumentsValue(text: string): string {
  try {
    return JSON.stringify(sorted(JSON.parse(text.trim() === '' ? '{}' : text)))
  } catch {
    return text
  }
}

/** True when a call with these arguments can be given and replayed as a call. An empty text counts as `{}`. */
export function isArgumentsObject(text: string): boolean {
  try {
    return text.trim() === '' || isObject(JSON.parse(text))
  } catch {
    return false
  }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map(key => [key, sorted(value[key])]),
  )
}

/**
 * True when `replay` is the recorded answer up to what templates and harnesses take away: reasoning, white space at the
 * edges, the bytes of arguments. An answer that says nothing is like no other.
 */
export function isLikeAnswer(recorded: AnswerView, replay: AnswerView): boolean {
  if (recorded.content.trim() === '' && recorded.calls.length === 0) return false
  return (
    recorded.content.trim() === replay.content.trim() &&
    recorded.calls.length === replay.calls.length &&
    recorded.calls.every((call, i) => {
      const other = replay.calls[i]
      return other?.name === call.name && argumentsValue(other.arguments) === argumentsValue(call.arguments)
    })
  )
}

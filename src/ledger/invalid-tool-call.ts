// The training filter for answers that end in a tool call nobody could parse (contract 9.6): such a trace keeps its mask
// and gets reward 0. An inline mention or a fenced example is not flagged.

import { isObject, type JsonObject } from '../domain/json.js'
import { textOf } from './chat.js'

const ERROR_KEYS = ['tool_call_format_error', 'tool_call_parse_error', 'tool_parser_error', 'invalid_tool_call']
const NESTED_KEYS = ['tool_call_validation', 'parser', 'parse_result']
const CALL_FINISHES = new Set(['tool_calls', 'tool_use', 'function_call'])
const MARKER = /^(<tool_call>|<function=[^>]*>)$/

/** What is wrong with the last assistant message of `messages`, or null. */
export function findInvalidToolCall(finishReason: string | null, messages: readonly JsonObject[]): string | null {
  const last = messages.findLast(message => message['role'] === 'assistant')
  if (!last) return null
  for (const holder of [last, ...NESTED_KEYS.map(key => last[key])]) {
    if (!isObject(holder)) continue
    const key = ERROR_KEYS.find(name => holder[name] !== undefined && holder[name] !== null && holder[name] !== false)
    if (key) return `${key}: ${textOf((holder as JsonObject)[key]).slice(0, 200)}` // decoded JSON
  }
  const calls = last['tool_calls']
  if (Array.isArray(calls) && calls.length > 0) return null
  if (finishReason !== null && CALL_FINISHES.has(finishReason))
    return `finish reason ${finishReason} without a tool call`
  const marker = rawMarker(textOf(last['content']))
  return marker === null ? null : `raw ${marker} without a structured call`
}

/** A call marker alone on a line, outside fenced code. */
function rawMarker(text: string): string | null {
  let fenced = false
  for (const line of text.split('\n')) {
    const trimmed = line.trim()
    if (trimmed.startsWith('```')) fenced = !fenced
    else if (!fenced && MARKER.test(trimmed)) return trimmed
  }
  return null
}

// A later call of a session repeats the messages and tools of an earlier one. Here the repeated ones become the very same objects:
// memory, and what is cloned to the build, grow with what is said once, not with the square of the turns. Pure.

import type { CompletionRecord } from '../../src/domain/completion.js'
import type { Json, JsonObject } from '../../src/domain/json.js'

/** Sub-agents run side by side: the call that this one continues is among the last few. */
const CANDIDATES = 8

/** `record` with messages and tools of the `earlier` call (in order of capture) that shares the longest start with it. Same content. */
export function shareWithEarlier(record: CompletionRecord, earlier: readonly CompletionRecord[]): CompletionRecord {
  const messages = listOf(record.request['messages'])
  let shared: readonly Json[] = []
  let tools: Json | undefined
  for (const { request } of earlier.slice(-CANDIDATES)) {
    const theirs = listOf(request['messages'])
    let length = 0
    while (length < messages.length && length < theirs.length && isSame(messages[length], theirs[length])) length += 1
    if (length > shared.length) shared = theirs.slice(0, length)
    if (tools === undefined && isSame(request['tools'], record.request['tools'])) tools = request['tools']
  }
  if (shared.length === 0 && tools === undefined) return record
  const request: JsonObject = {
    ...record.request,
    ...(shared.length > 0 && { messages: [...shared, ...messages.slice(shared.length)] }),
    ...(tools !== undefined && { tools }),
  }
  return { ...record, request }
}

const listOf = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : [])

function isSame(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((part, index) => isSame(part, b[index]))
  }
  if (Array.isArray(b)) return false
  // Neither is an array; TypeScript does not narrow a readonly array out of the union.
  const [one, other] = [a as JsonObject, b as JsonObject]
  const keys = Object.keys(one)
  return (
    keys.length === Object.keys(other).length &&
    keys.every(key => Object.hasOwn(other, key) && isSame(one[key], other[key]))
  )
}

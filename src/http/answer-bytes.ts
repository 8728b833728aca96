// An engine's answer from its bytes: JSON.parse, but lists of token ids become Int32Array and logprobs a LogprobList without a step over
// JavaScript objects. A prompt of 100,000 ids is most of an answer's bytes, and 300 logprob entries most of its objects.
//
// The wanted lists are found by a walk over the bytes and cut out; JSON.parse reads what is left, with `null` in their places. Where the
// walk meets anything unusual it reads all, so that what is accepted and what it means are always those of JSON.parse.

import type { JsonObject } from '../domain/json.js'
import {
  eachField,
  eachItem,
  lastFloat,
  readFloat,
  readIds,
  skipColon,
  skipSpace,
  skipValue,
  startsWith,
} from './json-bytes.js'

/** `logprobs.content` of an answer, its entries not made yet. */
export class LogprobList {
  /** Nats, one for each entry. */
  readonly values: Float32Array
  readonly #bytes: Uint8Array

  constructor(values: Float32Array, bytes: Uint8Array) {
    this.values = values
    this.#bytes = bytes
  }

  /** The entries as the engine wrote them, made anew by each call. */
  entries(): readonly JsonObject[] {
    // Only a list of objects becomes a LogprobList.
    return JSON.parse(textOf(this.#bytes)) as JsonObject[]
  }
}

/** A value cut out of the text, and where it goes in what is parsed. */
interface Cut {
  readonly from: number
  readonly to: number
  readonly path: readonly (string | number)[]
  readonly value: Int32Array | LogprobList
}

type Name = keyof typeof NAMES
const encoder = new TextEncoder()
const NAMES = {
  prompt_token_ids: encoder.encode('prompt_token_ids'),
  token_ids: encoder.encode('token_ids'),
  input_token_ids: encoder.encode('input_token_ids'),
  choices: encoder.encode('choices'),
  logprobs: encoder.encode('logprobs'),
  content: encoder.encode('content'),
} as const
const IN_BODY: readonly Name[] = ['prompt_token_ids', 'token_ids', 'choices']
const IN_CHOICE: readonly Name[] = ['token_ids', 'prompt_token_ids', 'input_token_ids', 'logprobs']
const IN_LOGPROBS: readonly Name[] = ['content']

/**
 * The JSON value of the bytes. Of an answer's body and of its first choice, `prompt_token_ids`, `token_ids` and `input_token_ids` are
 * Int32Array where they are lists of ids, and `logprobs.content` is a LogprobList where each entry is an object with a number for its
 * logprob. Throws the SyntaxError of JSON.parse.
 */
export function parseAnswerBytes(bytes: Uint8Array): unknown {
  const cuts: Cut[] = []
  const end = walkFields(bytes, skipSpace(bytes, 0), IN_BODY, (name, value) =>
    name === 'choices' ? walkChoices(bytes, value, cuts) : cutIds(bytes, value, [name], cuts),
  )
  if (end === -1 || cuts.length === 0 || skipSpace(bytes, end) !== bytes.length) return JSON.parse(textOf(bytes))
  let text = ''
  let from = 0
  for (const cut of cuts) {
    text += `${textOf(bytes.subarray(from, cut.from))}null`
    from = cut.to
  }
  const parsed: unknown = JSON.parse(text + textOf(bytes.subarray(from)))
  for (const { path, value } of cuts) put(parsed, path, value)
  return parsed
}

function walkChoices(bytes: Uint8Array, at: number, cuts: Cut[]): number {
  if (bytes[at] !== OPEN_LIST) return skipValue(bytes, at)
  let index = -1
  return eachItem(bytes, at, choice => {
    index += 1
    if (index > 0 || bytes[choice] !== OPEN_OBJECT) return skipValue(bytes, choice)
    return walkFields(bytes, choice, IN_CHOICE, (name, value) => {
      if (name !== 'logprobs') return cutIds(bytes, value, ['choices', 0, name], cuts)
      if (bytes[value] !== OPEN_OBJECT) return skipValue(bytes, value)
      return walkFields(bytes, value, IN_LOGPROBS, (_, content) => cutLogprobs(bytes, content, cuts))
    })
  })
}

function cutIds(bytes: Uint8Array, at: number, path: Cut['path'], cuts: Cut[]): number {
  const list = readIds(bytes, at)
  if (list === null) return skipValue(bytes, at)
  cuts.push({ from: at, to: list.end, path, value: list.ids })
  return list.end
}

function cutLogprobs(bytes: Uint8Array, at: number, cuts: Cut[]): number {
  const list = readLogprobs(bytes, at)
  if (list === null) return skipValue(bytes, at)
  cuts.push({ from: at, to: list.end, path: ['choices', 0, 'logprobs', 'content'], value: list.logprobs })
  return list.end
}

/** Walks the fields of an object; those that `wanted` names go to `field`. -1 also for a wanted name that comes twice. */
function walkFields(
  bytes: Uint8Array,
  at: number,
  wanted: readonly Name[],
  field: (name: Name, value: number) => number,
): number {
  const seen: Name[] = []
  return eachField(bytes, at, (from, to, value) => {
    const name = wanted.find(key => NAMES[key].length === to - from && startsWith(bytes, from, NAMES[key]))
    // JSON.parse takes the last of two, and reads escapes: rare enough to leave it that.
    if (name === undefined) return hasEscape(bytes, from, to) ? -1 : skipValue(bytes, value)
    if (seen.includes(name)) return -1
    seen.push(name)
    return field(name, value)
  })
}

/** A list of objects of which each has one number `logprob`; null = something else. */
export function readLogprobs(
  bytes: Uint8Array,
  at: number,
): { readonly logprobs: LogprobList; readonly end: number } | null {
  const values: number[] = []
  const end = eachItem(bytes, at, entry => {
    const next = readEntry(bytes, entry)
    if (next !== -1) values.push(lastFloat[0] ?? 0)
    return next
  })
  if (end === -1) return null
  return { logprobs: new LogprobList(Float32Array.from(values), bytes.subarray(at, end)), end }
}

/** One entry; its logprob is `lastFloat` then. Without a callback: it is called for each token. */
function readEntry(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== OPEN_OBJECT) return -1
  let found = 0
  let next = skipSpace(bytes, at + 1)
  for (;;) {
    if (bytes[next] !== QUOTE) return -1
    const key = next + 1
    for (next = key; bytes[next] !== QUOTE; next += 1) {
      // A key with an escape may be any.
      if ((bytes[next] ?? 0) < 32 || bytes[next] === BACKSLASH) return -1
    }
    const isLogprob = next - key === LOGPROB.length && startsWith(bytes, key, LOGPROB)
    next = skipColon(bytes, next + 1)
    if (next === -1) return -1
    if (isLogprob) found += 1
    next = isLogprob ? readFloat(bytes, next) : skipValue(bytes, next)
    if (next === -1) return -1
    next = skipSpace(bytes, next)
    if (bytes[next] === CLOSE_OBJECT) break
    if (bytes[next] !== COMMA) return -1
    next = skipSpace(bytes, next + 1)
  }
  // Of two the second would count; what is no finite number has a meaning of its own.
  return found === 1 && Number.isFinite(lastFloat[0]) ? next + 1 : -1
}

const LOGPROB = new TextEncoder().encode('logprob')
const QUOTE = 34
const COMMA = 44
const CLOSE_OBJECT = 125
const OPEN_LIST = 91
const OPEN_OBJECT = 123
const BACKSLASH = 92

/** A key written with escapes may be any. */
function hasEscape(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) if (bytes[at] === BACKSLASH) return true
  return false
}

function put(root: unknown, path: readonly (string | number)[], value: unknown): void {
  // The walk came this way, so every step is an object or a list of the kind that it saw.
  let place = root as Record<string | number, unknown>
  for (const step of path.slice(0, -1)) place = place[step] as Record<string | number, unknown>
  const last = path.at(-1)
  if (last !== undefined) place[last] = value
}

const textOf = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString('utf8')

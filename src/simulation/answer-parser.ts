// Sampled text -> reasoning, content and tool calls, as vLLM's parsers `qwen3` (reasoning) and `hermes` (calls) split it. Calls are
// looked for only after the thinking has ended: a call inside an unclosed think block stays in the reasoning.
// Unlike vLLM, white space around the content and line feeds around the reasoning are left out, as SGLang's Qwen parser does:
// the template puts them back itself, so a replayed answer renders as it was sampled. `raw` keeps them.

import { redumpJson } from '../tokenizer/python-json.js'

export interface ParserOptions {
  /** False: tags of tool calls are plain text (no tools offered, or tool_choice none). */
  readonly tools: boolean
  readonly raw: boolean
  /**
   * What text before any `</think>` is. `tagged`: reasoning when it begins with `<think>` (SGLang, and vLLM up to 0.10). `always`:
   * reasoning, and an answer that never closes it has no content (vLLM while thinking is on). `never`: tags are plain text (vLLM
   * with thinking off).
   */
  readonly reasoning?: 'tagged' | 'always' | 'never'
}

export type AnswerDelta =
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'content'; readonly text: string }
  | { readonly type: 'call-start'; readonly index: number; readonly name: string }
  | { readonly type: 'call-arguments'; readonly index: number; readonly text: string }

export interface AnswerParser {
  /** Texts of deltas are never empty. */
  push(text: string): readonly AnswerDelta[]
  end(): readonly AnswerDelta[]
}

const THINK_OPEN = '<think>'
const THINK_CLOSE = '</think>'
const CALL_OPEN = '<tool_call>'
const CALL_CLOSE = '</tool_call>'

/** The streaming parser. A call whose head cannot be read is lost, as it is in vLLM. */
export function answerParser({ tools, raw, reasoning: place = 'tagged' }: ParserOptions): AnswerParser {
  let mode: 'start' | 'reasoning' | 'content' | 'call' = place === 'never' ? 'content' : 'start'
  let buffer = ''
  const reasoning = trimmer('reasoning', raw)
  let content = trimmer('content', raw)
  let calls = 0
  let call = callReader(calls)

  /** Takes what is certain out of the buffer; `ended`: nothing more will come. */
  const drain = (ended: boolean, deltas: AnswerDelta[]): void => {
    for (;;) {
      switch (mode) {
        case 'start': {
          const text = buffer.trimStart()
          if (text.startsWith(THINK_OPEN)) {
            buffer = text.slice(THINK_OPEN.length)
            mode = 'reasoning'
          } else if (!ended && THINK_OPEN.startsWith(text)) return
          else mode = place === 'always' ? 'reasoning' : 'content'
          break
        }
        case 'reasoning': {
          const found = takeUntil(THINK_CLOSE, ended)
          deltas.push(...reasoning.push(found.text))
          if (!found.closed) return
          mode = 'content'
          break
        }
        case 'content': {
          const found = tools ? takeUntil(CALL_OPEN, ended) : takeAll()
          deltas.push(...content.push(found.text))
          if (!found.closed) return
          // White space before a call is the template's own.
          if (raw) deltas.push(...content.end(true))
          content = trimmer('content', raw)
          call = callReader(calls)
          mode = 'call'
          break
        }
        case 'call': {
          const found = takeUntil(CALL_CLOSE, ended)
          deltas.push(...call.push(found.text))
          if (!found.closed) return
          if (call.started()) calls += 1
          mode = 'content'
          break
        }
      }
    }
  }

  const takeAll = (): Found => {
    const text = buffer
    buffer = ''
    return { text, closed: false }
  }
  /** The text before `tag`; what may be the beginning of the tag stays in the buffer. */
  const takeUntil = (tag: string, ended: boolean): Found => {
    const at = buffer.indexOf(tag)
    if (at >= 0) {
      const text = buffer.slice(0, at)
      buffer = buffer.slice(at + tag.length)
      return { text, closed: true }
    }
    const kept = ended ? 0 : overlap(buffer, tag)
    const text = buffer.slice(0, buffer.length - kept)
    buffer = buffer.slice(buffer.length - kept)
    return { text, closed: false }
  }

  return {
    push: text => {
      buffer += text
      const deltas: AnswerDelta[] = []
      drain(false, deltas)
      return deltas
    },
    end: () => {
      const deltas: AnswerDelta[] = []
      drain(true, deltas)
      // Trailing white space belongs to an answer that ends in text, not to one that ends in a call.
      if (mode === 'content' && calls === 0) deltas.push(...content.end(true))
      return deltas
    },
  }
}

interface Found {
  readonly text: string
  readonly closed: boolean
}

/** Length of the longest end of `text` that is a beginning of `tag`. */
export function overlap(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length--) {
    if (tag.startsWith(text.slice(text.length - length))) return length
  }
  return 0
}

/** Leaves out white space at both ends (line feeds only, in reasoning and at the beginning), without looking ahead. */
function trimmer(type: 'reasoning' | 'content', raw: boolean) {
  const trailing = type === 'reasoning' ? /\n+$/ : /\s+$/
  let begun = raw
  let held = ''
  return {
    push: (piece: string): readonly AnswerDelta[] => {
      let text = held + piece
      held = ''
      if (!begun) text = text.replace(/^\n+/, '')
      if (text === '') return []
      begun = true
      if (!raw) {
        held = trailing.exec(text)?.[0] ?? ''
        text = text.slice(0, text.length - held.length)
      }
      return text === '' ? [] : [{ type, text }]
    },
    /** What was held back, if it is wanted. */
    end: (wanted: boolean): readonly AnswerDelta[] => (wanted && held !== '' ? [{ type, text: held }] : []),
  }
}

// Waits for the first character of the arguments: the space before it is not theirs.
const HEAD = /^\s*\{\s*"name"\s*:\s*"((?:[^"\\]|\\.)*)"\s*,\s*"arguments"\s*:\s*(?=\S)/

/** Reads one call's JSON as it comes: the name first, then the arguments' own text until its bracket closes. */
function callReader(index: number) {
  let text = ''
  let name: string | null = null
  let depth = 0
  let quoted = false
  let escaped = false
  let done = false
  const argumentsEnd = (piece: string): number => {
    for (let place = 0; place < piece.length; place++) {
      const character = piece[place]
      if (escaped) escaped = false
      else if (quoted) {
        if (character === '\\') escaped = true
        else if (character === '"') quoted = false
      } else if (character === '"') quoted = true
      else if (character === '{' || character === '[') depth += 1
      else if (character === '}' || character === ']') {
        depth -= 1
        if (depth <= 0) return depth < 0 ? place : place + 1
      }
    }
    return -1
  }
  return {
    started: () => name !== null,
    push: (piece: string): readonly AnswerDelta[] => {
      if (done) return []
      const deltas: AnswerDelta[] = []
      text += piece
      if (name === null) {
        const head = HEAD.exec(text)
        if (!head) return []
        name = unquoted(head[1] ?? '')
        deltas.push({ type: 'call-start', index, name })
        text = text.slice(head[0].length)
      }
      const end = argumentsEnd(text)
      done = end >= 0
      const given = done ? text.slice(0, end) : text
      text = ''
      if (given !== '') deltas.push({ type: 'call-arguments', index, text: given })
      return deltas
    },
  }
}

function unquoted(inside: string): string {
  try {
    return String(JSON.parse(`"${inside}"`))
  } catch {
    return inside
  }
}

export interface ParsedAnswer {
  readonly reasoning: string | null
  readonly content: string | null
  readonly calls: readonly { readonly name: string; readonly arguments: string }[]
}

/**
 * The whole answer at once. As in vLLM, argument JSON is read and printed again, and when one call cannot be read the text of all
 * of them stays in the content.
 */
export function parseAnswer(text: string, options: ParserOptions): ParsedAnswer {
  const parts = { reasoning: '', content: '' }
  for (const deltas of whole(answerParser({ ...options, tools: false }), text)) {
    if (deltas.type === 'reasoning' || deltas.type === 'content') parts[deltas.type] += deltas.text
  }
  const reasoning = parts.reasoning === '' ? null : parts.reasoning
  const at = parts.content.indexOf(CALL_OPEN)
  if (!options.tools || at < 0) return { reasoning, content: parts.content === '' ? null : parts.content, calls: [] }
  const calls = readCalls(parts.content.slice(at))
  if (calls === null) return { reasoning, content: parts.content, calls: [] }
  const before = parts.content.slice(0, at)
  const content = options.raw ? before : before.trimEnd()
  return { reasoning, content: content === '' ? null : content, calls }
}

const whole = (parser: AnswerParser, text: string): readonly AnswerDelta[] => [...parser.push(text), ...parser.end()]

function readCalls(text: string): ParsedAnswer['calls'] | null {
  const calls: { name: string; arguments: string }[] = []
  for (const [, closed, open] of text.matchAll(/<tool_call>([\s\S]*?)<\/tool_call>|<tool_call>([\s\S]*)$/g)) {
    try {
      const body = closed ?? open ?? ''
      const parsed: unknown = JSON.parse(body)
      const { name } = parsed as { name?: unknown } // checked on the next line
      if (typeof name !== 'string') return null
      const head = HEAD.exec(body)
      const given = (parsed as { arguments?: unknown }).arguments ?? {} // any JSON will do
      const text = head ? argumentText(body.slice(head[0].length)) : JSON.stringify(given)
      calls.push({ name, arguments: redumpJson(text) })
    } catch {
      return null
    }
  }
  return calls
}

/** The arguments' own text: all but the call's closing bracket, which is last in a call that parses. */
const argumentText = (rest: string): string => rest.slice(0, rest.lastIndexOf('}'))

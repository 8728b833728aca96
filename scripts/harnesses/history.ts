// What a harness believes was said: the assistant turns in its next request, and the texts it prints at its end. Read from the four
// APIs' bodies by their own rules, without the gateway's decoders, so that a fault there cannot hide itself.

import { isObject } from '../../src/domain/json.js'

export interface Turn {
  /** Visible text, trimmed. */
  readonly text: string
  /** Name, and arguments as sorted JSON; what is no JSON stands as it is. */
  readonly calls: readonly { readonly name: string; readonly args: string }[]
}

export interface History {
  /** First words of the first user message: tells conversations of one session apart. */
  readonly opening: string
  readonly turns: readonly Turn[]
  readonly hasTools: boolean
  /** All text of user messages, where summaries and resumed pieces stand. */
  readonly userText: string
}

type Json = Readonly<Record<string, unknown>>

const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isObject) : [])

export function readHistory(body: string): History {
  const request: unknown = JSON.parse(body)
  if (!isObject(request)) throw new Error('a request is no object')
  const parts = Array.isArray(request['contents'])
    ? google(list(request['contents']))
    : 'input' in request
      ? responses(list(request['input']))
      : messages(list(request['messages']))
  return {
    opening: (parts.users[0] ?? '').slice(0, 4_000),
    turns: parts.turns,
    hasTools: hasTools(request),
    userText: parts.users.join('\n'),
  }
}

interface Parts {
  readonly turns: Turn[]
  readonly users: string[]
}

const hasTools = (request: Json): boolean =>
  list(request['tools']).some(
    tool => list(tool['functionDeclarations']).length > 0 || !('functionDeclarations' in tool),
  )

/** Chat Completions and Anthropic Messages. */
function messages(given: readonly Json[]): Parts {
  const turns: Turn[] = []
  const users: string[] = []
  for (const message of given) {
    const { role, content } = message
    if (role === 'user') users.push(textOf(content))
    if (role !== 'assistant') continue
    const chat = list(message['tool_calls']).map(call => {
      const called = isObject(call['function']) ? call['function'] : {}
      return { name: String(called['name']), args: sortedText(called['arguments']) }
    })
    const blocks = list(content).filter(block => block['type'] === 'tool_use')
    const anthropic = blocks.map(block => ({ name: String(block['name']), args: sortedText(block['input']) }))
    turns.push({ text: textOf(content).trim(), calls: [...chat, ...anthropic] })
  }
  return { turns, users }
}

/** One answer's items stand behind one another; results, user messages or another answer's text end it. */
function responses(items: readonly Json[]): Parts {
  const turns: Turn[] = []
  const users: string[] = []
  let open: { text: string; calls: { name: string; args: string }[] } | null = null
  const close = (): void => {
    if (open !== null) turns.push({ text: open.text.trim(), calls: open.calls })
    open = null
  }
  for (const item of items) {
    const type = item['type'] ?? 'message'
    if (type === 'message' && item['role'] === 'assistant') {
      if (open !== null && open.calls.length > 0) close()
      open ??= { text: '', calls: [] }
      open.text += textOf(item['content'])
    } else if (type === 'function_call' || type === 'custom_tool_call') {
      open ??= { text: '', calls: [] }
      const prefix = typeof item['namespace'] === 'string' ? `${item['namespace']}.` : ''
      open.calls.push({ name: prefix + String(item['name']), args: sortedText(item['arguments'] ?? item['input']) })
    } else if (type === 'reasoning') {
      close()
      open = { text: '', calls: [] }
    } else {
      close()
      if (type === 'message' && item['role'] === 'user') users.push(textOf(item['content']))
    }
  }
  close()
  return { turns, users }
}

function google(contents: readonly Json[]): Parts {
  const turns: Turn[] = []
  const users: string[] = []
  for (const content of contents) {
    const parts = list(content['parts'])
    const text = parts.map(part => (part['thought'] === true ? '' : String(part['text'] ?? ''))).join('')
    if (content['role'] !== 'model') {
      users.push(text)
      continue
    }
    const calls = parts
      .map(part => part['functionCall'])
      .filter(isObject)
      .map(call => ({ name: String(call['name']), args: sortedText(call['args']) }))
    turns.push({ text: text.trim(), calls })
  }
  return { turns, users }
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return list(content)
    .map(part => (typeof part['text'] === 'string' ? part['text'] : ''))
    .join('')
}

/** A captured answer in Chat form, as a trace's `response_messages` give it. */
export function capturedTurn(message: Json): Turn {
  const calls = list(message['tool_calls']).map(call => {
    const called = isObject(call['function']) ? call['function'] : {}
    return { name: String(called['name']), args: sortedText(called['arguments']) }
  })
  return { text: textOf(message['content']).trim(), calls }
}

/** Same words and calls. A name may have lost its namespace; arguments that are no JSON are sent back as nothing. */
export function isSameTurn(captured: Turn, echoed: Turn): boolean {
  return (
    captured.text === echoed.text &&
    captured.calls.length === echoed.calls.length &&
    captured.calls.every((call, index) => {
      const other = echoed.calls[index]
      return (
        other !== undefined &&
        lastName(call.name) === lastName(other.name) &&
        (call.args === other.args || (!isJson(call.args) && isStandIn(call.args, other.args)))
      )
    })
  )
}

/** Nothing, or Claude Code's own wrapping of what it could not parse. */
const isStandIn = (broken: string, echoed: string): boolean =>
  echoed === '{}' || echoed.includes(`"raw":${JSON.stringify(broken)}`)

const lastName = (name: string): string => name.split(/__|[./:]/).at(-1) ?? name

export function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function sortedText(value: unknown): string {
  if (value === undefined || value === null || value === '') return '{}'
  if (typeof value !== 'string') return JSON.stringify(sorted(value))
  try {
    return JSON.stringify(sorted(JSON.parse(value)))
  } catch {
    return value
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

/** Every text in the JSON lines that a harness prints, and what the pieces of a streamed answer make together. */
export function printedTexts(stdout: string): readonly string[] {
  const texts: string[] = []
  let streamed = ''
  const walk = (value: unknown): void => {
    if (typeof value === 'string') texts.push(value)
    else if (Array.isArray(value)) value.forEach(walk)
    else if (isObject(value)) Object.values(value).forEach(walk)
  }
  for (const line of stdout.split('\n')) {
    if (!line.startsWith('{')) continue
    try {
      const event: unknown = JSON.parse(line)
      walk(event)
      if (isObject(event) && event['role'] === 'assistant' && typeof event['content'] === 'string')
        streamed += event['content']
    } catch {
      texts.push(line)
    }
  }
  return [...texts, streamed]
}

// A request read as a conversation: which scenario it names, what was called so far and what came of it. The policy knows nothing
// else; it keeps no state between requests, so a history that a harness rewrote is simply read as it stands.

import { isObject } from '../../domain/json.js'
import type { OfferedTool } from './tools.js'

export interface PastCall {
  readonly name: string
  /** All text among the arguments, each on its own line: the command, wherever the tool keeps it. */
  readonly text: string
  /** null = no result came (yet). */
  readonly result: string | null
}

export interface Conversation {
  /** From the last line `Scenario: NAME` in a user message; null when there is none. */
  readonly scenario: string | null
  readonly assistantTurns: number
  readonly calls: readonly PastCall[]
  /** Text of the last user message, and of all system messages. */
  readonly lastUser: string
  readonly system: string
  /** The last message is the user's, not a tool's. */
  readonly userSpokeLast: boolean
  readonly tools: readonly OfferedTool[]
}

type Message = Readonly<Record<string, unknown>>

export function readConversation(messages: readonly Message[], tools: readonly OfferedTool[]): Conversation {
  const results = new Map<string, string>()
  for (const message of messages) {
    if (message['role'] === 'tool') results.set(String(message['tool_call_id']), textOf(message['content']))
  }
  const ofRole = (role: string): readonly string[] =>
    messages.filter(message => message['role'] === role).map(message => textOf(message['content']))
  const users = ofRole('user')
  const named = users.flatMap(text => [...text.matchAll(/^\W*Scenario:[ \t]*([\w-]+)/gm)].map(match => match[1] ?? ''))
  return {
    scenario: named.at(-1) ?? null,
    assistantTurns: messages.filter(message => message['role'] === 'assistant').length,
    calls: messages.flatMap(message => callsOf(message, results)),
    lastUser: users.at(-1) ?? '',
    system: ofRole('system').join('\n'),
    userSpokeLast: messages.at(-1)?.['role'] === 'user',
    tools,
  }
}

export function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map(part => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('\n')
}

function callsOf(message: Message, results: ReadonlyMap<string, string>): readonly PastCall[] {
  if (message['role'] !== 'assistant' || !Array.isArray(message['tool_calls'])) return []
  return message['tool_calls'].filter(isObject).map(call => {
    const called = isObject(call['function']) ? call['function'] : {}
    return {
      name: String(called['name'] ?? ''),
      text: argumentText(called['arguments']),
      result: results.get(String(call['id'])) ?? null,
    }
  })
}

function argumentText(value: unknown): string {
  if (typeof value === 'string') {
    try {
      const parsed: unknown = JSON.parse(value)
      if (typeof parsed === 'object') return argumentText(parsed)
    } catch {
      // Broken JSON is read as the text it is.
    }
    return value
  }
  if (Array.isArray(value)) return value.map(argumentText).join('\n')
  if (isObject(value)) return Object.values(value).map(argumentText).join('\n')
  return ''
}

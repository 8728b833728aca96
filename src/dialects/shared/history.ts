// Puts a harness's turns, in any dialect, into the message order that chat templates take. What must hold:
// - only *leading* system texts are merged (one message, blank line between); later ones keep their place, so that the messages of a
//   request stay a prefix of those of the next (cases anthropic-request-5, responses-request-5);
// - results follow their calls directly; text that stood between comes after them (anthropic-request-9);
// - a notice after results goes into the last result: templates with a "last user query" rule (Qwen3) would strip the thinking of the tool
//   loop at any user message (reconstruction-9);
// - images of results follow the whole group in one user message, each labelled with its call (anthropic-request-1).

import type { CanonicalMessage, ContentPart, Loss, ToolCall } from '../../domain/conversation.js'
import { RULES, type Rule } from './rules.js'

/** Stands between merged system texts and before a notice that is folded in. */
export const SEPARATOR = '\n\n'

export interface ToolResult {
  /** null = the harness sent none: the result belongs to the first open call of that name, else to the first open call. */
  readonly id: string | null
  readonly name?: string
  readonly text: string
  readonly images?: readonly ContentPart[]
}

export interface AssistantTurn {
  readonly text: string
  readonly reasoning?: string
  readonly toolCalls?: readonly ToolCall[]
}

/** Collects one request's history. `finish` is called once, at the end. */
export interface History {
  /** System or developer text; empty text is no message. */
  system(text: string): void
  user(parts: readonly ContentPart[]): void
  assistant(turn: AssistantTurn): void
  result(result: ToolResult): void
  rule(rule: Rule): void
  loss(path: string, reason: string): void
  /** Names of rules in order of first use. */
  finish(): {
    readonly messages: readonly CanonicalMessage[]
    readonly rules: readonly Rule[]
    readonly losses: readonly Loss[]
  }
}

/** Results after a call turn, with what must wait until the last of them. */
interface ResultGroup {
  readonly open: ToolCall[]
  readonly results: { id: string; name: string | undefined; text: string; images: readonly ContentPart[] }[]
  readonly notices: string[]
  readonly later: CanonicalMessage[]
}

export function createHistory(): History {
  const messages: CanonicalMessage[] = []
  const leading: string[] = []
  const rules = new Set<Rule>()
  const losses: Loss[] = []
  let group: ResultGroup | null = null

  const closeGroup = () => {
    if (group === null) return
    const closed = group
    group = null
    messages.push(...groupMessages(closed, rules))
  }
  const begin = () => {
    if (leading.length === 0) return
    messages.push({ role: 'system', content: leading.join(SEPARATOR) })
    leading.length = 0
  }

  return {
    system(text) {
      if (text === '') return
      if (messages.length === 0 && group === null) {
        leading.push(text)
      } else if (group !== null && group.later.length === 0) {
        group.notices.push(text)
      } else {
        rules.add(RULES.noticeAsUser)
        ;(group?.later ?? messages).push({ role: 'user', content: text })
      }
    },
    user(parts) {
      begin()
      const message: CanonicalMessage = { role: 'user', content: flattened(parts) }
      if (group !== null && group.open.length > 0) {
        group.later.push(message)
        return
      }
      closeGroup()
      messages.push(message)
    },
    assistant({ text, reasoning, toolCalls = [] }) {
      begin()
      closeGroup()
      messages.push({
        role: 'assistant',
        content: text === '' && toolCalls.length > 0 ? null : text,
        ...(reasoning !== undefined && reasoning !== '' && { reasoning }),
        ...(toolCalls.length > 0 && { toolCalls }),
      })
      if (toolCalls.length > 0) group = { open: [...toolCalls], results: [], notices: [], later: [] }
    },
    result({ id, name, text, images = [] }) {
      begin()
      group ??= { open: [], results: [], notices: [], later: [] }
      if (group.later.length > 0) rules.add(RULES.resultsFirst)
      const call = takeCall(group.open, id, name)
      group.results.push({
        id: id ?? call?.id ?? `call_${messages.length}_${group.results.length}`,
        name: name ?? call?.name,
        text,
        images,
      })
    },
    rule: rule => void rules.add(rule),
    loss: (path, reason) => void losses.push({ path, reason }),
    finish() {
      begin()
      closeGroup()
      return { messages, rules: [...rules], losses }
    },
  }
}

/** Parts that are all text become one string, joined by line feeds as vLLM does for templates that take strings. */
export function flattened(parts: readonly ContentPart[]): string | readonly ContentPart[] {
  const texts = parts.flatMap(part => (part.type === 'text' ? [part.text] : []))
  return texts.length === parts.length ? texts.join('\n') : parts
}

/** Removes and returns the call that a result answers. */
function takeCall(open: ToolCall[], id: string | null, name: string | undefined): ToolCall | undefined {
  const byName = () => {
    const found = open.findIndex(call => call.name === name)
    return found === -1 ? 0 : found
  }
  const index = id === null ? byName() : open.findIndex(call => call.id === id)
  return index === -1 ? undefined : open.splice(index, 1)[0]
}

/** Results, then their images, then what had to wait. */
function groupMessages({ results, notices, later }: ResultGroup, rules: Set<Rule>): CanonicalMessage[] {
  const images: ContentPart[] = []
  const tools = results.map(({ id, name, text, images: own }, index): CanonicalMessage => {
    if (own.length > 0)
      images.push({ type: 'text', text: `Image from tool call ${id}${name ? ` (${name})` : ''}:` }, ...own)
    const folded = index === results.length - 1 ? [text, ...notices].filter(piece => piece !== '') : [text]
    return { role: 'tool', toolCallId: id, content: folded.join(SEPARATOR) }
  })
  if (images.length > 0) rules.add(RULES.resultImages)
  if (notices.length > 0) rules.add(results.length > 0 ? RULES.noticeInResult : RULES.noticeAsUser)
  const loose = results.length > 0 ? [] : notices
  return [
    ...tools,
    ...(images.length > 0 ? [{ role: 'user', content: images } as const] : []),
    ...loose.map(text => ({ role: 'user', content: text }) as const),
    ...later,
  ]
}

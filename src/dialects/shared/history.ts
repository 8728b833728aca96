// Puts a harness's turns, in any dialect, into the message order that chat templates take. What must hold:
// - only *leading* system texts are merged (one message, blank line between); later ones keep their place, so that the messages of a
//   request stay a prefix of those of the next (cases anthropic-request-5, responses-request-5);
// - results follow their calls directly; text that stood between comes after them (anthropic-request-9);
// - a notice after results goes into the last result: templates with a "last user query" rule (Qwen3) would strip the thinking of the tool
//   loop at any user message (reconstruction-9);
// - images of results follow the whole group in one user message, each labelled with its call (anthropic-request-1).

import type { CanonicalMessage, ContentPart, Loss, ToolCall } from '../../domain/conversation.js'
import { RolloutError } from '../../domain/errors.js'
import { NO_RULES_OFF, PROMPT_RULES, type RulesOff } from '../../domain/rules.js'
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
  /** True when the rule is on: the caller then applies it, and it is named. */
  uses(rule: Rule): boolean
  /** A change that cannot be left out. Throws DIALECT_INVALID_REQUEST when the config switches the rule off. */
  rule(rule: Rule, path?: string): void
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

export function createHistory(off: RulesOff = NO_RULES_OFF): History {
  const messages: CanonicalMessage[] = []
  const leading: string[] = []
  const rules = new Set<Rule>()
  const losses: Loss[] = []
  let group: ResultGroup | null = null

  const uses = (rule: Rule): boolean => {
    if (off.has(rule)) return false
    rules.add(rule)
    return true
  }
  const rule = (name: Rule, path = 'history'): void => {
    if (uses(name)) return
    throw new RolloutError('DIALECT_INVALID_REQUEST', `${path}: ${PROMPT_RULES[name].why}; the rule is switched off`, {
      details: { rule: name },
    })
  }
  const notice = (content: string): CanonicalMessage => ({
    role: uses(RULES.noticeAsUser) ? 'user' : 'system',
    content,
  })
  const closeGroup = () => {
    if (group === null) return
    const closed = group
    group = null
    messages.push(...groupMessages(closed, uses, notice))
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
        ;(group?.later ?? messages).push(notice(text))
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
      if (group.later.length > 0) rule(RULES.resultsFirst)
      const call = takeCall(group.open, id, name)
      group.results.push({
        id: id ?? call?.id ?? `call_${messages.length}_${group.results.length}`,
        name: name ?? call?.name,
        text,
        images,
      })
    },
    uses,
    rule,
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
function groupMessages(
  { results, notices, later }: ResultGroup,
  uses: (rule: Rule) => boolean,
  notice: (text: string) => CanonicalMessage,
): CanonicalMessage[] {
  const isMoving = results.some(({ images }) => images.length > 0) && uses(RULES.resultImages)
  const isFolding = notices.length > 0 && results.length > 0 && uses(RULES.noticeInResult)
  const images: ContentPart[] = []
  const tools = results.map(({ id, name, text, images: own }, index): CanonicalMessage => {
    if (isMoving && own.length > 0)
      images.push({ type: 'text', text: `Image from tool call ${id}${name ? ` (${name})` : ''}:` }, ...own)
    const isLast = index === results.length - 1
    const folded = isFolding && isLast ? [text, ...notices].filter(piece => piece !== '').join(SEPARATOR) : text
    const staying = !isMoving && own.length > 0
    return {
      role: 'tool',
      toolCallId: id,
      content: staying ? [...(folded === '' ? [] : [{ type: 'text', text: folded } as const]), ...own] : folded,
    }
  })
  return [
    ...tools,
    ...(images.length > 0 ? [{ role: 'user', content: images } as const] : []),
    ...(isFolding ? [] : notices.map(notice)),
    ...later,
  ]
}

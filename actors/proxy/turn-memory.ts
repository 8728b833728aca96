// What the model answered in a session, as it wrote it. Harnesses send their history back changed in harmless ways: reasoning lost,
// arguments re-serialised, white space trimmed. An echoed turn that still says the same is replaced by the recorded one, so that the
// next prompt extends the last. A turn that says something else is left alone: the harness edited it.

import { createHash } from 'node:crypto'
import type { CanonicalMessage, ToolCall } from '../../src/domain/conversation.js'
import { isObject } from '../../src/domain/json.js'
import { NO_RULES_OFF, type RuleName, type RulesOff } from '../../src/domain/rules.js'

export interface RecordedTurn {
  readonly content: string | null
  readonly reasoning: string | null
  readonly toolCalls: readonly ToolCall[]
}

export type MemoryRule = Extract<
  RuleName,
  | 'reasoning_reattached'
  | 'arguments_restored'
  | 'content_restored'
  | 'call_ids_restored'
  | 'line_feeds_left_to_template'
  | 'empty_turn_removed'
>

/** Line feeds that the chat template writes by itself around the text of an answer. */
export interface TemplateFeeds {
  /** Between the end of the thinking and the text. */
  readonly afterThinking: number
  /** Between the text and the first call. */
  readonly beforeCall: number
}

export const NO_FEEDS: TemplateFeeds = { afterThinking: 0, beforeCall: 0 }

type AssistantMessage = Extract<CanonicalMessage, { role: 'assistant' }>

interface Remembered extends RecordedTurn {
  /** First user message and number of answers before: tells equal answers at different places apart. */
  readonly place: string
}

/** Turns kept per session; the oldest go first. A session of that many calls has long left its first turns behind. */
const MAX_TURNS = 20_000

export class TurnMemory {
  readonly #byCallId = new Map<string, Remembered>()
  readonly #byText = new Map<string, Remembered[]>()
  readonly #order: Remembered[] = []
  #hasFeeds = false

  /** True once a text began or ended with a line feed: only then does it matter what the template writes. */
  get hasFeeds(): boolean {
    return this.#hasFeeds
  }

  /** `history`: the messages that the turn answered. */
  remember(turn: RecordedTurn, history: readonly CanonicalMessage[]): void {
    this.#hasFeeds ||= /^\n|\n$/.test(turn.content ?? '')
    const remembered = { ...turn, place: placeOf(history) }
    this.#order.push(remembered)
    for (const call of turn.toolCalls) this.#byCallId.set(plainId(call.id), remembered)
    const text = textKey(turn.content, turn.toolCalls)
    const same = this.#byText.get(text)
    if (same === undefined) this.#byText.set(text, [remembered])
    else same.push(remembered)
    if (this.#order.length > MAX_TURNS) this.#forgetOldest()
  }

  /** `messages` with recorded turns in place of equivalent echoes, and the rules that changed something. */
  restore(
    messages: readonly CanonicalMessage[],
    { off = NO_RULES_OFF, feeds = NO_FEEDS }: { readonly off?: RulesOff; readonly feeds?: TemplateFeeds } = {},
  ): { messages: readonly CanonicalMessage[]; rules: MemoryRule[] } {
    const rules = new Set<MemoryRule>()
    const restoring: Restoring = {
      feeds,
      uses(rule) {
        if (off.has(rule)) return false
        rules.add(rule)
        return true
      },
    }
    const renamed = new Map<string, string>()
    const opening = openingOf(messages)
    let answers = 0
    const restored = messages.flatMap((message, index): CanonicalMessage | readonly CanonicalMessage[] => {
      if (message.role === 'tool') {
        const toolCallId = renamed.get(message.toolCallId)
        return toolCallId === undefined ? message : { ...message, toolCallId }
      }
      if (message.role !== 'assistant') return message
      const turn = this.#find(message, `${opening}/${answers}`)
      const isLeftOver = turn === null && isEmpty(message) && messages[index + 1]?.role === 'assistant'
      if (isLeftOver && restoring.uses('empty_turn_removed')) return []
      answers += 1
      return turn === null ? message : restoreTurn(message, turn, restoring, renamed)
    })
    return { messages: restored, rules: [...rules].sort() }
  }

  #find(echo: AssistantMessage, place: string): RecordedTurn | null {
    const calls = echo.toolCalls ?? []
    const first = calls[0]
    const byId = first && this.#byCallId.get(plainId(first.id))
    if (byId && isSameTurn(echo, byId, true)) return byId
    if (this.#byText.size === 0) return null
    const candidates = (this.#byText.get(textKey(echo.content, calls)) ?? []).filter(turn =>
      isSameTurn(echo, turn, false),
    )
    return candidates.findLast(turn => turn.place === place) ?? candidates.at(-1) ?? null
  }

  #forgetOldest(): void {
    const oldest = this.#order.shift()
    if (oldest === undefined) return
    for (const call of oldest.toolCalls) this.#byCallId.delete(plainId(call.id))
    const key = textKey(oldest.content, oldest.toolCalls)
    const left = (this.#byText.get(key) ?? []).filter(turn => turn !== oldest)
    if (left.length === 0) this.#byText.delete(key)
    else this.#byText.set(key, left)
  }
}

interface Restoring {
  readonly feeds: TemplateFeeds
  /** True when the rule is on: the caller then applies it, and it is named. */
  uses(rule: MemoryRule): boolean
}

function restoreTurn(
  echo: AssistantMessage,
  turn: RecordedTurn,
  { feeds, uses }: Restoring,
  renamed: Map<string, string>,
): CanonicalMessage {
  const toolCalls = (echo.toolCalls ?? []).map((call, index): ToolCall => {
    const recorded = turn.toolCalls[index]
    if (recorded === undefined) return call
    const isRenamed = call.id !== recorded.id && uses('call_ids_restored')
    if (isRenamed) renamed.set(call.id, recorded.id)
    const isRewritten = call.arguments !== recorded.arguments && uses('arguments_restored')
    return {
      ...call,
      id: isRenamed ? recorded.id : call.id,
      arguments: isRewritten ? recorded.arguments : call.arguments,
    }
  })
  const echoed = echo.reasoning ?? ''
  // A harness that has its own idea of the reasoning (a summary, an edit) keeps it.
  const known = echoed.trim() === '' || echoed.trim() === turn.reasoning?.trim() ? (turn.reasoning ?? '') : echoed
  const reasoning = known !== echoed && uses('reasoning_reattached') ? known : echoed
  return {
    role: 'assistant',
    content: restoredContent(echo.content, turn, { feeds, uses }, reasoning !== '', toolCalls.length > 0),
    ...(reasoning !== '' && { reasoning }),
    ...(toolCalls.length > 0 && { toolCalls }),
  }
}

const isEmpty = ({ content, reasoning, toolCalls }: AssistantMessage): boolean =>
  (content ?? '').trim() === '' && (reasoning ?? '').trim() === '' && (toolCalls ?? []).length === 0

/** The recorded text, without what the template writes itself. */
function restoredContent(
  echoed: string | null,
  { content }: RecordedTurn,
  { feeds, uses }: Restoring,
  hasReasoning: boolean,
  hasCalls: boolean,
): string | null {
  const fitted = withoutFeeds(content ?? '', hasReasoning ? feeds.afterThinking : 0, hasCalls ? feeds.beforeCall : 0)
  if (fitted !== (content ?? '')) {
    if (fitted === (echoed ?? '')) return echoed
    if (uses('line_feeds_left_to_template')) return fitted
  }
  if ((content ?? '') === (echoed ?? '')) return content
  return uses('content_restored') ? content : echoed
}

/** At most so many line feeds less at each end. */
function withoutFeeds(text: string, before: number, after: number): string {
  const start = before > 0 && text.startsWith('\n'.repeat(before)) ? text.slice(before) : text
  return after > 0 && start.endsWith('\n'.repeat(after)) ? start.slice(0, -after) : start
}

function isSameTurn(echo: AssistantMessage, turn: RecordedTurn, sameIds: boolean): boolean {
  const calls = echo.toolCalls ?? []
  return (
    (echo.content ?? '').trim() === (turn.content ?? '').trim() &&
    calls.length === turn.toolCalls.length &&
    calls.every((call, index) => {
      const recorded = turn.toolCalls[index]
      return (
        recorded !== undefined &&
        call.name === recorded.name &&
        (!sameIds || plainId(call.id) === plainId(recorded.id)) &&
        isSameArguments(call.arguments, recorded.arguments)
      )
    })
  )
}

/** Equal as JSON. What is no JSON cannot be echoed by most APIs: they send nothing, `{}`, or a wrapping of their own in its place. */
function isSameArguments(echoed: string, recorded: string): boolean {
  if (echoed === recorded) return true
  const echo = canonicalArguments(echoed)
  if (echo === null) return false
  const said = canonicalArguments(recorded)
  if (said !== null) return echo === said
  const unparsed = unparsedInput(echo)
  return echo === '{}' || (unparsed !== null && recorded.startsWith(unparsed))
}

/** Claude Code replays arguments that it could not parse as `{"__unparsedToolInput": {"raw": their beginning, "len": bytes}}`. */
function unparsedInput(echo: string): string | null {
  const value: unknown = JSON.parse(echo)
  const unparsed = isObject(value) ? value['__unparsedToolInput'] : undefined
  return isObject(unparsed) && typeof unparsed['raw'] === 'string' ? unparsed['raw'] : null
}

/** Harnesses drop underscores from ids. */
const plainId = (id: string): string => id.replaceAll('_', '')

function textKey(content: string | null, calls: readonly ToolCall[]): string {
  const parts = calls.map(call => `${call.name}${canonicalArguments(call.arguments) ?? '{}'}`)
  return hash([(content ?? '').trim(), ...parts].join('\0'))
}

/** Sorted keys, no white space; nothing counts as `{}`; null = no JSON. */
function canonicalArguments(text: string): string | null {
  if (text.trim() === '') return '{}'
  try {
    return JSON.stringify(sorted(JSON.parse(text)))
  } catch {
    return null
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

const placeOf = (history: readonly CanonicalMessage[]): string =>
  `${openingOf(history)}/${history.filter(message => message.role === 'assistant').length}`

/** Start and length of the first user message: enough to tell conversations of one session apart, cheap for a long one. */
function openingOf(messages: readonly CanonicalMessage[]): string {
  const content = messages.find(message => message.role === 'user')?.content ?? ''
  const text =
    typeof content === 'string' ? content : content.map(part => (part.type === 'text' ? part.text : '')).join('\n')
  return hash(`${text.length}:${text.slice(0, OPENING_CHARACTERS)}`)
}

const OPENING_CHARACTERS = 4_096

const hash = (text: string): string => createHash('sha1').update(text).digest('base64')

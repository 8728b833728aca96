// Why a call could not be joined to its nearest predecessor: found by comparing the recorded answer with the assistant
// message in the later request, and where the messages agree, the text the template made of it.

import type { BreakReason } from '../domain/trajectory.js'
import { type AnswerView, answerOf, argumentsValue, isArgumentsObject, viewOf } from './chat.js'
import { windowOf } from './joins.js'
import type { PromptNode } from './prompt-tree.js'
import type { Call } from './screen.js'
import type { Asking } from './text-match.js'
import { isPrefix } from './token-tree.js'

/** Reason of the break between `before` and `after`, whose prompt is `node`. */
export function* findBreakReason(before: Call, after: Call, node: PromptNode): Asking<BreakReason> {
  const promptKept = isPrefix(before.prompt, node.path)
  const answer = answerOf(before.record)
  if (!answer || after.messages.count === 0) return promptKept ? 'unknown' : 'generation_prompt'
  const [replay] = after.messages.from(before.messages.count)
  if (replay?.['role'] !== 'assistant') return 'history_rewritten'
  const recorded = viewOf(answer)
  const difference = compareAnswers(recorded, viewOf(replay))
  if (difference !== null) return difference
  const text = yield before.sampled
  const said =
    text === null ? null : yield windowOf(node.path, promptKept ? before.prompt.length : commonStem(before, node), text)
  if (text === null || said === null) return promptKept ? 'unknown' : 'generation_prompt'
  if (recorded.reasoning.trim() !== '' && !said.includes(recorded.reasoning.trim())) return 'thinking_stripped'
  if (!promptKept) return 'generation_prompt'
  return renderedDifference(text, said, recorded)
}

const commonStem = (before: Call, node: PromptNode): number =>
  Math.max(0, Math.min(node.path.length, before.prompt.length - before.record.generationPromptLength))

/** The gravest difference between a recorded answer and its replay; null = none. */
export function compareAnswers(recorded: AnswerView, replay: AnswerView): BreakReason | null {
  const sameSpaceless = (left: string, right: string) => spaceless(left) === spaceless(right)
  const callsEdited =
    recorded.calls.length !== replay.calls.length ||
    recorded.calls.some((call, i) => !isSameCall(call, replay.calls[i]))
  if (callsEdited && isOnlyUnparsed(recorded, replay)) return 'tool_call_unparsed'
  if (callsEdited || !sameSpaceless(recorded.content, replay.content)) return 'answer_edited'
  const thinkingGone = recorded.reasoning.trim() !== '' && replay.reasoning.trim() === ''
  if (thinkingGone) return 'thinking_stripped'
  if (!sameSpaceless(recorded.reasoning, replay.reasoning)) return 'answer_edited'
  if (recorded.calls.some((call, i) => call.arguments !== replay.calls[i]?.arguments)) return 'arguments_reserialised'
  if (recorded.content !== replay.content || recorded.reasoning !== replay.reasoning) return 'whitespace'
  return null
}

type CallView = AnswerView['calls'][number]

const isSameCall = (call: CallView, other: CallView | undefined): boolean =>
  other?.name === call.name && argumentsValue(other.arguments) === argumentsValue(call.arguments)

/**
 * True when the replay differs from the answer only in calls whose arguments are no JSON object. Harnesses and templates send nothing, a
 * repair, a call of another tool, or their text behind the answer's in such a call's place, or leave it out.
 */
function isOnlyUnparsed(recorded: AnswerView, replay: AnswerView): boolean {
  const parsed = recorded.calls.filter(call => isArgumentsObject(call.arguments))
  if (parsed.length === recorded.calls.length) return false
  const isKept =
    recorded.calls.length === replay.calls.length
      ? recorded.calls.every((call, i) => !isArgumentsObject(call.arguments) || isSameCall(call, replay.calls[i]))
      : parsed.length === replay.calls.length && parsed.every((call, i) => isSameCall(call, replay.calls[i]))
  return isKept && spaceless(replay.content).startsWith(spaceless(recorded.content))
}

/** Equal messages, other text: what the template or the server did. `said` may go on beyond the answer. */
function renderedDifference(text: string, said: string, recorded: AnswerView): BreakReason {
  const wanted = spaceless(text)
  const found = spaceless(said)
  let at = 0
  while (at < text.length && text[at] === said[at]) at++
  const isInCalls = recorded.calls.length > 0 && !namesAllCalls(text.slice(at), recorded)
  if (found.startsWith(wanted)) return isInCalls ? 'arguments_reserialised' : 'whitespace'
  if (isOnlyEndOf(wanted, found, recorded)) return 'thinking_stripped'
  return isInCalls ? 'arguments_reserialised' : 'unknown'
}

const spaceless = (value: string): string => value.replace(/\s+/g, '')

/** True when `text` still holds every call in order: the first difference lies before the calls. */
function namesAllCalls(text: string, { calls }: AnswerView): boolean {
  let at = 0
  for (const { name } of calls) {
    at = text.indexOf(name, at)
    if (at < 0) return false
    at += name.length
  }
  return true
}

/** True when the later prompt holds the end of the answer without its beginning: what the message does not show either. */
function isOnlyEndOf(wanted: string, found: string, recorded: AnswerView): boolean {
  const place = found.replace(/^<think><\/think>/, '') // an empty block that Qwen's template puts in
  for (let from = 1; from < wanted.length; from++) {
    const rest = wanted.slice(from)
    if (place.startsWith(rest)) return rest.includes(spaceless(recorded.content)) && namesAllCalls(rest, recorded)
  }
  return false
}

// What all encoders share about an answer: how it ended, and tool arguments that cannot be read as an object. Arguments are never repaired
// and no input is invented: a call whose arguments are broken or cut is shown as text where the dialect wants an object.

import type { CanonicalResponse, FinishReason, ToolCall } from '../../domain/conversation.js'
import { RolloutError } from '../../domain/errors.js'
import { isObject, type JsonObject } from '../../domain/json.js'

/** An answer that ended; aborted and failed ones have no form of their own in any dialect. */
export type Ending = Exclude<FinishReason, 'abort' | 'error'>

/**
 * How the answer ended towards the client: an answer with calls ends `tool_calls` though the engine said `stop` (case
 * anthropic-response-6), one without never does. `calls`: how many calls the client gets.
 * Throws UPSTREAM_ERROR for aborted and failed answers: half an answer must not look complete.
 */
export function endingOf({ finish }: Pick<CanonicalResponse, 'finish'>, calls: number): Ending {
  if (finish === 'abort' || finish === 'error') {
    throw new RolloutError('UPSTREAM_ERROR', `the inference server ended the answer with "${finish}"`)
  }
  if (finish === 'stop' || finish === 'tool_calls') return calls > 0 ? 'tool_calls' : 'stop'
  return finish
}

/** True when the call may have been cut by the token limit: the last one of an answer that ended `length`. */
export const mayBeCut = (response: CanonicalResponse, index: number): boolean =>
  response.finish === 'length' && index === response.toolCalls.length - 1

/** The arguments as an object; null where the text is none. No text at all is a call without arguments, unless it was cut. */
export function argumentsObject(text: string, cut: boolean): JsonObject | null {
  if (text.trim() === '') return cut ? null : {}
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? (value as JsonObject) : null
  } catch {
    return null
  }
}

/**
 * A call that cannot be given as a call, as text, with the raw arguments unchanged. The form is Hermes' (Qwen), in which most templates
 * write calls, so that the text comes back to the engine as it was sampled; a cut call ends where the model was cut.
 */
export const callAsText = ({ name, arguments: text }: Pick<ToolCall, 'name' | 'arguments'>, cut: boolean): string =>
  `<tool_call>\n{"name": "${name}", "arguments": ${text}${cut ? '' : '}\n</tool_call>'}`

/** Our completion id without its prefix: the stem of ids that a dialect derives (`chatcmpl-...`, `resp_...`). */
export const idStem = (id: string): string => id.replace(/^msg_/, '')

// The model's own chat template over messages in Chat Completions form, prepared as vLLM prepares them: text parts are joined,
// null content becomes empty text, argument text becomes an object (so the bytes the model wrote do not reach the template),
// and both keys of a reasoning text are set.

import { Template } from '@huggingface/jinja'
import { RolloutError } from '../domain/errors.js'
import { isObject } from '../domain/json.js'
import { type PreservedJson, preserveJson } from './python-json.js'

export interface ChatTemplateInput {
  /** Chat Completions messages. */
  readonly messages: readonly Readonly<Record<string, unknown>>[]
  /** Chat Completions tools (`{type: "function", function: {...}}`); empty = none. */
  readonly tools?: readonly Readonly<Record<string, unknown>>[]
  readonly addGenerationPrompt: boolean
  /** Further template variables, e.g. `enable_thinking`. */
  readonly kwargs?: Readonly<Record<string, unknown>>
}

/** A renderer of `template`. Throws DIALECT_INVALID_REQUEST naming the message it could not take. */
export function chatTemplate(name: string, template: string): (input: ChatTemplateInput) => string {
  let parsed: Template | null = null
  return input => {
    if (template === '') throw new RolloutError('CONFIG_INVALID', `tokenizer ${name} has no chat template`)
    parsed ??= new Template(template)
    const preserved = preserveJson()
    const messages = input.messages.map((message, index) => prepareMessage(message, index, preserved))
    const tools = (input.tools ?? []).map(prepareTool)
    let text: string
    try {
      text = parsed.render({
        messages,
        ...(tools.length > 0 && { tools }),
        add_generation_prompt: input.addGenerationPrompt,
        ...input.kwargs,
      })
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new RolloutError('DIALECT_INVALID_REQUEST', `messages: the chat template refuses them: ${reason}`, {
        cause,
      })
    }
    return preserved.restore(text)
  }
}

function prepareMessage(
  message: Readonly<Record<string, unknown>>,
  index: number,
  preserved: PreservedJson,
): Record<string, unknown> {
  const at = `messages[${index}]`
  if (typeof message['role'] !== 'string') throw refused(`${at}.role: wanted a role`)
  const prepared: Record<string, unknown> = { role: message['role'], content: contentText(message['content'], at) }
  const reasoning = message['reasoning'] ?? message['reasoning_content']
  if (message['role'] === 'assistant') {
    const calls = message['tool_calls']
    if (Array.isArray(calls) && calls.length > 0) {
      prepared['tool_calls'] = calls.map((call, place) => prepareCall(call, `${at}.tool_calls[${place}]`, preserved))
    }
    if (reasoning !== undefined && reasoning !== null) {
      prepared['reasoning'] = reasoning
      prepared['reasoning_content'] = reasoning
    }
  }
  for (const key of ['tool_call_id', 'name']) if (typeof message[key] === 'string') prepared[key] = message[key]
  return prepared
}

/** vLLM joins the text parts by a line feed for templates that print `content` as it is. */
function contentText(content: unknown, at: string): string {
  if (content === null || content === undefined) return ''
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) throw refused(`${at}.content: wanted text, a list of parts or null`)
  const texts = content.map((part: unknown, place) => {
    if (typeof part === 'string') return part
    if (isObject(part) && typeof part['text'] === 'string') return part['text']
    throw refused(`${at}.content[${place}]: wanted a text part; this model reads text only`)
  })
  return texts.join('\n')
}

function prepareCall(call: unknown, at: string, preserved: PreservedJson): Record<string, unknown> {
  const called = isObject(call) ? call['function'] : undefined
  if (!isObject(call) || !isObject(called)) throw refused(`${at}.function: wanted an object`)
  const given = called['arguments']
  let parsed: unknown = given ?? {}
  if (typeof given === 'string') {
    try {
      parsed = given === '' ? {} : preserved.parse(given)
    } catch {
      throw refused(`${at}.function.arguments: wanted JSON`)
    }
  }
  return { ...call, function: { ...called, arguments: parsed } }
}

/** Members in the order of vLLM's model; what is absent is printed as null, as its dump does. */
function prepareTool(tool: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const called = isObject(tool['function']) ? tool['function'] : {}
  const { name, description, parameters, ...rest } = called
  return {
    type: tool['type'] ?? 'function',
    function: { name, description: description ?? null, parameters: parameters ?? null, ...rest },
  }
}

const refused = (message: string): RolloutError => new RolloutError('DIALECT_INVALID_REQUEST', message)

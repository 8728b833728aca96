// Reads a Chat Completions request into the canonical form. Fields by which the gateway captures (`logprobs`, `return_token_ids`, `input_ids`
// ...) are its own: the caller's are never forwarded (case chat-wire-8). Argument texts pass as they are, also when they are no JSON
// (history-1): what an engine needs is the upstream profile's business.

import type {
  CanonicalRequest,
  ContentPart,
  RequestedSampling,
  ToolCall,
  ToolDefinition,
} from '../../domain/conversation.js'
import { isObject, type Json, type JsonObject } from '../../domain/json.js'
import type { RulesOff } from '../../domain/rules.js'
import type { HttpRequestHead, RouteMatch } from '../base.js'
import { omittedPart, textPart } from '../shared/content.js'
import {
  arrayField,
  asObject,
  at,
  booleanField,
  integerField,
  numberField,
  objectField,
  oneOf,
  refuse,
  refuseUnsupported,
  requiredArray,
  requiredString,
  stringField,
  stringList,
  wordOf,
} from '../shared/fields.js'
import { createHistory, type History } from '../shared/history.js'
import { readFunctionTool, readToolChoice } from '../shared/openai-tools.js'
import { pythonJson } from '../shared/python-json.js'
import { RULES } from '../shared/rules.js'
import { unread } from '../shared/unread.js'
import { CHAT_SHAPE } from './shape.js'

/** Throws DIALECT_INVALID_REQUEST. */
export function decodeChatRequest(
  body: JsonObject,
  _route: RouteMatch,
  _head: HttpRequestHead,
  off?: RulesOff,
): CanonicalRequest {
  const history = createHistory(off)
  const n = integerField(body, 'n') ?? 1
  if (n !== 1) refuseUnsupported('n', `wanted 1, got ${n}: one call gives one answer`)
  for (const [index, item] of requiredArray(body, 'messages').entries()) {
    readMessage(asObject(item, at('messages', index)), at('messages', index), index, history)
  }
  const tools = readTools(body, history)
  const toolChoice = tools.length > 0 ? readToolChoice(body['tool_choice']) : undefined
  const parallel = tools.length > 0 ? booleanField(body, 'parallel_tool_calls') : undefined
  const effort = stringField(body, 'reasoning_effort')
  const template = objectField(body, 'chat_template_kwargs') ?? {}
  const thinking =
    booleanField(template, 'enable_thinking', 'chat_template_kwargs') ?? (effort === 'none' ? false : undefined)
  for (const key of Object.keys(template)) {
    if (key !== 'enable_thinking') history.loss(at('chat_template_kwargs', key), 'not carried to the engine')
  }
  const format = objectField(body, 'response_format')
  const { messages, rules, losses } = history.finish()
  return {
    dialect: 'openai_chat',
    model: stringField(body, 'model') ?? 'unknown',
    messages,
    tools,
    ...(toolChoice && { toolChoice }),
    ...(parallel !== undefined && { parallelToolCalls: parallel }),
    sampling: readSampling(body),
    stream: booleanField(body, 'stream') ?? false,
    ...(booleanField(body, 'logprobs') && { wantsLogprobs: true }),
    ...(format && format['type'] !== 'text' && { responseFormat: format }),
    ...(effort !== undefined && effort !== 'none' && { reasoningEffort: effort }),
    ...(thinking !== undefined && { enableThinking: thinking }),
    losses: [...losses, ...unread(body, CHAT_SHAPE, losses)],
    rules,
    echo: {
      includeUsage: booleanField(objectField(body, 'stream_options') ?? {}, 'include_usage', 'stream_options') ?? false,
      topLogprobs: integerField(body, 'top_logprobs') ?? 0,
    },
  }
}

function readMessage(message: JsonObject, path: string, index: number, history: History): void {
  const content = message['content']
  const own = at(path, 'content')
  switch (message['role']) {
    case 'system':
    case 'developer':
      history.system(textOf(content, own, history))
      break
    case 'user':
      history.user(readParts(content, own, history))
      break
    case 'assistant': {
      const reasoning = stringField(message, 'reasoning_content', path) ?? stringField(message, 'reasoning', path)
      history.assistant({
        text: textOf(content, own, history, ''),
        ...(reasoning !== undefined && { reasoning }),
        toolCalls: readCalls(message, path, index, history),
      })
      break
    }
    case 'tool': {
      const parts = readParts(content, own, history)
      history.result({
        id: stringField(message, 'tool_call_id', path) || null,
        text: joined(parts),
        images: parts.filter(part => part.type === 'image'),
      })
      break
    }
    default:
      refuse(at(path, 'role'), oneOf(['system', 'developer', 'user', 'assistant', 'tool']), message['role'])
  }
}

/** Calls of an assistant message. A missing id is a function of the place in the history, so that it is the same in later requests. */
function readCalls(message: JsonObject, path: string, index: number, history: History): ToolCall[] {
  return (arrayField(message, 'tool_calls', path) ?? []).flatMap((item, position): ToolCall[] => {
    const own = at(at(path, 'tool_calls'), position)
    const call = asObject(item, own)
    const fn = objectField(call, 'function', own)
    if (fn === undefined) {
      history.loss(own, `a call of type ${wordOf(call['type']) || 'unknown'} has no counterpart in the engine`)
      return []
    }
    return [
      {
        id: stringField(call, 'id', own) || `call_${index}_${position}`,
        name: requiredString(fn, 'name', at(own, 'function')),
        arguments: argumentText(fn['arguments'], at(own, 'function.arguments')),
      },
    ]
  })
}

function argumentText(value: Json | undefined, path: string): string {
  if (typeof value === 'string') return value
  if (value === undefined || value === null) return ''
  return isObject(value) ? pythonJson(value as JsonObject) : refuse(path, 'a string', value)
}

function readParts(content: Json | undefined, path: string, history: History): readonly ContentPart[] {
  if (content === undefined || content === null) return []
  if (typeof content === 'string') return [textPart(content)]
  if (!Array.isArray(content)) return refuse(path, 'a string or an array of parts', content)
  return content.map((item, index) => readPart(asObject(item, at(path, index)), at(path, index), history))
}

function readPart(part: JsonObject, path: string, history: History): ContentPart {
  switch (part['type']) {
    case 'text':
      return textPart(stringField(part, 'text', path) ?? refuse(at(path, 'text'), 'a string', part['text']))
    case 'refusal':
      return textPart(stringField(part, 'refusal', path) ?? '')
    case 'image_url': {
      if (typeof part['image_url'] === 'string') return { type: 'image', url: part['image_url'] }
      const image = asObject(part['image_url'], at(path, 'image_url'))
      const detail = stringField(image, 'detail', at(path, 'image_url'))
      const url = requiredString(image, 'url', at(path, 'image_url'))
      return { type: 'image', url, ...(detail !== undefined && { detail }) }
    }
    case 'input_audio':
    case 'file':
    case 'video_url':
      history.loss(path, `${part['type']} is not carried to the engine`)
      history.rule(RULES.omitted, path)
      return omittedPart(part['type'])
    default:
      return refuse(at(path, 'type'), oneOf(['text', 'image_url', 'input_audio', 'file', 'refusal']), part['type'])
  }
}

/** Text of a content that holds no images; what is not text is recorded. */
function textOf(content: Json | undefined, path: string, history: History, separator = '\n'): string {
  const parts = readParts(content, path, history)
  if (parts.some(part => part.type === 'image')) history.loss(path, 'an image has no place in a message of this role')
  return joined(parts, separator)
}

const joined = (parts: readonly ContentPart[], separator = '\n'): string =>
  parts.flatMap(part => (part.type === 'text' ? [part.text] : [])).join(separator)

function readTools(body: JsonObject, history: History): ToolDefinition[] {
  return (arrayField(body, 'tools') ?? []).flatMap((item, index) => {
    const path = at('tools', index)
    const tool = asObject(item, path)
    const type = stringField(tool, 'type', path) ?? 'function'
    if (type === 'function') return [readFunctionTool(tool, path)]
    history.loss(path, `a tool of type ${type} has no counterpart in the engine`)
    return []
  })
}

function readSampling(body: JsonObject): RequestedSampling {
  const read = {
    temperature: numberField(body, 'temperature'),
    topP: numberField(body, 'top_p'),
    topK: integerField(body, 'top_k'),
    minP: numberField(body, 'min_p'),
    presencePenalty: numberField(body, 'presence_penalty'),
    frequencyPenalty: numberField(body, 'frequency_penalty'),
    maxTokens: integerField(body, 'max_completion_tokens') ?? integerField(body, 'max_tokens'),
    seed: integerField(body, 'seed'),
    stop: stringList(body, 'stop'),
  }
  return Object.fromEntries(Object.entries(read).filter(([, value]) => value !== undefined)) as RequestedSampling
}

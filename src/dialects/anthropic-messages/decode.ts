// Reads an Anthropic Messages request into the canonical form. Content blocks are read in blocks.ts, tools in tools.ts; the order of turns
// is the business of shared/history.ts. `cache_control`, wherever it stands, changes nothing (case anthropic-request-3).

import type { CanonicalRequest, RequestedSampling } from '../../domain/conversation.js'
import { RolloutError } from '../../domain/errors.js'
import type { Json, JsonObject } from '../../domain/json.js'
import type { RulesOff } from '../../domain/rules.js'
import type { HttpRequestHead, RouteMatch } from '../base.js'
import {
  asObject,
  at,
  booleanField,
  integerField,
  numberField,
  objectField,
  oneOf,
  refuse,
  requiredArray,
  stringField,
  stringList,
} from '../shared/fields.js'
import { createHistory, type History } from '../shared/history.js'
import { unread } from '../shared/unread.js'
import { readAssistant, readSystem, readUser } from './blocks.js'
import { THREAD_UNSUPPORTED } from './errors.js'
import { MESSAGES_SHAPE } from './shape.js'
import { readToolChoice, readTools } from './tools.js'

/** Throws DIALECT_INVALID_REQUEST. `max_tokens` may be missing (a count has none): then nothing is asked. */
export function decodeMessagesRequest(
  body: JsonObject,
  _route: RouteMatch,
  _head: HttpRequestHead,
  off?: RulesOff,
): CanonicalRequest {
  refuseThread(body)
  const history = createHistory(off)
  const { tools, deferred } = readTools(body, history)
  history.system(readSystem(body['system'], 'system', history))
  for (const [index, item] of requiredArray(body, 'messages').entries()) {
    readMessage(asObject(item, at('messages', index)), at('messages', index), history, deferred)
  }
  const thinking = readThinking(body, history)
  const output = objectField(body, 'output_config') ?? {}
  const format =
    readFormat(objectField(output, 'format', 'output_config'), 'output_config.format', history) ??
    readFormat(objectField(body, 'output_format'), 'output_format', history)
  const effort = stringField(output, 'effort', 'output_config')
  notePrefill(body, history)
  const { messages, rules, losses } = history.finish()
  const choice = tools.length > 0 ? readToolChoice(body) : {}
  return {
    dialect: 'anthropic_messages',
    model: stringField(body, 'model') ?? 'unknown',
    messages,
    tools,
    ...choice,
    sampling: readSampling(body),
    stream: booleanField(body, 'stream') ?? false,
    ...(format && { responseFormat: format }),
    ...(effort !== undefined && { reasoningEffort: effort }),
    ...(thinking !== undefined && { enableThinking: thinking }),
    losses: [...losses, ...unread(body, MESSAGES_SHAPE, losses)],
    rules,
    echo: {},
  }
}

/** A conversation held by the server: a request that continues one carries only its last turn. Clients told so send all. */
function refuseThread(body: JsonObject): void {
  if (body['thread'] === undefined || body['thread'] === null) return
  throw new RolloutError(
    'DIALECT_INVALID_REQUEST',
    'thread: conversations are not held here; wanted the full conversation without `thread`',
    { details: { path: 'thread', code: THREAD_UNSUPPORTED } },
  )
}

function readMessage(message: JsonObject, path: string, history: History, deferred: ReadonlyMap<string, string>): void {
  const content = message['content']
  if (message['output_config'] !== undefined) history.loss(at(path, 'output_config'), 'effort is set per request only')
  switch (message['role']) {
    case 'user':
      readUser(content, at(path, 'content'), history, deferred)
      break
    case 'assistant':
      readAssistant(content, at(path, 'content'), history)
      break
    case 'system':
      history.system(readSystem(content, at(path, 'content'), history))
      break
    default:
      refuse(at(path, 'role'), oneOf(['user', 'assistant', 'system']), message['role'])
  }
}

/** A last assistant turn asks the API to go on with it; the engine takes it as a finished turn. */
function notePrefill(body: JsonObject, history: History): void {
  const messages = requiredArray(body, 'messages')
  const last = messages.length - 1
  if (asObject(messages[last], at('messages', last))['role'] !== 'assistant') return
  history.loss(at('messages', last), 'a prefilled answer is not continued: it stands as a finished turn')
}

/** Switched off, on, or left to the template. A budget has no place in the canonical form. */
function readThinking(body: JsonObject, history: History): boolean | undefined {
  const thinking = objectField(body, 'thinking')
  if (thinking === undefined) return undefined
  if (thinking['budget_tokens'] !== undefined) history.loss('thinking.budget_tokens', 'not carried to the engine')
  switch (thinking['type']) {
    case 'enabled':
    case 'adaptive':
    case 'between_tools':
      return true
    case 'disabled':
      return false
    default:
      return refuse('thinking.type', oneOf(['enabled', 'adaptive', 'between_tools', 'disabled']), thinking['type'])
  }
}

function readFormat(format: JsonObject | undefined, path: string, history: History): JsonObject | undefined {
  if (format === undefined) return undefined
  const schema = objectField(format, 'schema', path)
  if (format['type'] === 'json_schema' && schema !== undefined) {
    return { type: 'json_schema', json_schema: { name: 'output', schema: schema as Json } }
  }
  history.loss(path, 'only json_schema with a schema is carried')
  return undefined
}

function readSampling(body: JsonObject): RequestedSampling {
  const temperature = numberField(body, 'temperature')
  const topP = numberField(body, 'top_p')
  const topK = integerField(body, 'top_k')
  const maxTokens = integerField(body, 'max_tokens')
  const stop = stringList(body, 'stop_sequences')
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(topK !== undefined && { topK }),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(stop !== undefined && stop.length > 0 && { stop }),
  }
}

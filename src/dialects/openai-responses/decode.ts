// Reads a Responses request into the canonical form; input items are read in input.ts, tools in tools.ts. A request that leans on state we do
// not have (`conversation`, `prompt`, `background`, an answer that is not stored) is refused by name: ignoring it would answer without the
// history.

import type { CanonicalRequest, RequestedSampling } from '../../domain/conversation.js'
import type { JsonObject } from '../../domain/json.js'
import type { RulesOff } from '../../domain/rules.js'
import type { HttpRequestHead, RouteMatch } from '../base.js'
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
  requiredString,
  stringField,
} from '../shared/fields.js'
import { createHistory, type History } from '../shared/history.js'
import { readToolChoice } from '../shared/openai-tools.js'
import { unread } from '../shared/unread.js'
import { type PlacedItem, readInput } from './input.js'
import { RESPONSES_SHAPE } from './shape.js'
import { echoNames, engineName, readTools } from './tools.js'

const STORED = ['previous_response_id', 'conversation', 'prompt'] as const

/** Throws DIALECT_INVALID_REQUEST. */
export const decodeResponsesRequest = (
  body: JsonObject,
  _route: RouteMatch,
  _head: HttpRequestHead,
  off?: RulesOff,
): CanonicalRequest => decode(body, [], off)

/** `conversation`: items before the request's own. Throws DIALECT_INVALID_REQUEST. */
export function decodeContinued(
  body: JsonObject,
  conversation: readonly JsonObject[],
  off?: RulesOff,
): CanonicalRequest {
  const { previous_response_id: previousId, ...own } = body
  const placed = conversation.map((item, index) => ({ item, path: at('previous_response_id.items', index) }))
  const request = decode(own, placed, off)
  return { ...request, echo: { ...request.echo, previousId } }
}

function decode(body: JsonObject, before: readonly PlacedItem[], off: RulesOff | undefined): CanonicalRequest {
  for (const key of STORED) {
    if (body[key] !== undefined && body[key] !== null) {
      refuseUnsupported(key, 'not stored here: send the whole history in input')
    }
  }
  if (booleanField(body, 'background') === true) refuseUnsupported('background', 'wanted false: answers are not stored')
  const n = integerField(body, 'n') ?? 1
  if (n !== 1) refuseUnsupported('n', `wanted 1, got ${n}: one call gives one answer`)
  const history = createHistory(off)
  history.system(stringField(body, 'instructions') ?? '')
  const items = [...before, ...inputItems(body)]
  const { tools, names } = readTools(
    [{ items: arrayField(body, 'tools') ?? [], path: 'tools' }, ...additionalTools(items)],
    history,
  )
  readInput(items, names, history)
  const reasoning = objectField(body, 'reasoning') ?? {}
  const effort = stringField(reasoning, 'effort', 'reasoning')
  const text = objectField(body, 'text') ?? {}
  const format = readFormat(objectField(text, 'format', 'text'), history)
  if (stringField(text, 'verbosity', 'text') !== undefined) history.loss('text.verbosity', 'not carried to the engine')
  if (stringField(body, 'truncation') === 'auto') history.loss('truncation', 'the history is never cut here')
  const parallel = booleanField(body, 'parallel_tool_calls')
  const choice = readToolChoice(body['tool_choice'], (name, namespace) => engineName(name, namespace, names))
  const { messages, rules, losses } = history.finish()
  const sampling = readSampling(body)
  return {
    dialect: 'openai_responses',
    model: stringField(body, 'model') ?? 'unknown',
    messages,
    tools,
    ...(tools.length > 0 && choice && { toolChoice: choice }),
    ...(tools.length > 0 && parallel !== undefined && { parallelToolCalls: parallel }),
    sampling,
    stream: booleanField(body, 'stream') ?? false,
    ...(format && { responseFormat: format }),
    ...(effort !== undefined && effort !== 'none' && { reasoningEffort: effort }),
    ...(effort !== undefined && { enableThinking: effort !== 'none' }),
    losses: [...losses, ...unread(body, RESPONSES_SHAPE, losses)],
    rules,
    echo: {
      tools: echoNames(names),
      encrypted: (arrayField(body, 'include') ?? []).includes('reasoning.encrypted_content'),
      maxOutputTokens: sampling.maxTokens,
      temperature: sampling.temperature,
      topP: sampling.topP,
      effort,
      summary: stringField(reasoning, 'summary', 'reasoning'),
      format: objectField(text, 'format', 'text'),
      parallelToolCalls: parallel,
      toolChoice: body['tool_choice'] ?? undefined,
      store: booleanField(body, 'store'),
      metadata: objectField(body, 'metadata'),
    },
  }
}

/** `input` as a list of items; a string is one user message. Throws DIALECT_INVALID_REQUEST. */
export function inputItems(body: JsonObject): readonly PlacedItem[] {
  const input = body['input']
  if (typeof input === 'string' && input !== '') {
    return [{ item: { type: 'message', role: 'user', content: input }, path: 'input' }]
  }
  if (!Array.isArray(input) || input.length === 0) return refuse('input', 'a string or a non-empty array', input)
  return input.map((item, index) => ({ item: asObject(item, at('input', index)), path: at('input', index) }))
}

function additionalTools(items: readonly PlacedItem[]): { items: readonly unknown[]; path: string }[] {
  return items.flatMap(({ item, path }) => {
    return item['type'] === 'additional_tools'
      ? [{ items: arrayField(item, 'tools', path) ?? [], path: at(path, 'tools') }]
      : []
  })
}

/** Responses writes the schema flat, Chat nested (case responses-request-12). */
function readFormat(format: JsonObject | undefined, history: History): JsonObject | undefined {
  if (format === undefined) return undefined
  const path = 'text.format'
  switch (format['type']) {
    case 'text':
      return undefined
    case 'json_object':
      return { type: 'json_object' }
    case 'json_schema': {
      const schema = objectField(format, 'schema', path)
      const strict = booleanField(format, 'strict', path)
      const name = requiredString(format, 'name', path)
      return {
        type: 'json_schema',
        json_schema: { name, ...(schema && { schema }), ...(strict !== undefined && { strict }) },
      }
    }
    case 'grammar':
      history.loss(path, 'a grammar is not carried to the engine')
      return undefined
    default:
      return refuse(at(path, 'type'), oneOf(['text', 'json_object', 'json_schema']), format['type'])
  }
}

function readSampling(body: JsonObject): RequestedSampling {
  const temperature = numberField(body, 'temperature')
  const topP = numberField(body, 'top_p')
  const maxTokens = integerField(body, 'max_output_tokens')
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(maxTokens !== undefined && { maxTokens }),
  }
}

// Reads a generateContent request into the canonical form; turns are read in contents.ts. Model and streaming come from the path. A body
// that names content we do not have (`cachedContent`) is refused, since leaving it out would answer another question.

import type { CanonicalRequest, RequestedSampling } from '../../domain/conversation.js'
import type { JsonObject } from '../../domain/json.js'
import type { RulesOff } from '../../domain/rules.js'
import type { HttpRequestHead, RouteMatch } from '../base.js'
import {
  asObject,
  at,
  booleanField,
  integerField,
  numberField,
  objectField,
  refuse,
  refuseUnsupported,
  stringField,
  stringList,
} from '../shared/fields.js'
import { createHistory, type History } from '../shared/history.js'
import { unread } from '../shared/unread.js'
import { readContents, systemText } from './contents.js'
import { camelCase, camelKeys, listField, pick } from './names.js'
import { lowerCaseTypes, readToolChoice, readTools } from './schema.js'
import { GOOGLE_SHAPE } from './shape.js'

/** Throws DIALECT_INVALID_REQUEST. A count request may wrap the body in `generateContentRequest`. */
export function decodeGoogleRequest(
  outer: JsonObject,
  route: RouteMatch,
  _head: HttpRequestHead,
  off?: RulesOff,
): CanonicalRequest {
  const wrapped = pick(outer, 'generateContentRequest')
  const body = camelKeys(
    wrapped === undefined || wrapped === null ? outer : asObject(wrapped, 'generateContentRequest'),
  )
  if (body['cachedContent'] !== undefined && body['cachedContent'] !== null) {
    refuseUnsupported('cachedContent', 'no content is cached here: send it in contents')
  }
  const history = createHistory(off)
  history.system(systemText(body['systemInstruction'], history))
  const contents = listField(body, 'contents', '')
  if (contents.length === 0) refuse('contents', 'a non-empty array', body['contents'])
  readContents(contents, history)
  const tools = readTools(body, history)
  const toolChoice = tools.length > 0 ? readToolChoice(body, history) : undefined
  const config = camelKeys(objectField(body, 'generationConfig') ?? {})
  const format = readFormat(config, history)
  const thinking = readThinking(config, history)
  const { messages, rules, losses } = history.finish()
  return {
    dialect: 'google_generate',
    model: route.model ?? 'unknown',
    messages,
    tools,
    ...(toolChoice && { toolChoice }),
    sampling: readSampling(config),
    stream: route.stream ?? false,
    ...(format && { responseFormat: format }),
    ...thinking,
    losses: [...losses, ...unread(body, GOOGLE_SHAPE, losses, camelCase)],
    rules,
    echo: {},
  }
}

function readSampling(config: JsonObject): RequestedSampling {
  const path = 'generationConfig'
  const candidates = integerField(config, 'candidateCount', path) ?? 1
  if (candidates !== 1)
    refuseUnsupported(at(path, 'candidateCount'), `wanted 1, got ${candidates}: one call gives one answer`)
  const stop = stringList(config, 'stopSequences', path)
  const read = {
    temperature: numberField(config, 'temperature', path),
    topP: numberField(config, 'topP', path),
    topK: integerField(config, 'topK', path),
    presencePenalty: numberField(config, 'presencePenalty', path),
    frequencyPenalty: numberField(config, 'frequencyPenalty', path),
    maxTokens: integerField(config, 'maxOutputTokens', path),
    seed: integerField(config, 'seed', path),
    stop: stop !== undefined && stop.length > 0 ? stop : undefined,
  }
  return Object.fromEntries(Object.entries(read).filter(([, value]) => value !== undefined)) as RequestedSampling
}

function readFormat(config: JsonObject, history: History): JsonObject | undefined {
  const path = 'generationConfig'
  if (stringField(config, 'responseMimeType', path) !== 'application/json') {
    for (const key of ['responseSchema', 'responseJsonSchema']) {
      if (objectField(config, key, path) !== undefined) history.loss(at(path, key), 'responseMimeType is not JSON')
    }
    return undefined
  }
  const own = objectField(config, 'responseSchema', path)
  const schema = objectField(config, 'responseJsonSchema', path) ?? (own && (lowerCaseTypes(own) as JsonObject))
  if (schema === undefined) return { type: 'json_object' }
  return { type: 'json_schema', json_schema: { name: 'google_response', schema } }
}

/** A budget of 0 switches thinking off; other budgets have no place in the canonical form. */
function readThinking(
  config: JsonObject,
  history: History,
): { readonly enableThinking?: boolean; readonly reasoningEffort?: string } {
  const path = 'generationConfig.thinkingConfig'
  const fields = camelKeys(objectField(config, 'thinkingConfig', 'generationConfig') ?? {})
  const budget = integerField(fields, 'thinkingBudget', path)
  const level = stringField(fields, 'thinkingLevel', path)?.toLowerCase()
  if (budget === 0) return { enableThinking: false }
  if (budget !== undefined && budget > 0) history.loss(at(path, 'thinkingBudget'), 'not carried to the engine')
  const isOn = booleanField(fields, 'includeThoughts', path) === true || (budget ?? 0) !== 0 || level !== undefined
  return { ...(isOn && { enableThinking: true }), ...(level !== undefined && { reasoningEffort: level }) }
}

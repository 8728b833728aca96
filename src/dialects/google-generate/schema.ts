// Tools, tool choice and schemas of Gemini requests. Gemini's own schemas write types in upper case (`OBJECT`), which JSON Schema does not
// know; `parametersJsonSchema` is JSON Schema already (case gemini-4).

import type { ToolChoice, ToolDefinition } from '../../domain/conversation.js'
import type { Json, JsonObject } from '../../domain/json.js'
import { asObject, at, objectField, oneOf, refuse, requiredString, stringField, stringList } from '../shared/fields.js'
import type { History } from '../shared/history.js'
import { listField, pick } from './names.js'

/** Function declarations of all entries, in order; other tools (`googleSearch` ...) are recorded as losses. */
export function readTools(body: JsonObject, history: History): ToolDefinition[] {
  return listField(body, 'tools', '').flatMap((item, index) => {
    const path = at('tools', index)
    const entry = asObject(item, path)
    for (const key of Object.keys(entry)) {
      if (key === 'functionDeclarations' || key === 'function_declarations') continue
      history.loss(at(path, key), 'a tool that Google runs itself has no counterpart in the engine')
    }
    return listField(entry, 'functionDeclarations', path).map((declaration, position) => {
      const own = at(at(path, 'functionDeclarations'), position)
      return readDeclaration(asObject(declaration, own), own)
    })
  })
}

function readDeclaration(declaration: JsonObject, path: string): ToolDefinition {
  const description = stringField(declaration, 'description', path)
  const schema = pick(declaration, 'parametersJsonSchema')
  const own = objectField(declaration, 'parameters', path)
  const parameters =
    schema === undefined || schema === null
      ? own && (lowerCaseTypes(own) as JsonObject)
      : asObject(schema, at(path, 'parametersJsonSchema'))
  return {
    name: requiredString(declaration, 'name', path),
    ...(description !== undefined && { description }),
    ...(parameters && { parameters }),
  }
}

/** Mode NONE, ANY, VALIDATED or AUTO; one allowed name makes it a named choice. */
export function readToolChoice(body: JsonObject, history: History): ToolChoice | undefined {
  const config = pick(body, 'toolConfig')
  if (config === undefined || config === null) return undefined
  const calling = pick(asObject(config, 'toolConfig'), 'functionCallingConfig')
  if (calling === undefined || calling === null) return undefined
  const path = 'toolConfig.functionCallingConfig'
  const fields = asObject(calling, path)
  const allowed = stringList(
    { allowedFunctionNames: pick(fields, 'allowedFunctionNames') },
    'allowedFunctionNames',
    path,
  )
  const mode = stringField(fields, 'mode', path)?.toUpperCase()
  const [only] = allowed ?? []
  const isNamed = allowed?.length === 1 && (mode === 'ANY' || mode === 'VALIDATED')
  if (only !== undefined && !isNamed) history.loss(at(path, 'allowedFunctionNames'), 'the engine can be told one name')
  switch (mode) {
    case undefined:
    case 'AUTO':
    case 'MODE_UNSPECIFIED':
      return undefined
    case 'NONE':
      return { type: 'none' }
    case 'ANY':
    case 'VALIDATED':
      return isNamed && only !== undefined ? { type: 'function', name: only } : { type: 'required' }
    default:
      return refuse(at(path, 'mode'), oneOf(['AUTO', 'ANY', 'NONE', 'VALIDATED']), fields['mode'])
  }
}

/** The schema with `type` values in lower case; properties that are *named* `type` are objects and stay. */
export function lowerCaseTypes(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(item => lowerCaseTypes(item))
  if (typeof schema !== 'object' || schema === null) return schema
  const fields = Object.entries(schema as JsonObject).map(([key, value]): [string, Json | undefined] => {
    if (key === 'type' && typeof value === 'string') return [key, value.toLowerCase()]
    const isData = key === 'enum' || key === 'default' || key === 'example' || key === 'required'
    return [key, value === undefined || isData ? value : lowerCaseTypes(value)]
  })
  return Object.fromEntries(fields)
}

// Turns of a Gemini request. Ids are optional there: a call without one gets an id made of its place in the history, the same in every later
// request (case gemini-1), and a response without one goes to the first open call of its name. Foreign thought signatures are dropped
// (gemini-5); ours hold the thoughts that the client left out.

import type { ContentPart, ToolCall } from '../../domain/conversation.js'
import { isObject, type Json, type JsonObject } from '../../domain/json.js'
import { openText } from '../shared/base64.js'
import { dataImage, markedError, omittedPart, textPart } from '../shared/content.js'
import { asObject, at, booleanField, oneOf, refuse, requiredString, stringField } from '../shared/fields.js'
import { type History, SEPARATOR } from '../shared/history.js'
import { pythonJson } from '../shared/python-json.js'
import { RULES } from '../shared/rules.js'
import { VISIBLE_NOTE } from './encode.js'
import { camelKeys, listField } from './names.js'

interface Part {
  readonly part: JsonObject
  readonly path: string
}

/** Text of a system instruction: a string or content. */
export function systemText(instruction: Json | undefined, history: History): string {
  if (instruction === undefined || instruction === null) return ''
  if (typeof instruction === 'string') return instruction
  const texts = partsOf(asObject(instruction, 'systemInstruction'), 'systemInstruction').flatMap(({ part, path }) => {
    const text = stringField(part, 'text', path)
    if (text === undefined) history.loss(path, 'only text is carried in a system instruction')
    return text === undefined || text === '' ? [] : [text]
  })
  return texts.join(SEPARATOR)
}

export function readContents(contents: readonly unknown[], history: History): void {
  /** Ids of calls that have their response: Gemini CLI sends some twice after `--resume`. */
  const answered = new Set<string>()
  for (const [index, item] of contents.entries()) {
    const path = at('contents', index)
    if (typeof item === 'string') {
      history.user([textPart(item)])
      continue
    }
    const content = asObject(item, path)
    const parts = partsOf(content, path)
    const role = stringField(content, 'role', path) ?? 'user'
    if (role === 'model') readModel(parts, index, history)
    else if (role === 'user' || role === 'function') readUser(parts, history, answered)
    else if (role === 'system')
      history.system(parts.map(({ part, path: own }) => stringField(part, 'text', own) ?? '').join('\n'))
    else refuse(at(path, 'role'), oneOf(['user', 'model', 'function', 'system']), role)
  }
}

function readModel(parts: readonly Part[], index: number, history: History): void {
  const thoughts: string[] = []
  const texts: string[] = []
  const toolCalls: ToolCall[] = []
  let kept: string | null = null
  for (const [position, { part, path }] of parts.entries()) {
    kept ??= openText(part['thoughtSignature'])
    const text = stringField(part, 'text', path)
    if (text !== undefined && booleanField(part, 'thought', path) === true) {
      if (toolCalls.length > 0 || texts.length > 0) history.rule(RULES.thinkingFlattened, path)
      thoughts.push(text)
    } else if (text !== undefined) {
      if (text !== VISIBLE_NOTE || !history.uses(RULES.visibleNote)) texts.push(text)
    } else if (isObject(part['functionCall'])) {
      toolCalls.push(
        readCall(part['functionCall'] as JsonObject, at(path, 'functionCall'), `call_${index}_${position}`),
      )
    } else {
      history.loss(path, `a part with ${Object.keys(part).join(', ') || 'no fields'} has no place in an assistant turn`)
    }
  }
  const restored = thoughts.length === 0 && kept !== null && history.uses(RULES.reasoningRestored) ? kept : ''
  history.assistant({
    text: texts.join(''),
    reasoning: thoughts.length > 0 ? thoughts.join('') : restored,
    toolCalls,
  })
}

function readCall(call: JsonObject, path: string, ownId: string): ToolCall {
  const args = call['args']
  if (args !== undefined && args !== null && !isObject(args)) refuse(at(path, 'args'), 'an object', args)
  return {
    id: stringField(call, 'id', path) || ownId,
    name: requiredString(call, 'name', path),
    arguments: pythonJson(args ?? {}),
  }
}

function readUser(parts: readonly Part[], history: History, answered: Set<string>): void {
  const own: ContentPart[] = []
  for (const { part, path } of parts) {
    const response = part['functionResponse']
    if (isObject(response)) {
      if (own.length > 0) history.rule(RULES.resultsFirst, path)
      readResponse(camelKeys(response as JsonObject), at(path, 'functionResponse'), history, answered)
    } else {
      own.push(...readData(part, path, history))
    }
  }
  if (own.length > 0) history.user(own)
}

function readResponse(response: JsonObject, path: string, history: History, answered: Set<string>): void {
  const id = stringField(response, 'id', path) || null
  if (id !== null && answered.has(id)) {
    history.loss(path, 'a second response to the same call')
    return
  }
  if (id !== null) answered.add(id)
  const name = stringField(response, 'name', path)
  const images = listField(response, 'parts', path).flatMap((item, index) => {
    const own = at(at(path, 'parts'), index)
    return readData(camelKeys(asObject(item, own)), own, history)
  })
  history.result({
    id,
    ...(name !== undefined && { name }),
    text: [
      resultText(response['response'], history),
      ...images.flatMap(part => (part.type === 'text' ? [part.text] : [])),
    ]
      .filter(text => text !== '')
      .join('\n'),
    images: images.filter(part => part.type === 'image'),
  })
}

/** `{"output": "text"}` and `{"error": "text"}` are the API's own conventions for plain text; anything else is written as JSON. */
function resultText(response: Json | undefined, history: History): string {
  if (response === undefined || response === null) return ''
  if (typeof response === 'string') return response
  const [[key, value] = ['', undefined], ...others] = Object.entries(response)
  if (others.length === 0 && typeof value === 'string') {
    if (key === 'output' || key === 'result') return value
    if (key === 'error') return history.uses(RULES.toolError) ? markedError(value) : value
  }
  return pythonJson(response)
}

/** Text, inline data and file references. */
function readData(part: JsonObject, path: string, history: History): ContentPart[] {
  const text = stringField(part, 'text', path)
  if (text !== undefined) return text === '' ? [] : [textPart(text)]
  const inline = part['inlineData']
  const file = part['fileData']
  if (isObject(inline)) {
    const own = at(path, 'inlineData')
    const fields = camelKeys(inline as JsonObject)
    const type = stringField(fields, 'mimeType', own) ?? ''
    if (type.startsWith('image/')) return [dataImage(type, requiredString(fields, 'data', own))]
    return omitted('data', type, path, history)
  }
  if (isObject(file)) {
    const own = at(path, 'fileData')
    const fields = camelKeys(file as JsonObject)
    const type = stringField(fields, 'mimeType', own) ?? ''
    const url = requiredString(fields, 'fileUri', own)
    return type.startsWith('image/') && /^https?:/.test(url)
      ? [{ type: 'image', url }]
      : omitted('file', type, path, history)
  }
  const kinds = ['text', 'inlineData', 'fileData', 'functionResponse', 'functionCall']
  if (
    !Object.keys(part).some(key =>
      /^(executableCode|codeExecutionResult|toolCall|toolResponse|videoMetadata)$/.test(key),
    )
  ) {
    refuse(path, `a part with ${oneOf(kinds)}`, part)
  }
  history.loss(path, `a part with ${Object.keys(part).join(', ')} has no counterpart in the engine`)
  return []
}

function omitted(kind: string, type: string, path: string, history: History): ContentPart[] {
  history.loss(path, `${kind} of type ${type || 'unknown'} is not carried to the engine`)
  history.rule(RULES.omitted, path)
  return [omittedPart(kind, type)]
}

function partsOf(content: JsonObject, path: string): readonly Part[] {
  return listField(content, 'parts', path).map((item, index) => {
    const own = at(at(path, 'parts'), index)
    return { part: typeof item === 'string' ? { text: item } : camelKeys(asObject(item, own)), path: own }
  })
}

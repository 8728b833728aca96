// Content blocks of Anthropic messages. A block type that the API does not know is refused with its path; blocks of server tools, which no
// engine can take, are left out and recorded. No file is ever opened, whatever a text names (case anthropic-request-2).

import type { ContentPart, ToolCall } from '../../domain/conversation.js'
import { isObject, type Json, type JsonObject } from '../../domain/json.js'
import { dataImage, markedError, omittedPart, textPart } from '../shared/content.js'
import {
  asObject,
  at,
  booleanField,
  objectField,
  oneOf,
  refuse,
  requiredString,
  stringField,
  wordOf,
} from '../shared/fields.js'
import { flattened, type History, SEPARATOR } from '../shared/history.js'
import { pythonJson } from '../shared/python-json.js'
import { RULES } from '../shared/rules.js'

const BILLING_LINE = /^[ \t]*x-anthropic-billing-header:.*(?:\r?\n|$)/gim

/** System text of a string or of text blocks, without billing lines (case anthropic-request-4). Absent or empty gives ''. */
export function readSystem(content: Json | undefined, path: string, history: History): string {
  const texts = blocksOf(content, path).map(({ block, path: own }) => {
    if (block['type'] !== 'text') return refuse(at(own, 'type'), '"text"', block['type'])
    return textOf(block, 'text', own)
  })
  const stripped = texts.map(text => text.replace(BILLING_LINE, ''))
  const isBilled = stripped.some((text, index) => text !== texts[index])
  const kept = isBilled && history.uses(RULES.billingLine) ? stripped : texts
  return kept.filter(text => text !== '').join(SEPARATOR)
}

/** A user turn: results go to their calls, the rest is one user message. */
export function readUser(
  content: Json | undefined,
  path: string,
  history: History,
  deferred: ReadonlyMap<string, string>,
): void {
  const parts: ContentPart[] = []
  const blocks = blocksOf(content, path)
  for (const { block, path: own } of blocks) {
    if (block['type'] === 'tool_result') {
      if (parts.length > 0) history.rule(RULES.resultsFirst, own)
      readResult(block, own, history, deferred)
    } else {
      parts.push(...readPart(block, own, history, deferred))
    }
  }
  if (parts.length > 0 || blocks.length === 0) history.user(parts)
}

/** An assistant turn: one message, its thinking joined in order before the calls (case anthropic-request-7). */
export function readAssistant(content: Json | undefined, path: string, history: History): void {
  const thinking: string[] = []
  const texts: string[] = []
  const toolCalls: ToolCall[] = []
  for (const { block, path: own } of blocksOf(content, path)) {
    switch (block['type']) {
      case 'text':
        texts.push(textOf(block, 'text', own))
        break
      case 'thinking':
        if (toolCalls.length > 0 || texts.length > 0) history.rule(RULES.thinkingFlattened, own)
        thinking.push(textOf(block, 'thinking', own))
        break
      case 'tool_use':
        toolCalls.push({
          id: requiredString(block, 'id', own),
          name: requiredString(block, 'name', own),
          arguments: argumentText(block['input'], at(own, 'input')),
        })
        break
      case 'redacted_thinking':
        history.loss(own, 'redacted thinking cannot be read')
        break
      case 'image':
        history.loss(own, 'an image in an assistant turn has no place in the engine form')
        break
      default:
        if (!isServerBlock(block['type'])) {
          refuse(at(own, 'type'), oneOf(['text', 'thinking', 'redacted_thinking', 'tool_use']), block['type'])
        }
        history.loss(own, `${wordOf(block['type'])} belongs to a server tool`)
    }
  }
  history.assistant({
    text: texts.join(''),
    reasoning: thinking.filter(text => text !== '').join(SEPARATOR),
    toolCalls,
  })
}

function readResult(block: JsonObject, path: string, history: History, deferred: ReadonlyMap<string, string>): void {
  const content = block['content']
  const parts = blocksOf(content, at(path, 'content')).flatMap(inner =>
    readPart(inner.block, inner.path, history, deferred),
  )
  const images = parts.filter(part => part.type === 'image')
  const text = String(flattened(parts.filter(part => part.type === 'text')))
  const isMarked = booleanField(block, 'is_error', path) === true && history.uses(RULES.toolError)
  history.result({
    id: requiredString(block, 'tool_use_id', path),
    text: isMarked ? markedError(text) : text,
    images,
  })
}

/** Text, images and documents of user turns and of results. */
function readPart(
  block: JsonObject,
  path: string,
  history: History,
  deferred: ReadonlyMap<string, string>,
): readonly ContentPart[] {
  switch (block['type']) {
    case 'text':
      return [textPart(textOf(block, 'text', path))]
    case 'image':
      return [readSource(block, path, 'image', history)]
    case 'document':
      return [readSource(block, path, 'document', history)]
    case 'search_result': {
      const heading = [stringField(block, 'title', path), stringField(block, 'source', path)].filter(text => text)
      const texts = blocksOf(block['content'], at(path, 'content')).flatMap(inner =>
        readPart(inner.block, inner.path, history, deferred),
      )
      return heading.length > 0 ? [textPart(heading.join(' ')), ...texts] : texts
    }
    case 'tool_reference': {
      const name = requiredString(block, 'tool_name', path)
      return [textPart(deferred.get(name) ?? `Tool: ${name}`)]
    }
    default:
      if (!isServerBlock(block['type'])) {
        refuse(at(path, 'type'), oneOf(['text', 'image', 'document', 'search_result', 'tool_result']), block['type'])
      }
      history.loss(path, `${wordOf(block['type'])} has no counterpart in the engine`)
      return []
  }
}

/** Image or document by its source. Text documents become text; what cannot be carried leaves a line that names it. */
function readSource(block: JsonObject, path: string, kind: 'image' | 'document', history: History): ContentPart {
  const source = objectField(block, 'source', path) ?? refuse(at(path, 'source'), 'an object', block['source'])
  const own = at(path, 'source')
  const mediaType = stringField(source, 'media_type', own) ?? ''
  if (source['type'] === 'text') return textPart(textOf(source, 'data', own))
  if (source['type'] === 'base64' && mediaType.startsWith('image/')) {
    return dataImage(mediaType, requiredString(source, 'data', own))
  }
  if (source['type'] === 'url' && kind === 'image') return { type: 'image', url: requiredString(source, 'url', own) }
  const known = ['base64', 'url', 'file', 'content', 'text']
  if (!known.includes(wordOf(source['type']))) refuse(at(own, 'type'), oneOf(known), source['type'])
  history.loss(path, `a ${kind} given as ${wordOf(source['type'])} is not carried to the engine`)
  history.rule(RULES.omitted, path)
  return omittedPart(kind, mediaType)
}

/** Content as a list of blocks: a string is one text block, absent is none. */
function blocksOf(
  content: Json | undefined,
  path: string,
): readonly { readonly block: JsonObject; readonly path: string }[] {
  if (content === undefined || content === null || content === '') return []
  if (typeof content === 'string') return [{ block: { type: 'text', text: content }, path }]
  if (!Array.isArray(content)) return refuse(path, 'a string or an array of blocks', content)
  return content.map((block, index) => ({ block: asObject(block, at(path, index)), path: at(path, index) }))
}

/** The text of a block, which may be empty but must be there. */
const textOf = (block: JsonObject, key: string, path: string): string =>
  stringField(block, key, path) ?? refuse(at(path, key), 'a string', block[key])

/** Sampled text is not known here: the object is written as templates write it, keys in the order sent. */
function argumentText(input: Json | undefined, path: string): string {
  if (input === undefined || input === null) return '{}'
  if (typeof input === 'string') return input
  return isObject(input) ? pythonJson(input as JsonObject) : refuse(path, 'an object', input)
}

/** Blocks of tools that Anthropic runs itself, and of containers and compaction. */
const isServerBlock = (type: unknown): boolean =>
  typeof type === 'string' &&
  (/^(server|mcp)_tool_use$|_tool_result$/.test(type) ||
    ['container_upload', 'compaction', 'fallback', 'browser_state', 'mcp_tool_listing'].includes(type))

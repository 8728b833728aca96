// Input items of Responses requests. A model turn lies there as several items (reasoning, text, calls); all of one turn become one assistant
// message (cases responses-request-1 to -3). Where a turn ends is known by what follows (an output, a user message), by ids of ours, and else
// by this: text after text, and thinking after text, begin another turn.

import type { ContentPart, ToolCall } from '../../domain/conversation.js'
import { isObject, type Json, type JsonObject } from '../../domain/json.js'
import { openText } from '../shared/base64.js'
import { omittedPart, textPart } from '../shared/content.js'
import {
  arrayField,
  asObject,
  at,
  objectField,
  oneOf,
  refuse,
  refuseUnsupported,
  requiredString,
  stringField,
} from '../shared/fields.js'
import { flattened, type History, SEPARATOR } from '../shared/history.js'
import { pythonJson } from '../shared/python-json.js'
import { RULES } from '../shared/rules.js'
import { customArguments, engineName, SHELL_NAME, type ToolNames } from './tools.js'

const HOSTED =
  /^(web_search|file_search|computer|image_generation|code_interpreter|mcp|tool_search|apply_patch)_(call|call_output|output)$|^mcp_(list_tools|approval_request|approval_response)$|^(compaction|compaction_summary)$/

const KINDS = [
  'message',
  'reasoning',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'local_shell_call',
  'local_shell_call_output',
]

/** An input item and where it stands: `input[2]`, or in the conversation that the request goes on from. */
export interface PlacedItem {
  readonly item: JsonObject
  readonly path: string
}

export function readInput(items: readonly PlacedItem[], names: ToolNames, history: History): void {
  const turn = turnCollector(history)
  for (const { item, path } of items) readItem(item, path, names, turn, history)
  turn.flush()
}

function readItem(item: JsonObject, path: string, names: ToolNames, turn: TurnCollector, history: History): void {
  const type = stringField(item, 'type', path) ?? (item['role'] === undefined ? undefined : 'message')
  if (type === 'item_reference') refuseUnsupported(path, 'item_reference: no items are stored, send the item itself')
  const call = (name: string, text: string) =>
    turn.call({ id: callId(item, path), name, arguments: text }, stringField(item, 'id', path))
  switch (type) {
    case 'message':
      readMessage(item, path, turn, history)
      break
    case 'reasoning':
      turn.reasoning(reasoningText(item, path, history), stringField(item, 'id', path))
      break
    case 'function_call': {
      const namespace = stringField(item, 'namespace', path)
      call(engineName(requiredString(item, 'name', path), namespace, names), stringField(item, 'arguments', path) ?? '')
      break
    }
    case 'custom_tool_call': {
      const namespace = stringField(item, 'namespace', path)
      const input = customArguments(stringField(item, 'input', path) ?? '')
      call(engineName(requiredString(item, 'name', path), namespace, names), pythonJson(input))
      break
    }
    case 'local_shell_call':
    case 'shell_call':
      call(SHELL_NAME, pythonJson(shellArguments(objectField(item, 'action', path) ?? {})))
      break
    case 'function_call_output':
    case 'custom_tool_call_output':
    case 'local_shell_call_output':
    case 'shell_call_output': {
      turn.flush()
      const parts = outputParts(item['output'], at(path, 'output'), history)
      history.result({
        id: callId(item, path),
        text: String(flattened(parts.filter(part => part.type === 'text'))),
        images: parts.filter(part => part.type === 'image'),
      })
      break
    }
    case 'agent_message': {
      turn.flush()
      const author = stringField(item, 'author', path) ?? 'another agent'
      history.user([textPart(`[message from ${author}]`), ...readParts(item['content'], at(path, 'content'), history)])
      break
    }
    case 'additional_tools':
      break
    default:
      if (type === undefined || !HOSTED.test(type)) refuse(at(path, 'type'), oneOf(KINDS), item['type'])
      history.loss(path, `${type} has no counterpart in the engine`)
  }
}

function readMessage(item: JsonObject, path: string, turn: TurnCollector, history: History): void {
  const parts = readParts(item['content'], at(path, 'content'), history)
  const text = () => parts.flatMap(part => (part.type === 'text' ? [part.text] : []))
  switch (item['role']) {
    case 'assistant':
      turn.text(text().join(''), stringField(item, 'id', path))
      break
    case 'user':
      turn.flush()
      history.user(parts)
      break
    case 'system':
    case 'developer':
      turn.flush()
      history.system(text().join('\n'))
      break
    default:
      refuse(at(path, 'role'), oneOf(['user', 'assistant', 'system', 'developer']), item['role'])
  }
}

interface TurnCollector {
  reasoning(text: string, id: string | undefined): void
  text(text: string, id: string | undefined): void
  call(call: ToolCall, id: string | undefined): void
  /** Ends the turn, if one is open. */
  flush(): void
}

function turnCollector(history: History): TurnCollector {
  let thoughts: string[] = []
  let texts: string[] = []
  let calls: ToolCall[] = []
  let stem: string | null = null

  const flush = () => {
    if (thoughts.length + texts.length + calls.length > 0) {
      history.assistant({ text: texts.join(''), reasoning: thoughts.join(SEPARATOR), toolCalls: calls })
    }
    thoughts = []
    texts = []
    calls = []
    stem = null
  }
  /** Begins another turn when the ids say so; without ids of ours, when `looksNew`. */
  const enter = (id: string | undefined, looksNew: boolean) => {
    const own = /^[a-z]+_([0-9a-f]{12})_\d+$/.exec(id ?? '')?.[1] ?? null
    if (own !== null && stem !== null ? own !== stem : looksNew) flush()
    stem = own ?? stem
  }
  return {
    reasoning(text, id) {
      enter(id, texts.length > 0 && calls.length === 0)
      if (texts.length > 0 || calls.length > 0) history.rule(RULES.thinkingFlattened)
      if (text !== '') thoughts.push(text)
    },
    text(text, id) {
      enter(id, texts.length > 0 && calls.length === 0)
      texts.push(text)
    },
    call(call, id) {
      enter(id, false)
      calls.push(call)
    },
    flush,
  }
}

/** Text of a reasoning item: our own sealed text is exact, then `content`, then the summary. */
function reasoningText(item: JsonObject, path: string, history: History): string {
  const sealed = openText(item['encrypted_content'])
  const texts = (key: 'content' | 'summary') =>
    (arrayField(item, key, path) ?? []).flatMap((part, index) => {
      const own = at(at(path, key), index)
      return stringField(asObject(part, own), 'text', own) ?? []
    })
  const shown = [texts('content'), texts('summary')].find(list => list.length > 0)
  if (sealed !== null) {
    return shown !== undefined || history.uses(RULES.reasoningRestored) ? sealed : ''
  }
  if (shown === undefined && item['encrypted_content'])
    history.loss(path, 'reasoning encrypted by another server cannot be read')
  return shown?.join(SEPARATOR) ?? ''
}

/** Shell items may carry their id in place of a call id. */
function callId(item: JsonObject, path: string): string {
  return (
    stringField(item, 'call_id', path) ||
    stringField(item, 'id', path) ||
    refuse(at(path, 'call_id'), 'a non-empty string', item['call_id'])
  )
}

/** The action of a shell call as the arguments that our shell functions take. */
function shellArguments(action: JsonObject): JsonObject {
  const kept = ['command', 'commands', 'working_directory', 'timeout_ms', 'max_output_length']
  return Object.fromEntries(Object.entries(action).filter(([key, value]) => kept.includes(key) && value !== null))
}

/** Output of a tool: text, parts, or any JSON. */
function outputParts(output: Json | undefined, path: string, history: History): readonly ContentPart[] {
  if (output === undefined || output === null) return []
  if (typeof output === 'string') return [textPart(output)]
  if (!Array.isArray(output)) return [textPart(pythonJson(output))]
  const isParts = output.every(part => isObject(part) && typeof part['type'] === 'string' && part['type'].includes('_'))
  return isParts ? readParts(output, path, history) : [textPart(pythonJson(output))]
}

function readParts(content: Json | undefined, path: string, history: History): readonly ContentPart[] {
  if (content === undefined || content === null) return []
  if (typeof content === 'string') return [textPart(content)]
  if (!Array.isArray(content)) return refuse(path, 'a string or an array of parts', content)
  return content.flatMap((item, index) => readPart(asObject(item, at(path, index)), at(path, index), history))
}

function readPart(part: JsonObject, path: string, history: History): ContentPart[] {
  switch (part['type']) {
    case 'input_text':
    case 'output_text':
    case 'text':
    case 'summary_text':
      return [textPart(stringField(part, 'text', path) ?? refuse(at(path, 'text'), 'a string', part['text']))]
    case 'refusal':
      return [textPart(stringField(part, 'refusal', path) ?? '')]
    case 'input_image': {
      const image = part['image_url']
      const url = isObject(image) ? image['url'] : image
      const detail = stringField(part, 'detail', path)
      if (typeof url === 'string' && url !== '')
        return [{ type: 'image', url, ...(detail !== undefined && { detail }) }]
      return omitted('image', path, history)
    }
    case 'input_file':
    case 'input_audio':
      return omitted(part['type'].slice('input_'.length), path, history)
    case 'encrypted_content':
      history.loss(path, 'content encrypted by another server cannot be read')
      return []
    default:
      return refuse(at(path, 'type'), oneOf(['input_text', 'output_text', 'input_image', 'input_file']), part['type'])
  }
}

function omitted(kind: string, path: string, history: History): ContentPart[] {
  history.loss(path, `${kind} is not carried to the engine`)
  history.rule(RULES.omitted, path)
  return [omittedPart(kind)]
}

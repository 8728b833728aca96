// Anthropic tool lists. Server tools run on Anthropic's side and are left out (case anthropic-request-11). Deferred tools (`defer_loading`)
// are not shown to the model until a tool result refers to them: they stay out of the list, so that the prompt's start does not change when
// the list grows, and their definition is written where the reference stands.

import type { ToolChoice, ToolDefinition } from '../../domain/conversation.js'
import type { JsonObject } from '../../domain/json.js'
import {
  arrayField,
  asObject,
  at,
  booleanField,
  objectField,
  oneOf,
  refuse,
  requiredString,
  stringField,
} from '../shared/fields.js'
import type { History } from '../shared/history.js'
import { pythonJson } from '../shared/python-json.js'
import { RULES } from '../shared/rules.js'

/** `deferred`: name -> definition as the text in which templates write tools. */
export function readTools(
  body: JsonObject,
  history: History,
): { readonly tools: readonly ToolDefinition[]; readonly deferred: ReadonlyMap<string, string> } {
  const tools: ToolDefinition[] = []
  const deferred = new Map<string, string>()
  for (const [index, item] of (arrayField(body, 'tools') ?? []).entries()) {
    const path = at('tools', index)
    const tool = asObject(item, path)
    const type = stringField(tool, 'type', path)
    if (type !== undefined && type !== 'custom') {
      history.loss(path, `server tool ${type} has no counterpart in the engine`)
      continue
    }
    const definition = readTool(tool, path)
    if (booleanField(tool, 'defer_loading', path) === true && history.uses(RULES.deferredTools)) {
      deferred.set(definition.name, pythonJson({ type: 'function', function: { ...definition } }))
    } else {
      tools.push(definition)
    }
  }
  return { tools, deferred }
}

function readTool(tool: JsonObject, path: string): ToolDefinition {
  const description = stringField(tool, 'description', path)
  const parameters = objectField(tool, 'input_schema', path)
  const strict = booleanField(tool, 'strict', path)
  return {
    name: requiredString(tool, 'name', path),
    ...(description !== undefined && { description }),
    ...(parameters && { parameters }),
    ...(strict !== undefined && { strict }),
  }
}

/** `auto`, `any`, `none`, `tool`, and the parallel flag that stands beside them. */
export function readToolChoice(body: JsonObject): {
  readonly toolChoice?: ToolChoice
  readonly parallelToolCalls?: boolean
} {
  const choice = objectField(body, 'tool_choice')
  if (choice === undefined) return {}
  const isSerial = booleanField(choice, 'disable_parallel_tool_use', 'tool_choice')
  return {
    toolChoice: toolChoice(choice),
    ...(isSerial !== undefined && { parallelToolCalls: !isSerial }),
  }
}

function toolChoice(choice: JsonObject): ToolChoice {
  switch (choice['type']) {
    case 'auto':
    case 'none':
      return { type: choice['type'] }
    case 'any':
      return { type: 'required' }
    case 'tool':
      return { type: 'function', name: requiredString(choice, 'name', 'tool_choice') }
    default:
      return refuse('tool_choice.type', oneOf(['auto', 'any', 'none', 'tool']), choice['type'])
  }
}

// Function tools and tool choice as both OpenAI dialects send them, nested (`{type, function: {...}}`) or flat.

import type { ToolChoice, ToolDefinition } from '../../domain/conversation.js'
import type { Json, JsonObject } from '../../domain/json.js'
import { asObject, at, booleanField, objectField, oneOf, refuse, requiredString, stringField } from './fields.js'

/** A function tool. Its schema may be missing (some Qwen Code tools have none) or stand under `input_schema`. */
export function readFunctionTool(tool: JsonObject, path: string): ToolDefinition {
  const nested = objectField(tool, 'function', path)
  const definition = nested ?? tool
  const own = nested === undefined ? path : at(path, 'function')
  const description = stringField(definition, 'description', own)
  const strict = booleanField(definition, 'strict', own)
  const inputSchema = objectField(definition, 'input_schema', own)
  const parameters =
    objectField(definition, 'parameters', own) ??
    (inputSchema && (objectField(inputSchema, 'jsonSchema', at(own, 'input_schema')) ?? inputSchema))
  return {
    name: requiredString(definition, 'name', own),
    ...(description !== undefined && { description }),
    ...(parameters && { parameters }),
    ...(strict !== undefined && { strict }),
  }
}

/** `auto`, `none`, `required`, or an object that names a function. `nameOf` maps a named tool to its name towards the engine. */
export function readToolChoice(
  value: Json | undefined,
  nameOf: (name: string, namespace: string | undefined) => string = name => name,
): ToolChoice | undefined {
  if (value === undefined || value === null) return undefined
  if (value === 'auto' || value === 'none' || value === 'required') return { type: value }
  if (typeof value === 'string') return refuse('tool_choice', oneOf(['auto', 'none', 'required']), value)
  const choice = asObject(value, 'tool_choice')
  const nested = objectField(choice, 'function', 'tool_choice')
  if (nested !== undefined)
    return { type: 'function', name: nameOf(requiredString(nested, 'name', 'tool_choice.function'), undefined) }
  if (choice['name'] === undefined && choice['type'] !== 'function' && choice['type'] !== 'custom') {
    // `allowed_tools` and hosted tools: the engine has no such choice; the mode is what is left of it.
    const allowed = objectField(choice, 'allowed_tools', 'tool_choice') ?? choice
    return { type: allowed['mode'] === 'required' ? 'required' : 'auto' }
  }
  const name = requiredString(choice, 'name', 'tool_choice')
  return { type: 'function', name: nameOf(name, stringField(choice, 'namespace', 'tool_choice')) }
}

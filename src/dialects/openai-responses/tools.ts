// Tools of Responses requests, and the way back: the engine knows flat functions only, so each other kind (custom, namespaced, shell) is
// given as a function, and `ToolNames` remembers what a call of it must look like towards the client. Hosted tools are left out and recorded
// (case responses-request-9).

import type { ToolDefinition } from '../../domain/conversation.js'
import { isObject, type JsonObject } from '../../domain/json.js'
import { arrayField, asObject, at, objectField, requiredString, stringField } from '../shared/fields.js'
import type { History } from '../shared/history.js'
import { readFunctionTool } from '../shared/openai-tools.js'

export type ToolKind = 'function' | 'custom' | 'local_shell' | 'shell'

/** What a tool is towards the client. */
export interface DeclaredTool {
  readonly kind: ToolKind
  readonly name: string
  readonly namespace?: string
}

/** Name towards the engine -> declared tool. Plain functions may be missing. */
export type ToolNames = ReadonlyMap<string, DeclaredTool>

export interface ReadTools {
  readonly tools: readonly ToolDefinition[]
  readonly names: ToolNames
}

/** Codex's default namespace: its tools are called by their bare name. */
const ROOT_NAMESPACE = 'functions'

/** Name towards the engine of both shell kinds. */
export const SHELL_NAME = 'shell'

/** Reads `tools` and the lists of `additional_tools` items, in order. */
export function readTools(
  lists: readonly { readonly items: readonly unknown[]; readonly path: string }[],
  history: History,
): ReadTools {
  const tools = new Map<string, ToolDefinition>()
  const names = new Map<string, DeclaredTool>()
  const add = (definition: ToolDefinition, declared: DeclaredTool, path: string) => {
    if (tools.has(definition.name)) {
      history.loss(path, `a tool named ${definition.name} stands in the list already`)
      return
    }
    tools.set(definition.name, definition)
    names.set(definition.name, declared)
  }
  const read = (item: unknown, path: string, namespace?: string) => {
    const tool = asObject(item, path)
    const type = stringField(tool, 'type', path) ?? 'function'
    switch (type) {
      case 'function': {
        const definition = readFunctionTool(tool, path)
        const { name } = definition
        add({ ...definition, name: flatName(name, namespace) }, declare('function', name, namespace), path)
        break
      }
      case 'custom': {
        const name = requiredString(tool, 'name', path)
        add(customFunction(tool, path, flatName(name, namespace)), declare('custom', name, namespace), path)
        break
      }
      case 'namespace': {
        const own = requiredString(tool, 'name', path)
        for (const [index, inner] of (arrayField(tool, 'tools', path) ?? []).entries()) {
          read(inner, at(at(path, 'tools'), index), own)
        }
        break
      }
      case 'local_shell':
        add(LOCAL_SHELL, { kind: 'local_shell', name: SHELL_NAME }, path)
        break
      case 'shell':
        add(SHELL, { kind: 'shell', name: SHELL_NAME }, path)
        break
      default:
        history.loss(path, `hosted tool ${type} has no counterpart in the engine`)
    }
  }
  for (const { items, path } of lists) for (const [index, item] of items.entries()) read(item, at(path, index))
  return { tools: [...tools.values()], names }
}

/** Name towards the engine. A call in the history without its namespace finds its tool when only one has that name. */
export function engineName(name: string, namespace: string | undefined, names: ToolNames): string {
  if (namespace !== undefined || names.has(name)) return flatName(name, namespace)
  const matches = [...names].filter(([, declared]) => declared.name === name)
  const [only] = matches
  return matches.length === 1 && only !== undefined ? only[0] : name
}

/** Arguments that a custom tool's raw input stands for. */
export const customArguments = (input: string): JsonObject => ({ input })

/** `names` as plain data for `CanonicalRequest.echo`, without what a plain function would give anyway. */
export const echoNames = (names: ToolNames): JsonObject =>
  Object.fromEntries(
    [...names]
      .filter(([flat, declared]) => declared.kind !== 'function' || declared.name !== flat)
      .map(([flat, { kind, name, namespace }]) => [
        flat,
        { kind, name, ...(namespace !== undefined && { namespace }) },
      ]),
  )

/** What `echoNames` wrote. */
export function declaredTool(echo: JsonObject, flat: string): DeclaredTool {
  const tools = objectField(echo, 'tools') ?? {}
  const entry = Object.hasOwn(tools, flat) ? tools[flat] : undefined
  // `echo` is ours: the entry is what echoNames wrote.
  return isObject(entry) ? (entry as unknown as DeclaredTool) : { kind: 'function', name: flat }
}

const declare = (kind: ToolKind, name: string, namespace: string | undefined): DeclaredTool => ({
  kind,
  name,
  ...(namespace !== undefined && namespace !== ROOT_NAMESPACE && { namespace }),
})

function flatName(name: string, namespace: string | undefined): string {
  if (namespace === undefined || namespace === ROOT_NAMESPACE) return name
  return namespace.endsWith('__') ? `${namespace}${name}` : `${namespace}__${name}`
}

/** A freeform tool as a function with one string; its grammar goes into the description (case responses-request-6). */
function customFunction(tool: JsonObject, path: string, name: string): ToolDefinition {
  const description = stringField(tool, 'description', path)
  const format = objectField(tool, 'format', path)
  const grammar = format && stringField(format, 'definition', at(path, 'format'))
  const syntax = format && stringField(format, 'syntax', at(path, 'format'))
  const lines = [description, grammar && `The input must match this ${syntax ?? ''} grammar:\n${grammar}`]
  const text = lines.filter(line => line !== undefined && line !== '').join('\n\n')
  return {
    name,
    ...(text !== '' && { description: text }),
    parameters: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
  }
}

const LOCAL_SHELL: ToolDefinition = {
  name: SHELL_NAME,
  description: 'Runs a program and returns its output.',
  parameters: {
    type: 'object',
    properties: {
      command: { type: 'array', items: { type: 'string' }, description: 'Program and arguments' },
      working_directory: { type: 'string' },
      timeout_ms: { type: 'integer' },
    },
    required: ['command'],
  },
}

const SHELL: ToolDefinition = {
  name: SHELL_NAME,
  description: 'Runs shell commands and returns their output.',
  parameters: {
    type: 'object',
    properties: {
      commands: { type: 'array', items: { type: 'string' }, description: 'Commands, run in order' },
      timeout_ms: { type: 'integer' },
      max_output_length: { type: 'integer' },
    },
    required: ['commands'],
  },
}

// The tools a request offers, and calls of the one that runs shell commands, whatever the harness names it and whatever its
// schema wants besides the command. A call is written as Qwen3's chat template prints it.

import { isObject } from '../../domain/json.js'
import { dumpJson } from '../../tokenizer/python-json.js'
import { type Part, sequence } from './grammar.js'
import { jsonEscape, mapTexts, phrase } from './prose.js'

export interface OfferedTool {
  readonly name: string
  /** JSON schema of the arguments; an empty object where none was sent. */
  readonly schema: Readonly<Record<string, unknown>>
}

export interface ShellTool {
  readonly name: string
  /** Text before and after the command in the arguments' JSON, split where the description goes in, if one is wanted. */
  readonly opening: string
  readonly closing: readonly [string] | readonly [string, string]
  /** How often the command is escaped: once in JSON, twice in source code inside JSON. */
  readonly escapes: 1 | 2
  /** The argument that holds the command. */
  readonly key: string
}

const SHELL_NAMES = [
  'Bash',
  'bash',
  'run_shell_command',
  'exec_command',
  'shell_command',
  'shell',
  'local_shell',
  'execute_command',
  'run_command',
  'terminal',
  'exec',
]
const COMMAND_KEYS = ['command', 'cmd', 'script', 'commands']
const NO_SHELL = /list|read|kill|stop|stdin|output|patch|status/i

/** The shell among `tools`; null when none of them looks like one. */
export function findShell(tools: readonly OfferedTool[]): ShellTool | null {
  const named = SHELL_NAMES.map(name => tools.find(tool => tool.name === name || lastName(tool.name) === name))
  const likely = tools.filter(tool => /shell|bash|exec|terminal/i.test(tool.name) && !NO_SHELL.test(tool.name))
  const tool = [...named, ...likely].find(candidate => candidate !== undefined && commandKey(candidate) !== null)
  return tool ? describe(tool) : null
}

/** `functions.exec` and `mcp__box__exec` are `exec`. */
const lastName = (name: string): string => name.split(/__|[./:]/).at(-1) ?? name

const propertiesOf = (tool: OfferedTool): Readonly<Record<string, unknown>> =>
  isObject(tool.schema['properties']) ? tool.schema['properties'] : {}

/** The argument that takes a command; `input` where the tool takes a text of its own form; null where nothing fits. */
function commandKey(tool: OfferedTool): string | null {
  const properties = propertiesOf(tool)
  const key = COMMAND_KEYS.find(name => name in properties)
  if (key !== undefined) return key
  if ('input' in properties) return 'input'
  return Object.keys(properties).length === 0 ? 'command' : null
}

function describe(tool: OfferedTool): ShellTool {
  const key = commandKey(tool) ?? 'command'
  const properties = propertiesOf(tool)
  const required = Array.isArray(tool.schema['required']) ? tool.schema['required'] : []
  const others = required.filter((name): name is string => typeof name === 'string' && name !== key)
  const wantsDescription = others.includes('description')
  const filled = others
    .filter(name => name !== 'description')
    .map(name => `, ${JSON.stringify(name)}: ${dumpJson(instanceOf(properties[name], name))}`)
    .join('')
  const head = `{${JSON.stringify(key)}: `
  const shape = commandShape(properties[key], key)
  const after = wantsDescription ? `${shape.after}, "description": "` : `${shape.after}${filled}}`
  return {
    name: tool.name,
    key,
    opening: head + shape.before,
    closing: wantsDescription ? [after, `"${filled}}`] : [after],
    escapes: key === 'input' ? 2 : 1,
  }
}

function commandShape(schema: unknown, key: string): { readonly before: string; readonly after: string } {
  // A free-form tool takes source code that calls the real shell.
  if (key === 'input') {
    return {
      before: '"const result = await tools.exec_command({cmd: \\"',
      after: '\\"}); text(result.output);"',
    }
  }
  return typeOf(schema) === 'array' ? { before: '["bash", "-lc", "', after: '"]' } : { before: '"', after: '"' }
}

/** `<tool_call>` ... `</tool_call>` for a shell command. `command` begins and ends with a letter. */
export function shellCall(tool: ShellTool, command: Part, description: Part): Part {
  const change = tool.escapes === 1 ? jsonEscape : (text: string) => jsonEscape(jsonEscape(text))
  const [closing, end] = tool.closing
  const opening = `<tool_call>\n{"name": ${JSON.stringify(tool.name)}, "arguments": ${tool.opening}`
  const finish = '}\n</tool_call>'
  return end === undefined
    ? sequence(opening, mapTexts(command, change), closing + finish)
    : sequence(opening, mapTexts(command, change), closing, mapTexts(description, jsonEscape), end + finish)
}

/** A call with the given arguments, written whole. */
export const plainCall = (name: string, args: Readonly<Record<string, unknown>>): string =>
  `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${dumpJson(args)}}\n</tool_call>`

/** A value that fits a JSON schema: what is required and nothing else. */
export function instanceOf(schema: unknown, key = ''): unknown {
  if (!isObject(schema)) return `some ${key || 'text'}`
  for (const given of ['const', 'default']) if (schema[given] !== undefined) return schema[given]
  if (Array.isArray(schema['enum']) && schema['enum'].length > 0) return schema['enum'][0]
  for (const union of ['anyOf', 'oneOf', 'allOf']) {
    const options = schema[union]
    if (Array.isArray(options) && options.length > 0) return instanceOf(options[0], key)
  }
  switch (typeOf(schema)) {
    case 'object': {
      const properties = isObject(schema['properties']) ? schema['properties'] : {}
      const required = Array.isArray(schema['required']) ? schema['required'].map(String) : []
      return Object.fromEntries(required.map(name => [name, instanceOf(properties[name], name)]))
    }
    case 'array':
      return Number(schema['minItems'] ?? 0) > 0 ? [instanceOf(schema['items'], key)] : []
    case 'boolean':
      return false
    case 'integer':
      return typeof schema['minimum'] === 'number' ? schema['minimum'] : 1
    case 'number':
      // Mostly how sure one is, from 0 to 1: a harness that asks whether the agent runs in circles would stop it at 1.
      return typeof schema['minimum'] === 'number' ? schema['minimum'] : 0
    case 'null':
      return null
    default:
      return `some ${key || 'text'}`
  }
}

/** Lower case; Gemini writes its types in capitals. A list of types stands for its first that is not null. */
export function typeOf(schema: unknown): string {
  if (!isObject(schema)) return 'string'
  const given = schema['type']
  const type = Array.isArray(given) ? given.find(name => name !== 'null') : given
  if (typeof type === 'string') return type.toLowerCase()
  return isObject(schema['properties']) ? 'object' : 'string'
}

/** A short description of a command, for tools that want one. */
export const DESCRIPTIONS = {
  look: phrase('{List|Show} the {files|repository files|project files}'),
  read: phrase('{Read|Show|Print} the {source and the test|relevant files|code}'),
  write: phrase('{Write|Apply} the {fix|correction|change}'),
  test: phrase('{Run|Execute} the {test suite|tests|project tests}'),
} satisfies Record<string, Part>

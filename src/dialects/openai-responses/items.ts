// Output items of a response: one function per kind, used by the whole answer and by the stream, so that both give the same items under the
// same ids. The kind of a call follows the tool's declaration (case responses-response-3).

import type { ToolCall } from '../../domain/conversation.js'
import type { Json, JsonObject } from '../../domain/json.js'
import { argumentsObject, callAsText } from '../shared/answer.js'
import { sealText } from '../shared/base64.js'
import { type DeclaredTool, declaredTool } from './tools.js'

/** What all items of one response share. */
export interface ItemContext {
  /** Completion id without prefix; items are `rs_<stem>_<output index>` and the like. */
  readonly stem: string
  readonly echo: JsonObject
}

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

/** `encrypted_content` (asked for by `include`) carries the text once more: clients that drop the summary keep it. */
export function reasoningItem({ stem, echo }: ItemContext, index: number, text: string | null): JsonObject {
  return {
    id: `rs_${stem}_${index}`,
    type: 'reasoning',
    summary: text === null ? [] : [{ type: 'summary_text', text }],
    ...(echo['encrypted'] === true && { encrypted_content: text === null ? null : sealText(text) }),
  }
}

export function messageItem({ stem }: ItemContext, index: number, text: string | null, status: ItemStatus): JsonObject {
  return {
    id: `msg_${stem}_${index}`,
    type: 'message',
    status,
    role: 'assistant',
    content: text === null ? [] : [textContent(text)],
  }
}

export const textContent = (text: string): JsonObject => ({ type: 'output_text', text, annotations: [], logprobs: [] })

/** Id prefix by kind. */
const PREFIX = { function: 'fc', custom: 'ctc', local_shell: 'lsh', shell: 'sh' } as const

/**
 * A call as its declared kind. A custom tool's input is the raw text of the string `input`; arguments of any other form pass as they are.
 * A shell call that names no command becomes a message holding the call as text.
 */
export function callItem(context: ItemContext, index: number, call: ToolCall, cut: boolean): JsonObject {
  const declared = declaredTool(context.echo, call.name)
  const status: ItemStatus = cut ? 'incomplete' : 'completed'
  const head = callHead(context, index, call, declared, status)
  switch (declared.kind) {
    case 'function':
      return { ...head, arguments: call.arguments }
    case 'custom':
      return { ...head, input: customInput(call.arguments, cut) }
    case 'local_shell':
    case 'shell': {
      const action = shellAction(declared.kind, argumentsObject(call.arguments, cut))
      return action === null ? messageItem(context, index, callAsText(call, cut), status) : { ...head, action }
    }
  }
}

/** The fields of a call item that are known when the call starts. */
export function callHead(
  { stem }: ItemContext,
  index: number,
  call: Pick<ToolCall, 'id' | 'name'>,
  declared: DeclaredTool,
  status: ItemStatus,
): JsonObject {
  const { kind, name, namespace } = declared
  const type = kind === 'custom' ? 'custom_tool_call' : kind === 'function' ? 'function_call' : `${kind}_call`
  const isNamed = kind === 'function' || kind === 'custom'
  return {
    id: `${PREFIX[kind]}_${stem}_${index}`,
    type,
    status,
    call_id: call.id,
    ...(isNamed && { name }),
    ...(namespace !== undefined && { namespace }),
  }
}

/** Raw input of a custom call. */
export function customInput(text: string, cut: boolean): string {
  const input = argumentsObject(text, cut)?.['input']
  return typeof input === 'string' ? input : text
}

/** `exec` action of `local_shell`, commands of `shell`; null when the arguments name no command. */
function shellAction(kind: 'local_shell' | 'shell', args: JsonObject | null): JsonObject | null {
  const command = args?.['command'] ?? args?.['commands'] ?? args?.['cmd']
  const list = typeof command === 'string' ? [command] : stringArray(command)
  if (args === null || list === null || list.length === 0) return null
  if (kind === 'shell') {
    return {
      commands: list,
      timeout_ms: args['timeout_ms'] ?? null,
      max_output_length: args['max_output_length'] ?? null,
    }
  }
  return {
    type: 'exec',
    command: typeof command === 'string' ? ['bash', '-lc', command] : list,
    env: {},
    ...(args['timeout_ms'] !== undefined && { timeout_ms: args['timeout_ms'] }),
    ...(args['working_directory'] !== undefined && { working_directory: args['working_directory'] }),
  }
}

const stringArray = (value: Json | undefined): readonly string[] | null =>
  Array.isArray(value) && value.every(item => typeof item === 'string') ? (value as readonly string[]) : null

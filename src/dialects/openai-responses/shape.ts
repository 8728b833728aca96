// The fields of a Responses request that are read, or have no effect on prompt and sampling. All others are losses.

import type { JsonObject } from '../../domain/json.js'
import { wordOf } from '../shared/fields.js'
import { type Fields, free, type Shape } from '../shared/unread.js'

const PART: Fields = {
  ...free('type text refusal detail prompt_cache_breakpoint'),
  image_url: free('url'),
}

/** Parts of an output, where it is none of free JSON. */
const outputPart = (node: JsonObject): Shape =>
  typeof node['type'] === 'string' && node['type'].includes('_') ? PART : 'free'

const TEXTS: Fields = free('type text')
const OUTPUT: Fields = { call_id: 'free', output: outputPart }

/** Fields by type of item, beside those that all have. A type without an entry is a loss as a whole. */
const ITEMS: Readonly<Record<string, Fields>> = {
  message: { role: 'free', content: PART },
  reasoning: { encrypted_content: 'free', summary: TEXTS, content: TEXTS },
  function_call: free('call_id name arguments namespace'),
  custom_tool_call: free('call_id name input namespace'),
  local_shell_call: { call_id: 'free', action: free('type command working_directory timeout_ms') },
  shell_call: { call_id: 'free', action: free('commands timeout_ms max_output_length') },
  function_call_output: OUTPUT,
  custom_tool_call_output: OUTPUT,
  local_shell_call_output: OUTPUT,
  shell_call_output: { call_id: 'free', output: 'free' },
  agent_message: { author: 'free', content: PART },
  additional_tools: { role: 'free', tools: tool },
}

/** Codex's built-in provider adds its own note to every item. */
const COMMON = free('type id status internal_chat_message_metadata_passthrough')
const WHOLE = new Map(Object.entries(ITEMS).map(([type, own]): [string, Fields] => [type, { ...COMMON, ...own }]))

function item(node: JsonObject): Shape {
  return WHOLE.get(wordOf(node['type'] ?? 'message')) ?? 'free'
}

const TOOLS: Readonly<Record<string, Fields>> = {
  function: free('name description parameters strict input_schema'),
  custom: { ...free('name description'), format: free('type syntax definition') },
  namespace: { name: 'free', tools: tool },
  local_shell: {},
  shell: {},
}

const WHOLE_TOOLS = new Map(
  Object.entries(TOOLS).map(([type, own]): [string, Fields] => [type, { type: 'free', ...own }]),
)

function tool(node: JsonObject): Shape {
  return WHOLE_TOOLS.get(wordOf(node['type'] ?? 'function')) ?? 'free'
}

export const RESPONSES_SHAPE: Fields = {
  ...free('model instructions stream temperature top_p max_output_tokens parallel_tool_calls n include truncation'),
  // Refused before, or settled.
  ...free('previous_response_id conversation prompt background'),
  // Storage, billing, caching, tracing.
  ...free('store metadata user safety_identifier service_tier client_metadata _proxy_session_id'),
  ...free('prompt_cache_key prompt_cache_options prompt_cache_retention'),
  stream_options: free('include_obfuscation'),
  input: item,
  tools: tool,
  tool_choice: free('type name namespace mode'),
  reasoning: free('effort summary'),
  text: { format: free('type name schema strict') },
}

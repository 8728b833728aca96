// The fields of a Messages request that are read, or have no effect on prompt and sampling. All others are losses.

import type { JsonObject } from '../../domain/json.js'
import { wordOf } from '../shared/fields.js'
import { type Fields, free, type Shape } from '../shared/unread.js'

const SOURCE = free('type data media_type url')

/** Fields by type of block, beside those that all have. A type without an entry is a loss as a whole. */
const BLOCKS: Readonly<Record<string, Fields>> = {
  text: free('text'),
  // Signatures are ours or mean nothing to the engine.
  thinking: free('thinking signature'),
  image: { source: SOURCE },
  document: { source: SOURCE },
  search_result: { ...free('title source'), content: block },
  tool_use: free('id name input'),
  tool_result: { ...free('tool_use_id is_error'), content: block },
  tool_reference: free('tool_name'),
}

const COMMON = free('type cache_control')
const WHOLE = new Map(Object.entries(BLOCKS).map(([type, own]): [string, Fields] => [type, { ...COMMON, ...own }]))

function block(node: JsonObject): Shape {
  return WHOLE.get(wordOf(node['type'])) ?? 'free'
}

export const MESSAGES_SHAPE: Fields = {
  ...free('model max_tokens temperature top_p top_k stop_sequences stream'),
  // Billing, caching, tracing.
  ...free('metadata service_tier cache_control _proxy_session_id'),
  system: block,
  messages: { role: 'free', content: block },
  tools: free('type name description input_schema strict defer_loading cache_control eager_input_streaming'),
  tool_choice: free('type name disable_parallel_tool_use'),
  thinking: free('type'),
  output_config: { effort: 'free', format: free('type schema') },
  output_format: free('type schema'),
}

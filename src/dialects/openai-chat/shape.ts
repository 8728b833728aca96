// The fields of a Chat Completions request that are read, or have no effect on prompt and sampling. All others are losses.

import { type Fields, free } from '../shared/unread.js'

const CACHING = free('prompt_cache_breakpoint cache_control')

const PART: Fields = { ...free('type text refusal'), ...CACHING, image_url: free('url detail') }

const MESSAGE: Fields = {
  ...free('role tool_call_id reasoning_content reasoning'),
  ...CACHING,
  content: PART,
  tool_calls: { ...free('id type index'), function: free('name arguments') },
}

const FUNCTION: Fields = free('name description parameters strict input_schema')

export const CHAT_SHAPE: Fields = {
  ...free('model stream temperature top_p top_k min_p presence_penalty frequency_penalty'),
  ...free('max_tokens max_completion_tokens seed stop n parallel_tool_calls reasoning_effort response_format'),
  // Read one by one by the decoder.
  ...free('chat_template_kwargs'),
  // The gateway's own: its values, not the caller's, reach the engine.
  ...free('logprobs top_logprobs return_token_ids _proxy_session_id'),
  // Storage, billing, caching, tracing.
  ...free(
    'store user metadata safety_identifier prompt_cache_key prompt_cache_options prompt_cache_retention service_tier',
  ),
  stream_options: free('include_usage include_obfuscation continuous_usage_stats'),
  messages: MESSAGE,
  tools: { type: 'free', ...CACHING, ...FUNCTION, function: FUNCTION },
  tool_choice: { ...free('type name mode'), function: free('name'), allowed_tools: free('mode') },
}

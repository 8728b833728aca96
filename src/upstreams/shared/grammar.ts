// Whether a server draws the answer under a grammar: vLLM and SGLang mask what does not fit before they sample. The logprobs of such
// an answer are not the policy's own: vLLM's are of what the mask left, others' are of what was not masked and not drawn from either.

import type { CanonicalRequest } from '../../domain/conversation.js'

/**
 * What of the request makes vLLM and SGLang constrain the answer; null = they draw freely. Strict tools count under `auto` too: both
 * mask what stands inside a call to one (vLLM since 0.24). What an operator has set at the server itself is not seen here.
 */
export function grammarOf({ responseFormat, tools, toolChoice }: CanonicalRequest): string | null {
  if (responseFormat !== undefined && responseFormat['type'] !== 'text') return 'response_format'
  if (tools.length === 0 || toolChoice?.type === 'none') return null
  if (toolChoice?.type === 'required' || toolChoice?.type === 'function') return 'tool_choice'
  return tools.some(({ strict }) => strict === true) ? 'strict_tools' : null
}

// The rules of src/domain/rules.ts that decoders apply, by the names this room uses.

import type { RuleName } from '../../domain/rules.js'

export const RULES = {
  billingLine: 'billing_line_stripped',
  noticeInResult: 'notice_folded_into_tool_result',
  noticeAsUser: 'notice_as_user_message',
  resultsFirst: 'results_before_text',
  toolError: 'tool_error_marked',
  resultImages: 'result_images_moved',
  thinkingFlattened: 'thinking_order_flattened',
  reasoningRestored: 'reasoning_restored',
  visibleNote: 'visible_note_removed',
  deferredTools: 'deferred_tools_inlined',
  omitted: 'content_omitted',
} as const satisfies Record<string, RuleName>

export type Rule = (typeof RULES)[keyof typeof RULES]

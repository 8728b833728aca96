// Names of the rules by which a decoder writes something else than the harness sent. They go to the record (`rulesApplied`), so that every
// difference between the harness's prompt and the engine's is explained. Names are stable: trainers filter by them.

export const RULES = {
  /** A line `x-anthropic-billing-header: ...` was taken out of the system text: it changes with each request. */
  billingLine: 'billing_line_stripped',
  /** A system or developer message after tool results was appended to the last of them, so that the template's "last user query" stays. */
  noticeInResult: 'notice_folded_into_tool_result',
  /** A system or developer message in mid-list became a user message at its place. */
  noticeAsUser: 'notice_as_user_message',
  /** Text that stood between a call and its results was put after them. */
  resultsFirst: 'results_before_text',
  /** A result marked as an error got the marker `[Tool Error]`. */
  toolError: 'tool_error_marked',
  /** Images in tool results were put in a user message after the results, labelled with their call. */
  resultImages: 'result_images_moved',
  /** Thinking that stood between or after calls was joined to one text before them. */
  thinkingFlattened: 'thinking_order_flattened',
  /** Thinking the harness dropped was read back from the signature or the encrypted content of ours that it kept. */
  reasoningRestored: 'reasoning_restored',
  /** A line of ours that only made an empty answer visible was taken out of the history. */
  visibleNote: 'visible_note_removed',
  /** Deferred tools were kept out of the tool list and written where the harness referred to them. */
  deferredTools: 'deferred_tools_inlined',
  /** Content that no text model takes (PDF, audio, ...) was replaced by a line that names it. */
  omitted: 'content_omitted',
} as const

export type Rule = (typeof RULES)[keyof typeof RULES]

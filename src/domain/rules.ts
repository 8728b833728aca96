// Every rule by which the gateway sends the engine something else than the harness wrote: what it does, why, and what happens when the
// config switches it off (`rules: { name: false }`). Each call's record names those that changed its prompt (`rulesApplied`), and each
// session's result counts them (`trajectory.metadata.ledger.rules`). Names are stable: trainers filter by them.

export interface RuleText {
  readonly does: string
  readonly why: string
  readonly off: string
}

export const PROMPT_RULES = {
  billing_line_stripped: {
    does: 'takes the line "x-anthropic-billing-header: ..." out of the system text',
    why: 'it changes with each request, so that no prompt would extend the one before',
    off: 'the line stays',
  },
  notice_folded_into_tool_result: {
    does: 'appends a system or developer message after tool results to the last of them',
    why: 'templates with a "last user query" rule (Qwen3) strip the thinking of the tool loop at any other place',
    off: 'it follows the results as a user message',
  },
  notice_as_user_message: {
    does: 'makes a system or developer message in mid-list a user message at its place',
    why: 'many templates refuse a system message that is not the first',
    off: 'it stays a system message at its place',
  },
  results_before_text: {
    does: 'puts text that stood between a call and its results after them',
    why: 'templates render results directly after their call',
    off: 'such a request is refused with 400, as the vendors do',
  },
  tool_error_marked: {
    does: 'puts "[Tool Error]" before a result marked as an error',
    why: 'templates have no place for the mark, and the model should see it',
    off: 'the mark is lost',
  },
  result_images_moved: {
    does: 'moves images of tool results to a user message after the results, labelled with their call',
    why: 'chat templates take text alone in tool messages',
    off: 'they stay in the tool message',
  },
  thinking_order_flattened: {
    does: 'joins thinking that stood between or after calls to one text before them',
    why: 'templates know one thinking text per turn',
    off: 'such a request is refused with 400',
  },
  reasoning_restored: {
    does: 'reads thinking that the harness dropped back from the signature or sealed text of ours that it kept',
    why: 'the model saw its thinking; without it the next prompt does not extend the answer',
    off: 'the turn goes without its thinking',
  },
  visible_note_removed: {
    does: 'takes out of the history a line of ours that only made an empty answer visible',
    why: 'the model did not write it',
    off: 'the line stays',
  },
  deferred_tools_inlined: {
    does: 'keeps deferred tools out of the tool list, and writes them where the harness refers to them',
    why: 'the tool list stands at the start of the prompt: a new tool there would change all that follows',
    off: 'they stand in the tool list from the start',
  },
  content_omitted: {
    does: 'puts a line that names it in place of content that no text model takes (PDF, audio, ...)',
    why: 'the turn can go on without it',
    off: 'such a request is refused with 400',
  },
  reasoning_reattached: {
    does: 'gives an echoed turn the recorded thinking that the harness left out',
    why: 'many harnesses replay text and calls only; the model saw its thinking',
    off: 'the turn goes with what thinking the harness sent',
  },
  arguments_restored: {
    does: 'gives echoed calls their recorded argument text, where it is equal as JSON',
    why: 'harnesses parse and print arguments again; other white space is other tokens',
    off: 'the arguments go as the harness sent them',
  },
  content_restored: {
    does: 'gives an echoed turn its recorded text, where only white space at its ends differs',
    why: 'harnesses trim',
    off: 'the text goes as the harness sent it',
  },
  call_ids_restored: {
    does: 'gives echoed calls and their results the recorded call ids',
    why: 'harnesses shorten ids; templates that print them would print others',
    off: 'the ids go as the harness sent them',
  },
  line_feeds_left_to_template: {
    does: 'sends an echoed turn without those line feeds at the ends of its text that the chat template writes itself',
    why: 'parsers that do not trim (vLLM) leave them in the text, and the template would write them twice; what the template writes is asked of the engine once',
    off: 'the text goes with them',
  },
  empty_turn_removed: {
    does: 'takes out an echoed turn that says nothing, was never recorded and stands directly before another turn',
    why: 'OpenCode leaves it behind a broken stream; the answer asked for again did not have it in its prompt',
    off: 'it stays',
  },
  max_tokens_clamped: {
    does: 'lowers max_tokens to what the context window or a limit of the task leaves',
    why: 'engines refuse a prompt whose answer might not fit',
    off: 'the number goes as asked, but for limits of the task',
  },
} as const satisfies Record<string, RuleText>

export type RuleName = keyof typeof PROMPT_RULES

/** Rules that the config switches off. */
export type RulesOff = ReadonlySet<string>

export const NO_RULES_OFF: RulesOff = new Set()

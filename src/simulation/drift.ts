// Ways to break the token prefix on purpose (`simulation.drift`, quickstart's `--drift`), by name. Imports nothing, so that the
// config can name them.

/** The first three are the policy's doing, the others the server's. */
export const DRIFT_FORMS = {
  two_line_feeds: 'the policy writes a line feed too many before a tool call; the template writes it without',
  compact_json: 'the policy writes tool arguments without spaces; the template prints them with spaces',
  bpe: 'the policy splits some words into other tokens than the tokenizer does: same text, other ids',
  hidden_reasoning: 'the server keeps the thinking to itself, so nobody can replay it',
  thinking_off:
    'the server switches thinking off: the generation prompt ends in an empty think block that no replay repeats',
  raw_whitespace:
    'the server leaves the line feeds around text in the content, as vLLM does; the template adds its own',
} as const

export type DriftForm = keyof typeof DRIFT_FORMS

export const isDriftForm = (name: string): name is DriftForm => Object.hasOwn(DRIFT_FORMS, name)

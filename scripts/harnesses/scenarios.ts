// What each real CLI is put through, and what must come out of it, CLI by CLI. Where a CLI fails by its own rules (the table "Errors and
// retries at a glance" of the harness book), that failure, its class and its accounts are what is expected.

import type { HarnessId } from '../../src/harnesses/registry.js'
import type { Expectation } from './expect.js'
import type { Fault } from './wire.js'

export type CliId = Exclude<HarnessId, 'shell'>

export interface Scenario {
  readonly name: string
  /** Of the simulation. */
  readonly script: string
  /** What happens to the generation of that number (from 0) among those that offer tools. */
  readonly fault?: (number: number, harness: CliId) => Fault | null
  readonly settings?: Partial<Record<CliId, Readonly<Record<string, unknown>>>>
  /** Shell commands before the harness starts, in its home. */
  readonly prepare?: Partial<Record<CliId, string>>
  /** One session for each; default one. */
  readonly seeds?: readonly number[]
  /** Of one answer. */
  readonly maxTokens?: number
  /** CLIs that cannot be put through it, and why. */
  readonly skip?: Partial<Record<CliId, string>>
  readonly limitMs: number
  readonly expect: (harness: CliId) => Expectation
}

const FINE: Omit<Expectation, 'basis'> = {
  status: 'COMPLETED',
  failureClass: null,
  failed: [0, 0],
  calls: 4,
  main: [1, 1],
  sub: [0, 0],
  side: {},
  joins: 'exact',
}
const RETRIES = 'harness book, "Errors and retries at a glance"'
const MINUTE = 60_000
const at =
  (place: number, fault: Fault) =>
  (number: number): Fault | null =>
    number === place ? fault : null
const engineError = (message: string, type: string, code: number) => ({ error: { message, type, param: null, code } })

/** Each scenario plays its fault at the second call with tools: in mid-run, with a history behind it. */
const MID_RUN = 1

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'turns',
    script: 'fix-calculator',
    limitMs: 3 * MINUTE,
    expect: () => ({ ...FINE, basis: 'harness book, section 1 (a run with tools ends well)' }),
  },
  {
    name: 'sub-agent',
    script: 'delegate',
    skip: { pi: 'it has no tool for sub-agents (harness book, section 9)' },
    limitMs: 3 * MINUTE,
    expect: delegation,
  },
  {
    name: 'rate-limit',
    script: 'fix-calculator',
    fault: at(MID_RUN, {
      kind: 'answer',
      // Without Retry-After, as engines answer: the gateway's own must reach the harness, or Codex ends at once.
      status: 429,
      body: engineError('too many requests', 'RateLimitError', 429),
    }),
    limitMs: 3 * MINUTE,
    expect: () => ({ ...FINE, basis: `${RETRIES}, 429; section 3, point 5 (Retry-After)`, failed: [1, 1] }),
  },
  {
    name: 'server-error',
    script: 'fix-calculator',
    fault: at(MID_RUN, {
      kind: 'answer',
      status: 500,
      body: engineError('the engine stumbled', 'InternalServerError', 500),
    }),
    limitMs: 3 * MINUTE,
    expect: () => ({ ...FINE, basis: `${RETRIES}, 500`, failed: [1, 1] }),
  },
  {
    name: 'slow',
    script: 'fix-calculator',
    fault: at(MID_RUN, { kind: 'delay', ms: 7_000 }),
    limitMs: 3 * MINUTE,
    expect: () => ({ ...FINE, basis: 'harness book, section 3, point 17 (silence limits)' }),
  },
  {
    name: 'cut',
    script: 'fix-calculator',
    fault: at(MID_RUN, { kind: 'cut', afterEvents: 6 }),
    limitMs: 3 * MINUTE,
    expect: cut,
  },
  {
    name: 'compaction',
    script: 'long-loop',
    // Codex compacts by usage alone; a context error ends it.
    fault: (number, harness) =>
      number === 8 && harness !== 'codex'
        ? {
            kind: 'answer',
            status: 400,
            body: engineError(
              "This model's maximum context length is 32768 tokens. However, you passed 40000 input tokens and requested 0 output tokens. Please reduce the length of the input prompt.",
              'BadRequestError',
              400,
            ),
          }
        : null,
    settings: { codex: { model_auto_compact_token_limit: 20_000 } },
    // By itself it keeps more than this chat has.
    prepare: {
      pi: 'mkdir -p "$HOME/.pi/agent" && echo \'{"compaction":{"enabled":true,"keepRecentTokens":500}}\' > "$HOME/.pi/agent/settings.json"',
    },
    limitMs: 4 * MINUTE,
    expect: compaction,
  },
  {
    name: 'drunk',
    script: 'drunk',
    // Between them: empty answers, unknown tools, broken calls, repetition to the limit, an unclosed think block.
    seeds: [1, 10, 12],
    maxTokens: 400,
    limitMs: 3 * MINUTE,
    expect: drunk,
  },
  {
    name: 'long-loop',
    script: 'long-loop',
    limitMs: 6 * MINUTE,
    expect: harness => ({
      ...FINE,
      basis: 'the issue, acceptance 6',
      calls: 31,
      turns: 30,
      ...(harness === 'gemini_cli' && {
        basis: 'the issue, acceptance 6; its check for loops: measured',
        side: { utility: [1, 1] as const },
        note: 'asks a small model after thirty turns whether it runs in circles',
      }),
    }),
  },
]

function delegation(harness: CliId): Expectation {
  const delegated: Expectation = {
    ...FINE,
    basis: `harness book, section ${SECTIONS[harness]}, sub-agent`,
    calls: 3,
    sub: [1, 1],
    // One that works beside its parent may be cut off at the parent's end.
    failed: [0, 1],
  }
  // Qwen3's template leaves out the thinking before the last user message.
  return harness === 'codex'
    ? { ...delegated, main: [1, 2], joins: null, note: "the sub-agent's result comes as a user message" }
    : delegated
}

function cut(harness: CliId): Expectation {
  const retried: Expectation = { ...FINE, basis: `${RETRIES}, cut stream`, failed: [1, 1] }
  if (harness === 'opencode')
    return {
      ...retried,
      basis: `${retried.basis}; section 8 (the broken turn stays in its history)`,
      note: 'keeps an empty turn of the broken stream, which the rule empty_turn_removed takes out',
    }
  // Told of the error in the stream it goes on; of a cut connection it would die. But it drops the turn and speaks as the user.
  return harness === 'gemini_cli'
    ? {
        ...retried,
        basis: 'harness book, section 6 (an error object in the stream is retried); how: measured',
        main: [1, 2],
        joins: null,
        note: 'goes on with a word as the user',
      }
    : retried
}

function drunk(harness: CliId): Expectation {
  const section = `harness book, section ${SECTIONS[harness]}`
  const survived: Expectation = {
    ...FINE,
    basis: `${section}; number of calls and traces: measured`,
    calls: 1,
    main: [1, 12],
    joins: null,
  }
  return harness === 'codex'
    ? {
        ...survived,
        basis: `${section} (response.incomplete ends it with exit 1)`,
        mayFail: /max_output_tokens/,
        note: 'an answer cut at the limit ends it',
      }
    : survived
}

function compaction(harness: CliId): Expectation {
  const compacted: Expectation = {
    ...FINE,
    basis: `decisions, section 6; ${RETRIES}, context error`,
    calls: 8,
    failed: [1, 1],
    main: [2, 5],
    side: { compaction: [1, 1] },
    joins: null,
  }
  switch (harness) {
    case 'codex':
      return {
        ...compacted,
        basis: 'decisions, section 6; harness book, section 5 (by usage alone)',
        failed: [0, 0],
        note: 'compacts by usage',
      }
    case 'gemini_cli':
      return {
        ...FINE,
        basis: `decisions, section 6 (the documented failure); ${RETRIES}, context error`,
        status: 'ERROR',
        failureClass: 'harness',
        calls: 8,
        failed: [1, 1],
        note: 'has no answer to a context error: it ends',
      }
    case 'qwen_code':
      return {
        ...compacted,
        basis: 'harness book, section 7 (one try at a context error); that this chat is long enough: measured',
        note: 'after the summary it asks with an answer of its own making at the end, and leaves that out later',
      }
    default:
      return compacted
  }
}

const SECTIONS: Readonly<Record<CliId, number>> = {
  claude_code: 4,
  codex: 5,
  gemini_cli: 6,
  qwen_code: 7,
  opencode: 8,
  pi: 9,
}

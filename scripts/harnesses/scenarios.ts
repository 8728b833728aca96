// What each real CLI is put through, and what must come out of it, CLI by CLI. Where a CLI fails by its own rules (the table "Errors and
// retries at a glance" of the harness book), that failure, its class and its accounts are what is expected.

import type { HarnessId } from '../../src/harnesses/registry.js'
import type { Fault } from './wire.js'

export type CliId = Exclude<HarnessId, 'shell'>

export interface Expectation {
  readonly status: 'COMPLETED' | 'ERROR'
  readonly failureClass: string | null
  /** In the session's error text. */
  readonly error?: RegExp
  /** Errors that some seeds lead this CLI to, by its own rules; such a session is ERROR, harness. */
  readonly mayFail?: RegExp
  /** Calls that gave no answer, at least and at most. */
  readonly failed: readonly [number, number]
  /** Calls of the main agent, at least. */
  readonly calls: number
  /** Traces of the main agent, at least and at most. */
  readonly main: readonly [number, number]
  readonly sub: readonly [number, number]
  readonly side: readonly [number, number]
  /** All joins of the main traces; null = any, since the run breaks prefixes on purpose. */
  readonly joins: 'exact' | null
  readonly note?: string
}

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
  readonly limitMs: number
  readonly expect: (harness: CliId) => Expectation
}

const FINE: Expectation = {
  status: 'COMPLETED',
  failureClass: null,
  failed: [0, 0],
  calls: 4,
  main: [1, 1],
  sub: [0, 0],
  side: [0, 0],
  joins: 'exact',
}
const MINUTE = 60_000
const at =
  (place: number, fault: Fault) =>
  (number: number): Fault | null =>
    number === place ? fault : null
const engineError = (message: string, type: string, code: number) => ({ error: { message, type, param: null, code } })

/** Each scenario plays its fault at the second call with tools: in mid-run, with a history behind it. */
const MID_RUN = 1

export const SCENARIOS: readonly Scenario[] = [
  { name: 'turns', script: 'fix-calculator', limitMs: 3 * MINUTE, expect: () => FINE },
  {
    name: 'sub-agent',
    script: 'delegate',
    limitMs: 3 * MINUTE,
    expect: delegation,
  },
  {
    name: 'rate-limit',
    script: 'fix-calculator',
    fault: at(MID_RUN, {
      kind: 'answer',
      status: 429,
      headers: { 'retry-after': '1' },
      body: engineError('too many requests', 'RateLimitError', 429),
    }),
    limitMs: 3 * MINUTE,
    expect: () => ({ ...FINE, failed: [1, 1] }),
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
    expect: () => ({ ...FINE, failed: [1, 1] }),
  },
  {
    name: 'slow',
    script: 'fix-calculator',
    fault: at(MID_RUN, { kind: 'delay', ms: 7_000 }),
    limitMs: 3 * MINUTE,
    expect: () => FINE,
  },
  {
    name: 'cut',
    script: 'fix-calculator',
    fault: at(MID_RUN, { kind: 'cut', afterEvents: 6 }),
    limitMs: 3 * MINUTE,
    expect: harness => ({
      ...FINE,
      failed: [1, 1],
      // Told of the error in the stream it goes on; of a cut connection it would die. But it drops the turn and speaks as the user.
      ...(harness === 'gemini_cli' && { main: [1, 2] as const, joins: null, note: 'goes on with a word as the user' }),
    }),
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
    expect: harness => ({
      ...FINE,
      calls: 1,
      main: [1, 12],
      joins: null,
      ...(harness === 'codex' && { mayFail: /max_output_tokens/, note: 'an answer cut at the limit ends it' }),
    }),
  },
  {
    name: 'long-loop',
    script: 'long-loop',
    limitMs: 6 * MINUTE,
    expect: harness => ({
      ...FINE,
      calls: 31,
      // After thirty turns it asks a small model whether it runs in circles.
      ...(harness === 'gemini_cli' && { side: [1, 2] as const }),
    }),
  },
]

function delegation(harness: CliId): Expectation {
  const delegated: Expectation = { ...FINE, calls: 3, sub: [1, 1], failed: [0, 1] }
  switch (harness) {
    case 'pi':
      return { ...FINE, calls: 3, note: 'has no sub-agent: the parent works alone' }
    case 'codex':
      // Qwen3's template leaves out the thinking before the last user message.
      return { ...delegated, main: [1, 2], joins: null, note: "the sub-agent's result comes as a user message" }
    default:
      return delegated
  }
}

function compaction(harness: CliId): Expectation {
  const compacted: Expectation = { ...FINE, calls: 8, failed: [1, 1], main: [2, 5], side: [0, 1], joins: null }
  switch (harness) {
    case 'codex':
      return { ...compacted, failed: [0, 0], note: 'compacts by usage' }
    case 'gemini_cli':
      return {
        ...FINE,
        status: 'ERROR',
        failureClass: 'harness',
        calls: 8,
        failed: [1, 1],
        note: 'has no answer to it',
      }
    default:
      return compacted
  }
}

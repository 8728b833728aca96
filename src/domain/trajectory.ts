// What a builder makes of a sealed ledger. Typed arrays inside; src/api/encode.ts writes the wire form.

import type { PolicySpan } from './completion.js'
import type { FinishReason } from './conversation.js'
import type { JsonObject } from './json.js'

export type JoinClass = 'exact' | 'retokenised' | 'rewritten'

export type BreakReason =
  | 'thinking_stripped'
  | 'arguments_reserialised'
  | 'whitespace'
  | 'generation_prompt'
  /** The answer holds a call whose arguments are no JSON object: what comes back in its place is what the harness made of it. */
  | 'tool_call_unparsed'
  | 'answer_edited'
  | 'history_rewritten'
  | 'unknown'

/** Why sampled tokens are not trained (trajectory.md, invariant 1). */
export type SetAsideReason =
  | 'abandoned_retry'
  | 'side_call'
  | 'aborted'
  | 'no_token_ids'
  | 'filtered'
  | 'over_length'
  | 'session_error'
  | 'session_timeout'
  | 'agent_timeout_unaligned'
  | 'containment_unproven'

export type JoinSetting = 'faithful' | 'lenient' | 'prompt_prefix'

/** The `ledger` object of every result. For a session: sampled = trained + sum of setAside. All counts in tokens unless named otherwise. */
export interface LedgerCounts {
  readonly calls: number
  readonly failedCalls: number
  readonly traces: number
  readonly tokens: {
    readonly sampled: number
    readonly trained: number
    readonly setAside: Partial<Record<SetAsideReason, number>>
  }
  /** What is `filtered` in more words: why the calls may not be trained -> their sampled tokens. */
  readonly notTrainable: Partial<Record<string, number>>
  readonly joins: Partial<Record<JoinClass, number>>
  readonly breaks: Partial<Record<BreakReason, number>>
  /** Named rule (src/domain/rules.ts) -> calls whose prompt it changed. */
  readonly rules: Partial<Record<string, number>>
  /** Rule that knew them (a preset's, or `shape:...`) -> side calls. */
  readonly sideCalls: Partial<Record<string, number>>
  /** What each join setting would have given of the same capture. */
  readonly alternatives: Record<
    JoinSetting,
    {
      readonly traces: number
      readonly trainerTokens: number
      readonly trainedTokens: number
      readonly contextIdsDiffering: number
    }
  >
  /** What one trace a call would send: every prompt again with each answer. */
  readonly perRequest: { readonly traces: number; readonly trainerTokens: number }
  /** What the reference system's own rule (prompt prefix, then a search for the end token) would have kept. */
  readonly reference: {
    readonly traces: number
    readonly keptTokens: number
    readonly lostTokens: number
    /** Kept, but behind a context the model never saw. */
    readonly misplacedTokens: number
  }
}

export interface TraceCall {
  readonly completionId: string
  /** null for the first call of the trace. */
  readonly join: JoinClass | null
  /** `[start, end)` in `responseIds`. */
  readonly start: number
  readonly end: number
  readonly policyVersionStart: string | null
  readonly policyVersionEnd: string | null
  /** `[start, end)` in the answer's own ids. */
  readonly policySpans?: readonly PolicySpan[]
  readonly startedAtMs: number
  readonly finishedAtMs: number
  readonly trained: boolean
  /** Why it is trained nowhere; null when it is trained, here or in another trace. */
  readonly setAside: SetAsideReason | null
  readonly finish: FinishReason
  readonly replica: string
  readonly promptTokens: number
  readonly cachedTokens: number
  readonly firstTokenAtMs: number | null
  /** Harness's own name of the (sub-)agent; null = main. */
  readonly agentId: string | null
  readonly sideRule: string | null
  /** Index of its answer in `responseMessages`; null where the record holds no message. */
  readonly messageIndex: number | null
}

export interface Trace {
  readonly promptIds: Int32Array
  readonly responseIds: Int32Array
  /** 0 or 1, same length as `responseIds`. */
  readonly lossMask: Uint8Array
  /** The mask as it was built, where the whole session was masked. */
  readonly discardedLossMask?: Uint8Array
  /** Real where the mask (or the discarded mask) is 1, else 0; never NaN. Same length as `responseIds`. */
  readonly responseLogprobs: Float32Array
  readonly promptMessages: readonly JsonObject[]
  readonly responseMessages: readonly JsonObject[]
  readonly tools: readonly JsonObject[] | null
  readonly finishReason: string | null
  readonly reward: number | null
  readonly agent: 'main' | 'sub' | 'side'
  readonly agentId: string | null
  /** Why this trace starts where it does; null for a root. */
  readonly breakReason: BreakReason | null
  readonly calls: readonly TraceCall[]
  readonly metadata: JsonObject
}

export type TrajectoryStatus = 'COMPLETED' | 'TIMEOUT' | 'ERROR'

export interface Trajectory {
  readonly status: TrajectoryStatus
  readonly error: string | null
  readonly builder: string
  readonly traces: readonly Trace[]
  readonly ledger: LedgerCounts
  readonly recordCount: number
  readonly metadata: JsonObject
}

// What a probe of an inference server found, as plain data, and the verdict that follows from it. A fault makes the server fit for
// evaluation only; a warning costs quality, never truth.

export type ProbeCheck =
  | 'reachable'
  | 'token_ids'
  | 'stop_id'
  | 'logprobs'
  | 'streaming'
  | 'logprob_semantics'
  | 'sampling'
  | 'defaults'
  | 'tool_calls'
  | 'reasoning'
  | 'joins'
  | 'tokenizer'
  | 'context_limit'
  | 'unknown_fields'
  | 'prefix_cache'
  | 'replicas'
  | 'time'

export interface ProbeFinding {
  readonly check: ProbeCheck
  readonly outcome: 'ok' | 'note' | 'warning' | 'fault'
  /** Name of what is wrong, snake_case; null where nothing is. */
  readonly reason: string | null
  /** What was seen, one sentence. */
  readonly seen: string
  /** What to change, with the server's own flag; null = nothing to change. */
  readonly cure: string | null
}

/** Measured properties; null = not known. */
export interface ProbeFacts {
  readonly models: readonly string[]
  /** Tokens. */
  readonly window: number | null
  readonly endTokenId: number | null
  readonly logprobs: 'raw' | 'processed' | null
  /** What the server draws with when a request names nothing; null where that shows no difference from 1, 1, off. */
  readonly defaults: { readonly temperature: number | null; readonly cut: string | null } | null
  readonly streamsIds: boolean
  readonly hasTokenizer: boolean
  /** Mildest cuts that the draws would have shown, had they been applied. */
  readonly wouldShow: readonly string[]
}

export const UNKNOWN_FACTS: ProbeFacts = {
  models: [],
  window: null,
  endTokenId: null,
  logprobs: null,
  defaults: null,
  streamsIds: false,
  hasTokenizer: false,
  wouldShow: [],
}

export type ProbeVerdict = 'trainable' | 'evaluation_only' | 'unreachable'

export interface ProbeReport {
  readonly urls: readonly string[]
  readonly profile: string
  readonly model: string
  readonly verdict: ProbeVerdict
  /** Names of the faults, in the order of the checks; empty when trainable. */
  readonly reasons: readonly string[]
  readonly findings: readonly ProbeFinding[]
  readonly facts: ProbeFacts
  readonly calls: number
  readonly durationMs: number
}

export const ok = (check: ProbeCheck, seen: string): ProbeFinding => ({
  check,
  outcome: 'ok',
  reason: null,
  seen,
  cure: null,
})
export const note = (check: ProbeCheck, seen: string, cure: string | null = null): ProbeFinding => ({
  check,
  outcome: 'note',
  reason: null,
  seen,
  cure,
})
export const warning = (check: ProbeCheck, reason: string, seen: string, cure: string | null): ProbeFinding => ({
  check,
  outcome: 'warning',
  reason,
  seen,
  cure,
})
export const fault = (check: ProbeCheck, reason: string, seen: string, cure: string | null): ProbeFinding => ({
  check,
  outcome: 'fault',
  reason,
  seen,
  cure,
})

/** Faults decide. */
export function verdictOf(findings: readonly ProbeFinding[]): Pick<ProbeReport, 'verdict' | 'reasons'> {
  const faults = findings.filter(({ outcome }) => outcome === 'fault')
  const reasons = [...new Set(faults.flatMap(({ reason }) => (reason === null ? [] : [reason])))]
  if (faults.some(({ check }) => check === 'reachable')) return { verdict: 'unreachable', reasons }
  return { verdict: faults.length === 0 ? 'trainable' : 'evaluation_only', reasons }
}

// The compiled config: plain data, sizes in numbers, so that it reaches every thread. compile.ts makes it; nobody changes it.

import type { RuntimeSpec } from '../domain/task.js'

export interface UpstreamPlan {
  readonly id: string
  readonly profile: string
  readonly urls: readonly string[]
  readonly modelServed: string
  readonly concurrency: number
  readonly history: 'messages' | 'tokens'
  /** Folder with tokenizer.json and tokenizer_config.json, or `qwen3` for the bundled one; null = ask the engine. */
  readonly tokenizer: string | null
  /** Sampling the engine applies when a request names none; null = not known. */
  readonly sampling: Readonly<Record<string, number>>
  /** Tokens; null = not known. */
  readonly contextWindow: number | null
  /** `start`: probed when the service starts, and what it gives is trained on only when it passes. `off`: taken as it is. */
  readonly probe: 'start' | 'off'
  /** Calls drawn under a grammar are trained on like others. Absent = they are set aside. */
  readonly trainConstrained?: boolean
  /** Sent as `Authorization: Bearer`; masked wherever a plan is shown. Absent or null = none. */
  readonly apiKey?: string | null
}

export interface ModelAlias {
  readonly upstream: string
  readonly adapter: string | null
  readonly trainable: boolean
}

export interface LimitsPlan {
  readonly queuedSessions: number
  readonly samplesPerTask: number
  readonly inflightPerSession: number
  readonly admissionTimeoutMs: number
  readonly creditRecords: number
  readonly creditBytes: number
  readonly sessionCredit: number
  readonly bodyBytes: number
  readonly mailbox: number
  readonly drainMs: number
  readonly eventQueue: number
  readonly outputBytes: number
  readonly sessionBytes: number
}

export interface SimulationPlan {
  readonly port: number
  readonly modelName: string
  /** Further served names: the adapters that aliases name. Absent = none. */
  readonly adapters?: readonly string[]
  readonly contextWindow: number
  /** Of requests that bring no seed of their own. */
  readonly seed: number
  /** Milliseconds: prefill per 1,000 prompt tokens, decode per token. 0 = as fast as it goes. */
  readonly prefillMsPer1k: number
  readonly decodeMsPerToken: number
  /** Probability that a sample writes the right fix. */
  readonly solveProbability: number
  /** Named prefix breaks of the policy (`--drift`); empty = none. */
  readonly drift: readonly string[]
  /** What logprobs are of: the policy's own distribution (default), or that after temperature and cuts. */
  readonly logprobsMode?: 'raw_logprobs' | 'processed_logprobs'
  /** Whose wire it speaks; default vllm. */
  readonly wire?: 'vllm' | 'sglang'
  /** Planted shortcomings (src/simulation/faults.ts), each `name` or `name@call`; none by default. */
  readonly faults?: readonly string[]
}

export interface StorePlan {
  /** Of the records of all pairs together; finished sessions go when it is wanted. */
  readonly maxBytes: number
  /** How long a finished session's records stay at the most. */
  readonly retentionMs: number
}

export interface Plan {
  readonly nodeId: string
  readonly control: { readonly host: string; readonly port: number; readonly publicUrl: string | null }
  readonly gateway: {
    readonly host: string
    readonly port: number
    readonly publicUrl: string | null
    readonly proxies: number
  }
  readonly upstreams: readonly UpstreamPlan[]
  /** Alias -> upstream. `default` is always there. */
  readonly models: Readonly<Record<string, ModelAlias>>
  /** Rules of src/domain/rules.ts that are switched off. Absent = all are on. */
  readonly rulesOff?: readonly string[]
  /** Counts of sessions. */
  readonly stages: { readonly init: number; readonly ready: number; readonly running: number; readonly postrun: number }
  readonly limits: LimitsPlan
  readonly budgets: {
    readonly buildMs: number
    readonly evaluateMs: number
    readonly teardownMs: number
    readonly callbackAttemptMs: number
    readonly callbackExpiryMs: number
  }
  readonly defaultRuntime: RuntimeSpec | null
  /** Result files; null = none written. */
  readonly saveDir: string | null
  readonly stateDir: string
  /** The store below stateDir. Absent = records live and die with their thread. */
  readonly store?: StorePlan
  readonly cacheDir: string
  readonly security: {
    readonly token: string | null
    readonly openRoutes: readonly string[]
    readonly callbackHosts: readonly string[]
    /** Sent with each result, so that a receiver knows its sender. Absent or null = none. */
    readonly callbackToken?: string | null
    readonly sourceRoots: readonly string[]
  }
  /**
   * The part of the service's own environment that child processes may be built from: PATH, HOME, locale, time zone, proxies and
   * certificates. No tokens. Only load.ts reads `process.env`.
   */
  readonly hostEnvironment: Readonly<Record<string, string>>
  readonly compat: { readonly unknownKeys: 'refuse' | 'warn' }
  readonly retention: { readonly artifactsMs: number; readonly resultsMs: number; readonly results: number }
  /** Where the service kills itself (src/observability/failpoints.ts), for tests. Absent = nowhere. */
  readonly failpoint?: string | null
  /** null = no embedded inference server. */
  readonly simulation: SimulationPlan | null
}

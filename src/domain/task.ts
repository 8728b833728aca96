// A task as the trainer states it. These types keep the wire's names (snake_case): what they hold is passed on and given back
// unchanged. src/api/schema.ts parses them; every default is already filled in.

import type { JsonObject } from './json.js'

export type PrepareAction =
  | { readonly type: 'upload_file' | 'upload_dir'; readonly source: string; readonly target: string }
  | {
      readonly type: 'exec'
      readonly command: string
      readonly cwd?: string
      readonly env?: Readonly<Record<string, string>>
      readonly max_attempts: number
      readonly retry_backoff_seconds: number
    }

export interface RuntimeSpec {
  readonly backend: string
  readonly image: string | null
  readonly prepare: readonly PrepareAction[]
  readonly eval_prepare: readonly PrepareAction[] | null
  readonly env: Readonly<Record<string, string>>
  readonly network: string
  readonly workdir: string | null
  readonly direct_exec_init_command: string | null
  readonly cpus: number | null
  readonly memory_mb: number | null
  readonly storage_mb: number | null
  readonly gpus: number
  readonly allow_internet: boolean
  readonly internet_volumes: readonly string[]
  readonly import_path: string | null
  readonly kwargs: JsonObject
}

export interface ExecInput {
  readonly command: string
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

export interface McpServer {
  readonly name: string
  readonly transport: 'stdio' | 'sse' | 'streamable-http'
  readonly command?: string
  readonly args?: readonly string[]
  readonly url?: string
}

export interface AgentSpec {
  readonly harness: string | null
  readonly import_path: string | null
  readonly model_name: string | null
  readonly settings: JsonObject
  readonly env: Readonly<Record<string, string>>
  readonly mcp_servers: readonly McpServer[]
  readonly skills_path: string | null
  readonly custom_shell: ExecInput | null
}

export interface StrategySpec {
  readonly strategy: string
  readonly config: JsonObject
}

export interface EvaluatorSpec {
  readonly strategy: string
  readonly config: JsonObject
  readonly env: Readonly<Record<string, string>>
  /** null = not said: true for patch evaluators on runtime `local` (decisions.md, section 4). */
  readonly refresh_runtime: boolean | null
}

/** A sampling parameter as the task sets it (decisions.md, section 2). */
export interface SamplingRule {
  readonly value: number
  readonly mode: 'force' | 'default' | 'pass'
}
export type SamplingName =
  | 'temperature'
  | 'top_p'
  | 'top_k'
  | 'min_p'
  | 'presence_penalty'
  | 'frequency_penalty'
  | 'max_tokens'
  | 'seed'
export type SamplingSpec = Partial<Record<SamplingName, SamplingRule>>

export interface TaskLimits {
  readonly max_turns: number | null
  readonly max_input_tokens: number | null
  readonly max_output_tokens: number | null
  readonly max_total_tokens: number | null
  readonly context_window: number | null
}

export interface TaskRequest {
  readonly task_id: string
  readonly instruction: string
  readonly num_samples: number
  readonly dispatch_priority: number
  readonly early_stop_min_usable_sessions: number | null
  readonly timeout_seconds: number
  readonly runtime: RuntimeSpec | null
  readonly agent: AgentSpec
  readonly builder: StrategySpec
  readonly evaluator: EvaluatorSpec | null
  readonly callback_url: string | null
  /** What the callback holds: every result in full, or where each can be fetched. */
  readonly callback_results: 'full' | 'references'
  readonly metadata: JsonObject
  readonly sampling: SamplingSpec
  readonly limits: TaskLimits
  /** Model name or glob -> alias of `models` in the config. */
  readonly models: Readonly<Record<string, string>>
}

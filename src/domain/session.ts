// One rollout of a task: its spec (what to do), its status words and its result. Status words and timing keys are the wire's.

import type { SessionId, TaskId } from './ids.js'
import type { JsonObject } from './json.js'
import type { AgentSpec, EvaluatorSpec, RuntimeSpec, SamplingSpec, StrategySpec, TaskLimits } from './task.js'
import type { Trajectory } from './trajectory.js'

export type LiveStatus = 'REGISTERED' | 'INITIALIZING' | 'READY' | 'RUNNING' | 'POST_RUN' | 'BUILDING' | 'EVALUATING'
export type TerminalStatus = 'COMPLETED' | 'ERROR' | 'TIMEOUT'
export type SessionStatus = LiveStatus | TerminalStatus

export const isTerminal = (status: SessionStatus): status is TerminalStatus =>
  status === 'COMPLETED' || status === 'ERROR' || status === 'TIMEOUT'

/** Whose fault a bad rollout is (decisions.md, section 2). */
export type FailureClass = 'policy' | 'harness' | 'environment' | 'infrastructure' | 'grader'

/** Everything one session needs, resolved from its task and the plan. Plain data. */
export interface SessionSpec {
  readonly sessionId: SessionId
  readonly taskId: TaskId
  readonly sampleIndex: number
  readonly instruction: string
  readonly priority: number
  readonly timeoutSeconds: number
  /** `metadata.agent_timeout`, seconds. */
  readonly agentTimeoutSeconds: number | null
  readonly runtime: RuntimeSpec
  readonly agent: AgentSpec
  readonly builder: StrategySpec
  readonly evaluator: EvaluatorSpec | null
  readonly sampling: SamplingSpec
  /** Base seed of this sample (`eval_sampling_seed_base` + index, or `sampling.seed` + index); null = none. */
  readonly samplingSeed: number | null
  readonly limits: TaskLimits
  readonly models: Readonly<Record<string, string>>
  readonly metadata: JsonObject
}

/** Agent run (contract 8.1). `returnCode` -1 = stopped by its time limit. */
export interface AgentResult {
  readonly status: 'completed' | 'failed' | 'timeout'
  readonly returnCode: number | null
  readonly error: string | null
  readonly timeoutSource: 'agent' | 'session' | null
  readonly timeoutStage: 'init' | 'setup' | 'exec' | 'postprocess' | null
  readonly harnessVersion: string | null
  readonly metadata: JsonObject
}

/** What an evaluator says (contract 3.5), plus how it went. */
export interface EvaluationResult {
  readonly strategy: string
  readonly outcomeReward: number | null
  /** One per trace, or null. */
  readonly traceRewards: readonly (number | null)[] | null
  readonly outcomeRewardComponents: Readonly<Record<string, number>>
  readonly metadata: JsonObject
}

/** Keys of the contract's SessionTiming (3.9); milliseconds. Unknown keys are refused by readers, so this list is closed. */
export const TIMING_KEYS = [
  'rollout_dispatch_ms',
  'rollout_result_wait_ms',
  'rollout_pipeline_e2e_ms',
  'register_to_init_queue_ms',
  'init_ms',
  'ready_queue_ms',
  'run_ms',
  'postrun_queue_ms',
  'postrun_ms',
  'container_start_ms',
  'eval_container_start_ms',
  'runtime_validation_ms',
  'eval_runtime_validation_ms',
  'prepare_ms',
  'eval_prepare_ms',
  'agent_setup_ms',
  'agent_exec_ms',
  'agent_postprocess_ms',
  'build_ms',
  'eval_ms',
  'postrun_exec_ms',
  'runtime_stop_ms',
  'e2e_ms',
] as const
export type TimingKey = (typeof TIMING_KEYS)[number]
export type SessionTiming = Partial<Record<TimingKey, number>>

export interface SessionResult {
  readonly sessionId: SessionId
  readonly taskId: TaskId
  readonly sampleIndex: number
  readonly status: TerminalStatus
  readonly trajectory: Trajectory
  readonly agentResult: AgentResult | null
  readonly evaluation: EvaluationResult | null
  readonly timing: SessionTiming
  readonly nodeId: string
  readonly error: string | null
  readonly failureClass: FailureClass | null
  /** Name of the limit that ended the session (`max_turns` ...), or null. */
  readonly truncated: string | null
  readonly metadata: JsonObject
}

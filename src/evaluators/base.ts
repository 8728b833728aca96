// run -> reward. An evaluator sees the finished run and, if it asks for one, a fresh runtime.

import type { Clock } from '../domain/clock.js'
import type { JsonObject } from '../domain/json.js'
import type { AgentResult, EvaluationResult } from '../domain/session.js'
import type { EvaluatorSpec, RuntimeSpec } from '../domain/task.js'
import type { Trajectory } from '../domain/trajectory.js'
import type { Runtime } from '../runtimes/base.js'

export interface EvaluatorContext {
  readonly sessionId: string
  readonly taskId: string
  readonly sessionDir: string
  readonly artifactsDir: string
  readonly logsDir: string
  readonly agentResult: AgentResult
  readonly trajectory: Trajectory
  readonly runtimeSpec: RuntimeSpec
  /** Agent's runtime, its processes already killed. null when INIT never made one. */
  readonly runtime: Runtime | null
  /** `refresh_runtime` of the spec, or what stands for it when it is absent: `gradesPatch` of the plugin. */
  readonly refreshRuntime: boolean
  /** A fresh copy with `eval_prepare ?? prepare` done; made on first call, once. Throws EVAL_FAILED or EVAL_TIMEOUT. */
  readonly freshRuntime: () => Promise<Runtime>
  /** Environment of evaluation commands; holds no model key or URL. */
  readonly env: Readonly<Record<string, string>>
  /** Names that the harness leaves in a workspace; kept out of patches. */
  readonly workspaceLitter: readonly string[]
  readonly clock: Clock
  /** For the whole evaluation, milliseconds. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

export interface EvaluatorPlugin {
  readonly id: string
  readonly summary: string
  /** Grades a patch: `refresh_runtime` absent means true. */
  readonly gradesPatch: boolean
  /** Problems of the spec's config; `path` starts in the config. Called at submit. */
  check(spec: EvaluatorSpec): readonly { readonly path: string; readonly message: string }[]
  /** Throws RolloutError EVAL_FAILED or EVAL_TIMEOUT; `details.metadata`, where given, is what would have been the result's. */
  evaluate(config: JsonObject, context: EvaluatorContext): Promise<EvaluationResult>
}

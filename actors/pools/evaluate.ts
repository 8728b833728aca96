// The evaluation of one session inside POSTRUN: the evaluator with its budget, and the fresh runtime if it asks for one.
// Nothing here is thrown: an evaluator that fails or runs out of time is a result, and the traces are kept.

import type { Plan } from '../../src/config/plan.js'
import { type ErrorData, errorData, RolloutError } from '../../src/domain/errors.js'
import type { EvaluationResult } from '../../src/domain/session.js'
import type { Trajectory } from '../../src/domain/trajectory.js'
import { evaluatorPlugin } from '../../src/evaluators/registry.js'
import { harnessPreset } from '../../src/harnesses/registry.js'
import type { Runtime, RuntimeDeps } from '../../src/runtimes/base.js'
import { type EnvironmentStage, sessionLayout, stageEnvironment } from '../../src/runtimes/environment.js'
import { runPrepare } from '../../src/runtimes/prepare.js'
import { runtimePlugin } from '../../src/runtimes/registry.js'
import type { PostrunJob } from '../protocol/stages.js'
import { withinBudget } from './budget.js'

export interface Evaluated {
  readonly evaluation: EvaluationResult | null
  readonly error: ErrorData | null
  readonly timedOut: boolean
}

export interface EvaluateInput {
  readonly job: PostrunJob
  readonly trajectory: Trajectory
  readonly plan: Plan
  readonly deps: RuntimeDeps
  /** Cancel of the session. */
  readonly signal: AbortSignal
  /** Filled with the contract's keys. */
  readonly timing: Record<string, number>
}

export async function evaluateSession(input: EvaluateInput): Promise<Evaluated> {
  const { plan, deps, signal } = input
  const limitMs = plan.budgets.evaluateMs
  try {
    const ended = await withinBudget(deps.clock, limitMs, signal, inner => evaluate(input, limitMs, inner))
    if (ended.ended === 'done') return { evaluation: ended.value, error: null, timedOut: false }
    if (ended.ended === 'cancelled') return { evaluation: null, error: null, timedOut: false }
    const error = { code: 'EVAL_TIMEOUT', message: `the evaluation budget of ${limitMs} ms ended` } as const
    return { evaluation: null, error, timedOut: true }
  } catch (cause) {
    const error = errorData(cause)
    return { evaluation: null, error, timedOut: error.code === 'EVAL_TIMEOUT' }
  }
}

async function evaluate(input: EvaluateInput, limitMs: number, signal: AbortSignal): Promise<EvaluationResult> {
  const { job, trajectory, deps } = input
  const { spec, sessionDir, runtime, agentResult } = job
  const { evaluator } = spec
  if (evaluator === null) throw new RolloutError('INTERNAL_BUG', 'there is no evaluator to run')
  const plugin = evaluatorPlugin(evaluator.strategy)
  const layout = sessionLayout(sessionDir)
  return await plugin.evaluate(evaluator.config, {
    sessionId: spec.sessionId,
    taskId: spec.taskId,
    sessionDir,
    artifactsDir: layout.artifactsDir,
    logsDir: layout.logsDir,
    agentResult,
    trajectory,
    runtimeSpec: spec.runtime,
    runtime: runtime && runtimePlugin(runtime.backend, deps).attach(runtime),
    refreshRuntime: evaluator.refresh_runtime ?? plugin.gradesPatch,
    freshRuntime: onceOnly(() => freshRuntime(input, limitMs, signal)),
    env: environment(job, 'evaluation', {}),
    workspaceLitter: harnessPreset(spec.agent.harness ?? '').workspaceLitter,
    clock: deps.clock,
    timeoutMs: limitMs,
    signal,
  })
}

/** The same promise for every call: one copy per session, also when it failed. */
function onceOnly<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null
  return () => {
    made ??= make()
    return made
  }
}

async function freshRuntime(input: EvaluateInput, limitMs: number, signal: AbortSignal): Promise<Runtime> {
  const { job, deps, timing } = input
  const { spec, sessionDir } = job
  const { clock } = deps
  const startedAt = clock.now()
  const plugin = runtimePlugin(spec.runtime.backend, deps)
  const handle = await plugin.create({ sessionId: spec.sessionId, sessionDir, spec: spec.runtime, role: 'eval' })
  const runtime = plugin.attach(handle)
  // The contract gives both keys the same value.
  timing['eval_container_start_ms'] = clock.now() - startedAt
  timing['eval_runtime_validation_ms'] = timing['eval_container_start_ms']
  const preparedAt = clock.now()
  const { status, error } = await runPrepare({
    runtime,
    actions: spec.runtime.eval_prepare ?? spec.runtime.prepare,
    name: 'eval_prepare',
    logsDir: sessionLayout(sessionDir).logsDir,
    env: own => environment(job, 'eval_prepare', own),
    timeoutMs: limitMs,
    clock,
    signal,
  })
  timing['eval_prepare_ms'] = clock.now() - preparedAt
  if (status === 'done') return runtime
  throw new RolloutError(status === 'timeout' ? 'EVAL_TIMEOUT' : 'EVAL_FAILED', `fresh copy: ${error ?? status}`)
}

const environment = ({ spec }: PostrunJob, stage: EnvironmentStage, own: Readonly<Record<string, string>>) =>
  stageEnvironment({
    stage,
    sessionId: spec.sessionId,
    taskId: spec.taskId,
    runtime: spec.runtime,
    agent: spec.agent,
    evaluator: spec.evaluator,
    gateway: null,
    stepEnv: own,
  })

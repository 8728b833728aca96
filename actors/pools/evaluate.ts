// The evaluation of one session inside POSTRUN: the evaluator with its budget, and the fresh runtime if it asks for one.
// Nothing here is thrown: an evaluator that fails or runs out of time is a result, and the traces are kept. Where the fresh
// runtime failed, not the grader, there is one more try in a new one.

import type { Plan } from '../../src/config/plan.js'
import { type ErrorData, errorData, RolloutError } from '../../src/domain/errors.js'
import type { EvaluationResult } from '../../src/domain/session.js'
import type { Trajectory } from '../../src/domain/trajectory.js'
import { evaluatorPlugin } from '../../src/evaluators/registry.js'
import { harnessPreset } from '../../src/harnesses/registry.js'
import type { Runtime, RuntimeDeps, RuntimeHandle } from '../../src/runtimes/base.js'
import { type EnvironmentStage, sessionLayout, stageEnvironment } from '../../src/runtimes/environment.js'
import { removeTree } from '../../src/runtimes/folders.js'
import { runPrepare } from '../../src/runtimes/prepare.js'
import { runtimePlugin } from '../../src/runtimes/registry.js'
import type { PostrunJob } from '../protocol/stages.js'
import { withinBudget } from './budget.js'
import { destroyRuntime } from './teardown.js'

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
    const ended = await withinBudget(deps.clock, limitMs, signal, inner => evaluateAgain(input, limitMs, inner))
    if (ended.ended === 'done') return { evaluation: ended.value, error: null, timedOut: false }
    if (ended.ended === 'cancelled') return { evaluation: null, error: null, timedOut: false }
    const error = { code: 'EVAL_TIMEOUT', message: `the evaluation budget of ${limitMs} ms ended` } as const
    return { evaluation: null, error, timedOut: true }
  } catch (cause) {
    const error = errorData(cause)
    return { evaluation: null, error, timedOut: error.code === 'EVAL_TIMEOUT' }
  }
}

/** The fresh runtime of one attempt, once it is made. */
interface Attempt {
  handle: RuntimeHandle | null
}

/** What the host did wrong, and may do right the next time. */
const HOST_ERRORS: ReadonlySet<unknown> = new Set([
  'RUNTIME_FAILED',
  'EAGAIN',
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  'ENOSPC',
  'EIO',
])

async function evaluateAgain(input: EvaluateInput, limitMs: number, signal: AbortSignal): Promise<EvaluationResult> {
  const first: Attempt = { handle: null }
  try {
    return await evaluate(input, first, limitMs, signal)
  } catch (cause) {
    const isHosts = HOST_ERRORS.has((cause as { code?: unknown } | null)?.code)
    if (!isHosts || first.handle === null || signal.aborted) throw cause
    await destroyRuntime(input.deps, first.handle)
    await removeTree(first.handle.sessionDir)
    const evaluation = await evaluate(input, { handle: null }, limitMs, signal)
    return { ...evaluation, metadata: { ...evaluation.metadata, retried_after: errorData(cause).message } }
  }
}

async function evaluate(
  input: EvaluateInput,
  attempt: Attempt,
  limitMs: number,
  signal: AbortSignal,
): Promise<EvaluationResult> {
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
    freshRuntime: onceOnly(() => freshRuntime(input, attempt, limitMs, signal)),
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

async function freshRuntime(
  input: EvaluateInput,
  attempt: Attempt,
  limitMs: number,
  signal: AbortSignal,
): Promise<Runtime> {
  const { job, deps, timing } = input
  const { spec, sessionDir } = job
  const { clock } = deps
  const startedAt = clock.now()
  const plugin = runtimePlugin(spec.runtime.backend, deps)
  const handle = await plugin.create({ sessionId: spec.sessionId, sessionDir, spec: spec.runtime, role: 'eval' })
  attempt.handle = handle
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
  throw new RolloutError(status === 'timeout' ? 'EVAL_TIMEOUT' : 'RUNTIME_FAILED', `fresh copy: ${error ?? status}`)
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

// POSTRUN of one session in a pool thread: the agent's processes are ended, the traces built, the run judged, the runtimes torn
// down, masks and rewards set. Build and evaluation have budgets of their own, so that what was captured always survives.
// A cancel ends the evaluation; the session actor then sets every token aside.

import { builders } from '../../src/builders/registry.js'
import type { Plan } from '../../src/config/plan.js'
import type { SessionLedger } from '../../src/domain/completion.js'
import { type ErrorData, errorData } from '../../src/domain/errors.js'
import type { TerminalStatus } from '../../src/domain/session.js'
import type { Trajectory } from '../../src/domain/trajectory.js'
import { emptyCounts } from '../../src/ledger/counts.js'
import { applyOutcome } from '../../src/ledger/masking.js'
import type { RuntimeDeps, TeardownReport } from '../../src/runtimes/base.js'
import type { PostrunOutcome } from '../protocol/outcomes.js'
import type { PostrunJob } from '../protocol/stages.js'
import { withinBudget } from './budget.js'
import { decoderFor } from './decoder.js'
import { type Evaluated, evaluateSession } from './evaluate.js'
import { openLine, planOfThread, runtimeDepsOf, type TaskInput } from './task.js'
import { destroyRuntime, tearDown } from './teardown.js'

const notEvaluated: Evaluated = { evaluation: null, error: null, timedOut: false }

export default async function postrun({ job, port }: TaskInput<PostrunJob>): Promise<PostrunOutcome> {
  const line = openLine(port)
  const plan = planOfThread()
  const deps = runtimeDepsOf(plan)
  const timing: Record<string, number> = {}
  const { clock } = deps
  const timed = async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const startedAt = clock.now()
    try {
      return await work()
    } finally {
      timing[key] = clock.now() - startedAt
    }
  }
  try {
    // Before anything reads the workspace: a process that lives on could change it under the evaluator.
    if (job.runtime !== null) await destroyRuntime(deps, job.runtime)
    line.report({ type: 'postrun-progress', stage: 'build' })
    const { trajectory, error: buildError } = await timed('build_ms', () => build(job, plan, deps, line.signal))
    let evaluated = notEvaluated
    if (job.evaluate && buildError === null && !line.signal.aborted) {
      line.report({ type: 'postrun-progress', stage: 'evaluate' })
      const { signal } = line
      evaluated = await timed('eval_ms', () => evaluateSession({ job, trajectory, plan, deps, signal, timing }))
    }
    line.report({ type: 'postrun-progress', stage: 'teardown' })
    const teardown = await timed('runtime_stop_ms', () => endRuntime(job, deps))
    const cancelled = job.cancelled || line.signal.aborted
    const judged = cancelled ? trajectory : judge(job, trajectory, evaluated, buildError, teardown)
    return {
      trajectory: judged,
      evaluation: evaluated.evaluation,
      evaluationError: evaluated.error ?? misfit(trajectory, judged, evaluated),
      evaluationTimedOut: evaluated.timedOut,
      buildError,
      teardown,
      timing,
    }
  } finally {
    line.close()
  }
}

interface Built {
  readonly trajectory: Trajectory
  readonly error: ErrorData | null
}

async function build(job: PostrunJob, plan: Plan, deps: RuntimeDeps, signal: AbortSignal): Promise<Built> {
  const { spec, ledger } = job
  const { strategy, config } = spec.builder
  const decoder = decoderFor(ledger, plan, signal)
  try {
    const builder = builders[strategy as keyof typeof builders]
    const ended = await withinBudget(deps.clock, plan.budgets.buildMs, signal, inner =>
      builder.build(ledger, config, {
        decode: decoder.decode,
        sessionId: spec.sessionId,
        taskId: spec.taskId,
        taskMetadata: spec.metadata,
        signal: inner,
      }),
    )
    if (ended.ended === 'done') return { trajectory: ended.value, error: null }
    const message = ended.ended === 'timeout' ? `the build budget of ${plan.budgets.buildMs} ms ended` : 'cancelled'
    return unbuilt(job, { code: 'ACTOR_ASK_TIMEOUT', message })
  } catch (cause) {
    return unbuilt(job, errorData(cause))
  } finally {
    await decoder.close()
  }
}

/** No traces, but every sampled token counted. */
function unbuilt({ spec, ledger }: PostrunJob, error: ErrorData): Built {
  const sampled = sampledTokens(ledger)
  const counts = emptyCounts()
  const trajectory: Trajectory = {
    status: 'ERROR',
    error: `build failed: ${error.message}`,
    builder: spec.builder.strategy,
    traces: [],
    ledger: {
      ...counts,
      calls: ledger.calls.length,
      failedCalls: ledger.failed.length,
      tokens: { sampled, trained: 0, setAside: sampled === 0 ? {} : { session_error: sampled } },
    },
    recordCount: ledger.calls.length,
    metadata: {},
  }
  return { trajectory, error }
}

const sampledTokens = ({ calls, failed }: SessionLedger): number =>
  calls.reduce((sum, { record }) => sum + (record.sampledIds?.length ?? record.completionTokens), 0) +
  failed.reduce((sum, call) => sum + call.abortedTokens, 0)

/** Teardown that breaks is teardown that is not proven. */
async function endRuntime({ runtime }: PostrunJob, deps: RuntimeDeps): Promise<TeardownReport | null> {
  if (runtime === null) return null
  try {
    return await tearDown(deps, runtime)
  } catch {
    return { proven: false, killed: 0, method: 'proc-scan' }
  }
}

function judge(
  job: PostrunJob,
  trajectory: Trajectory,
  evaluated: Evaluated,
  buildError: ErrorData | null,
  teardown: TeardownReport | null,
): Trajectory {
  if (buildError !== null) return trajectory
  return applyOutcome({
    trajectory,
    status: statusOf(job, evaluated),
    agentResult: job.agentResult,
    evaluation: evaluated.evaluation,
    evaluationTimedOut: evaluated.timedOut,
    truncated: job.truncated,
    containmentProven: teardown === null || teardown.proven || teardown.method === 'process-group',
  })
}

function statusOf({ sessionError, timedOut }: PostrunJob, { error, timedOut: evaluationTimedOut }: Evaluated) {
  const status: TerminalStatus =
    sessionError !== null || (error !== null && !evaluationTimedOut) ? 'ERROR' : timedOut ? 'TIMEOUT' : 'COMPLETED'
  return status
}

/** A reward that does not fit the trajectory makes it an error; that is the grader's. */
function misfit(before: Trajectory, after: Trajectory, { evaluation }: Evaluated): ErrorData | null {
  if (evaluation === null || before.error === after.error || after.error === null) return null
  return { code: 'EVAL_FAILED', message: after.error }
}

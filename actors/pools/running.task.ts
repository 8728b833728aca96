// RUNNING of one session: a pool thread is the host of many runs, each waiting for its own processes. The session's key is
// known here and nowhere else outside the session actor. What the harness does wrong is a result; only a broken runtime is an error.

import type { Plan } from '../../src/config/plan.js'
import { errorData } from '../../src/domain/errors.js'
import { harnessPreset } from '../../src/harnesses/registry.js'
import { runHarness } from '../../src/harnesses/run.js'
import { sessionLayout } from '../../src/runtimes/environment.js'
import { runtimePlugin } from '../../src/runtimes/registry.js'
import type { RunJob } from '../protocol/stages.js'
import { redactLogs } from './redact.js'
import { openLine, planOfThread, type RunTaskResult, runtimeDepsOf, type TaskInput } from './task.js'

export default async function run({ job, port }: TaskInput<RunJob>): Promise<RunTaskResult> {
  const line = openLine(port)
  const plan = planOfThread()
  const deps = runtimeDepsOf(plan)
  const { spec, sessionKey } = job
  try {
    const { agentResult, timing } = await runHarness({
      runtime: runtimePlugin(job.runtime.backend, deps).attach(job.runtime),
      preset: harnessPreset(spec.agent.harness ?? ''),
      spec,
      gatewayUrl: job.gatewayUrl,
      sessionKey,
      installDir: job.harnessInstallDir,
      contextWindow: spec.limits.context_window ?? defaultWindow(plan),
      basePath: deps.basePath,
      sessionBudgetMs: job.sessionBudgetMs,
      agentBudgetMs: job.agentBudgetMs,
      clock: deps.clock,
      signal: line.signal,
      onStage: stage => line.report({ type: 'run-progress', stage }),
      onProcess: ({ pid, startTime }) => line.report({ type: 'process-started', pid, startTime }),
    })
    return { result: agentResult, error: null, timing }
  } catch (cause) {
    return { result: null, error: errorData(cause), timing: {} }
  } finally {
    // A log that cannot be rewritten (the agent removed the folder) is no fault of the run.
    await redactLogs(sessionLayout(job.runtime.sessionDir).logsDir, sessionKey).catch(() => 0)
    line.close()
  }
}

/** Window of the model that unmapped names go to, tokens. */
function defaultWindow({ models, upstreams }: Plan): number | null {
  const upstream = models['default']?.upstream
  return upstreams.find(({ id }) => id === upstream)?.contextWindow ?? null
}

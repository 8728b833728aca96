// INIT of one session in a pool thread: folders, runtime, the harness's CLI from the cache, prepare actions. All inside the
// session's budget. What was made is reported at once, so that it is torn down whatever happens to this thread.

import { errorData, RolloutError } from '../../src/domain/errors.js'
import { installHarness, requestedVersion } from '../../src/harnesses/install.js'
import { harnessPreset } from '../../src/harnesses/registry.js'
import type { Runtime, RuntimeHandle } from '../../src/runtimes/base.js'
import { sessionLayout, stageEnvironment } from '../../src/runtimes/environment.js'
import { runPrepare } from '../../src/runtimes/prepare.js'
import { runtimePlugin } from '../../src/runtimes/registry.js'
import type { InitJob } from '../protocol/stages.js'
import { withinBudget } from './budget.js'
import { type InitTaskResult, openLine, planOfThread, runtimeDepsOf, type TaskInput, type TaskLine } from './task.js'

export default async function init({ job, port }: TaskInput<InitJob>): Promise<InitTaskResult> {
  const line = openLine(port)
  const made: Made = { runtime: null, harnessInstallDir: null, timing: {} }
  const { clock } = runtimeDepsOf(planOfThread())
  try {
    const ended = await withinBudget(clock, job.timeoutMs, line.signal, signal => prepare(job, line, signal, made))
    if (ended.ended === 'done') return { ...made, error: null, timedOut: false }
    const message = ended.ended === 'timeout' ? 'the session budget ended in INIT' : 'cancelled in INIT'
    return { ...made, error: { code: 'RUNTIME_FAILED', message }, timedOut: ended.ended === 'timeout' }
  } catch (cause) {
    return { ...made, error: errorData(cause), timedOut: false }
  } finally {
    line.close()
  }
}

/** What there is by now; filled in as INIT goes on. */
interface Made {
  runtime: RuntimeHandle | null
  harnessInstallDir: string | null
  readonly timing: Record<string, number>
}

async function prepare(job: InitJob, line: TaskLine, signal: AbortSignal, made: Made): Promise<void> {
  const { spec, sessionDir } = job
  const plan = planOfThread()
  const deps = runtimeDepsOf(plan)
  const { clock } = deps
  const startedAt = clock.now()
  const plugin = runtimePlugin(spec.runtime.backend, deps)
  const handle = await plugin.create({ sessionId: spec.sessionId, sessionDir, spec: spec.runtime, role: 'agent' })
  made.runtime = handle
  line.report({ type: 'runtime-created', runtime: handle })
  // The contract gives both keys the same value.
  made.timing['container_start_ms'] = clock.now() - startedAt
  made.timing['runtime_validation_ms'] = made.timing['container_start_ms']
  const preset = harnessPreset(spec.agent.harness ?? '')
  if (preset.install !== null) {
    const { installDir } = await installHarness({
      preset,
      version: requestedVersion(spec.agent),
      cacheDir: plan.cacheDir,
      env: plan.hostEnvironment,
      clock,
      signal,
    })
    made.harnessInstallDir = installDir
  }
  signal.throwIfAborted()
  const preparedAt = clock.now()
  await runActions(job, plugin.attach(handle), job.timeoutMs - (preparedAt - startedAt), signal)
  made.timing['prepare_ms'] = clock.now() - preparedAt
}

async function runActions({ spec, sessionDir }: InitJob, runtime: Runtime, timeoutMs: number, signal: AbortSignal) {
  const outcome = await runPrepare({
    runtime,
    actions: spec.runtime.prepare,
    name: 'prepare',
    logsDir: sessionLayout(sessionDir).logsDir,
    env: own =>
      stageEnvironment({
        stage: 'prepare',
        sessionId: spec.sessionId,
        taskId: spec.taskId,
        runtime: spec.runtime,
        agent: spec.agent,
        evaluator: null,
        gateway: null,
        stepEnv: own,
      }),
    timeoutMs,
    clock: runtimeDepsOf(planOfThread()).clock,
    signal,
  })
  // A command that ran into the budget ends with it: the caller sees the budget's own end first.
  if (outcome.status !== 'done') throw new RolloutError('RUNTIME_FAILED', outcome.error ?? outcome.status)
}

// The proof of a probe: the service with that upstream, and one session of a real harness through it.

import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { realClock } from '../../../actors/system/clock.js'
import { loadPlan } from '../../config/load.js'
import type { Plan } from '../../config/plan.js'
import { errorData, RolloutError } from '../../domain/errors.js'
import { createLogger, type LogLevel } from '../../observability/logger.js'
import type { ProbeReport } from '../../upstreams/probe.js'
import { upstreams } from '../../upstreams/registry.js'
import { connectionTo } from '../connection.js'
import { installedHarness } from '../installed-harness.js'
import { exampleTask } from '../quickstart/example.js'
import { sessionRow } from '../quickstart/view.js'
import { isEnded } from '../task-report.js'
import { type Proof, unprovenReason } from './report.js'

export interface SessionOptions {
  readonly harness: string
  readonly logLevel: LogLevel
  /** Environment variable with the key of the server; null = it wants none. */
  readonly apiKeyEnv: string | null
  readonly say: (text: string) => void
  readonly signal: AbortSignal
}

const EXAMPLE = 'try'
const SEED = 7
/** Of one question how far the task is; the signal is looked at between them. */
const WAIT_SECONDS = 5

/** A harness that cannot be had is a reason, not an error. Rejects when `signal` aborts, and with what the service cannot start for. */
export async function proofSession(report: ProbeReport, options: SessionOptions): Promise<Proof> {
  const { harness, logLevel, apiKeyEnv, say, signal } = options
  const plan = tryPlan(report, apiKeyEnv)
  const clock = realClock()
  try {
    await installedHarness(harness, plan, clock, say, signal)
  } catch (cause) {
    const { code, message } = errorData(cause)
    if (signal.aborted || code === 'HARNESS_UNKNOWN' || !(cause instanceof RolloutError)) throw cause
    return { harness, row: null, reason: message }
  }
  const { startService } = await import('../../../actors/service.js')
  const service = await startService(plan, {
    tasks: 'passing',
    clock,
    log: createLogger({ level: logLevel }),
    logLevel,
  })
  const connection = connectionTo(service.controlUrl, service.token)
  try {
    const taskId = `try-${randomUUID().slice(0, 8)}`
    await connection.submit(await exampleTask(EXAMPLE, { taskId, harness, samples: 1, seed: SEED }))
    for (;;) {
      signal.throwIfAborted()
      const task = await connection.task(taskId, WAIT_SECONDS)
      if (!isEnded(task)) continue
      const row = sessionRow(task.results[0])
      return { harness, row, reason: report.verdict === 'trainable' ? unprovenReason(row) : null }
    }
  } finally {
    await connection.close()
    await service.stop()
  }
}

/** The upstream as it was probed; nothing of it is trained on when it has not passed. */
function tryPlan(report: ProbeReport, apiKeyEnv: string | null): Plan {
  const id = 'tried'
  const plan = loadPlan({
    path: null,
    profiles: Object.keys(upstreams),
    overrides: {
      control: { port: 0 },
      upstreams: [
        {
          id,
          profile: report.profile,
          urls: report.urls,
          modelServed: report.model,
          contextWindow: report.facts.window,
          apiKey: apiKeyEnv === null ? null : { env: apiKeyEnv },
          // It was, a moment ago.
          probe: 'off',
        },
      ],
      models: { default: { upstream: id, trainable: report.verdict === 'trainable' } },
    },
  })
  return { ...plan, saveDir: join(plan.stateDir, 'results') }
}

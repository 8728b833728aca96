// The main job, end to end, as a newcomer sees it: install a harness, start the service with the embedded inference server,
// submit the bundled task over HTTP, show progress, print what came of it. Interrupted, it stops everything it started.

import { randomUUID } from 'node:crypto'
import type { Service } from '../../../actors/service.js'
import { realClock } from '../../../actors/system/clock.js'
import { loadPlan } from '../../config/load.js'
import type { Plan } from '../../config/plan.js'
import { createHttpClient } from '../../http/client.js'
import { createLogger, type LogLevel } from '../../observability/logger.js'
import { upstreams } from '../../upstreams/registry.js'
import { installedHarness } from '../installed-harness.js'
import { type ServiceClient, serviceClient } from './client.js'
import { installedBytes } from './downloads.js'
import { exampleTask } from './example.js'
import { createProgress, type Progress } from './progress.js'
import { report } from './report.js'
import { isAccounted, type SessionRow, sessionRow } from './view.js'

export interface QuickstartOptions {
  /** Registry name of the preset. */
  readonly harness: string
  /** Sessions of the task; at least 1. */
  readonly samples: number
  /** Base seed: sample i draws with seed + i. Same seed, same result. */
  readonly seed: number
  /** Named prefix breaks of the simulated policy; empty = none. */
  readonly drift: readonly string[]
  /** Kill the proxy's thread in mid-run. */
  readonly kill: boolean
  /** Print the results as JSON instead of tables. */
  readonly json: boolean
  readonly logLevel: LogLevel
}

const EXAMPLE = 'fix-calculator'
/** Exit code of an interrupted run, as shells give it. */
const INTERRUPTED = 130

/** Returns the exit code: 0 = every session ended with a verdict and balanced accounts, at least one of them solved. */
export async function quickstart(options: QuickstartOptions, signal: AbortSignal): Promise<number> {
  const say = (text: string): void => void process.stderr.write(`${text}\n`)
  const plan = quickstartPlan(options)
  const clock = realClock()
  const log = createLogger({ level: options.logLevel })
  const downloadedBytes = (await installedHarness(options.harness, plan, clock, say, signal)) + installedBytes()
  const startedAt = performance.now()
  const { startService } = await import('../../../actors/service.js')
  const service = await startService(plan, {
    tasks: 'passing',
    clock,
    threads: 'real',
    log,
    logLevel: options.logLevel,
  })
  const http = createHttpClient({ connections: 8 })
  const progress = createProgress(process.stderr, process.stderr.isTTY === true && !options.json)
  try {
    signal.throwIfAborted()
    say(`service at ${service.controlUrl}, embedded inference server (${plan.simulation?.modelName ?? '?'})`)
    const taskId = `quickstart-${options.harness}-${randomUUID().slice(0, 8)}`
    const client = serviceClient(http, service.controlUrl, service.token)
    const run = await follow(client, service, taskId, options, progress, signal)
    const rows = run.results.map(sessionRow)
    const figures = {
      harness: options.harness,
      downloadedBytes,
      secondsToFirstReward: run.firstEndAt === null ? null : (run.firstEndAt - startedAt) / 1000,
      seconds: (performance.now() - startedAt) / 1000,
      saveDir: plan.saveDir ?? '',
      taskId,
      killed: options.kill,
      drift: options.drift,
    }
    process.stdout.write(options.json ? `${JSON.stringify({ figures, rows })}\n` : `${report(rows, figures)}\n`)
    return verdict(rows, say)
  } catch (cause) {
    if (!signal.aborted) throw cause
    say('interrupted: stopping what was started')
    return INTERRUPTED
  } finally {
    progress.end()
    await service.stop()
    await http.close()
  }
}

function quickstartPlan(options: QuickstartOptions): Plan {
  return loadPlan({
    path: null,
    profiles: Object.keys(upstreams),
    overrides: {
      control: { port: 0 },
      stages: { running: 2 },
      simulation: { drift: [...options.drift], contextWindow: 131_072, decodeMsPerToken: options.kill ? 3 : 0 },
    },
  })
}

interface Followed {
  readonly results: readonly unknown[]
  /** performance.now() when the first session had its reward; null = none ended. */
  readonly firstEndAt: number | null
}

async function follow(
  client: ServiceClient,
  service: Service,
  taskId: string,
  options: QuickstartOptions,
  progress: Progress,
  signal: AbortSignal,
): Promise<Followed> {
  const settings = { taskId, harness: options.harness, samples: options.samples, seed: options.seed }
  const events = await client.events(signal)
  await client.submit(await exampleTask(EXAMPLE, settings))
  let firstEndAt: number | null = null
  let killed = !options.kill
  for await (const event of events) {
    progress.note(event)
    if (event.data.task_id !== taskId) continue
    if (event.type === 'session.state_changed' && event.data.status === 'COMPLETED') firstEndAt ??= performance.now()
    if (!killed && event.type === 'session.progressed' && Number(event.data.calls) >= 2) {
      killed = true
      await service.kill('proxy-1')
    }
    if (event.type === 'task.completed') break
  }
  progress.end()
  const { results } = await client.task(taskId)
  return { results, firstEndAt }
}

function verdict(rows: readonly SessionRow[], say: (text: string) => void): number {
  const unbalanced = rows.filter(row => !isAccounted(row))
  if (unbalanced.length > 0) say(`accounts do not balance in ${unbalanced.length} sessions`)
  const solved = rows.some(row => row.reward === 1)
  if (!solved) say('no sample was solved')
  return unbalanced.length === 0 && solved ? 0 : 1
}

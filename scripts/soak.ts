// The ledger's invariants over many generated sessions (npm run test:soak [sessions] [seed]): each core takes its share, one session at
// a time. Ends with 1 and the inputs of the first session that breaks one. The same seed checks the same sessions.

import { availableParallelism } from 'node:os'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { type BuilderSettings, checkSession, type SessionInput } from '../test/support/ledger-invariants.js'
import { type Random, seeded } from '../test/support/session-generator.js'

interface Share {
  readonly seed: number
  readonly sessions: number
  readonly first: number
  readonly step: number
}

type Report = { readonly checked: number } | { readonly broken: string }

const REPORT_EACH = 500

async function soak(): Promise<void> {
  const [sessions = 100_000, seed = Date.now() % 1_000_000] = process.argv.slice(2).map(Number)
  const step = availableParallelism()
  console.log(`${sessions} sessions, seed ${seed}, ${step} threads`)
  const started = Date.now()
  let checked = 0
  let shown = 0
  const broken: string[] = []
  const workers = Array.from({ length: step }, (_, first) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: { seed, sessions, first, step } satisfies Share })
    worker.on('message', (report: Report) => {
      if ('broken' in report) broken.push(report.broken)
      else checked += report.checked
      const tenths = Math.floor((10 * checked) / sessions)
      if (tenths > shown)
        console.log(`${checked} sessions, ${Math.round((Date.now() - started) / 1000)} s, ${memory()}`)
      shown = Math.max(shown, tenths)
    })
    return new Promise<number>((resolve, reject) => {
      worker.once('error', reject)
      worker.once('exit', resolve)
    })
  })
  await Promise.all(workers)
  const { user, system } = process.cpuUsage()
  console.log(
    `${checked} sessions checked, ${broken.length} broken, ${Math.round((Date.now() - started) / 1000)} s, ` +
      `${Math.round((user + system) / 1e6)} s of processor time, ${memory()}`,
  )
  for (const text of broken) console.error(text)
  if (broken.length > 0 || checked !== sessions) process.exitCode = 1
}

const memory = (): string => `${Math.round(process.memoryUsage.rss() / 2 ** 20)} MiB resident`

async function work({ seed, sessions, first, step }: Share): Promise<void> {
  let checked = 0
  for (let number = first; number < sessions; number += step) {
    const random = seeded(seed * 1_000_003 + number)
    const input: SessionInput = {
      seed: random.below(2 ** 31),
      turns: random.chance(0.05) ? random.below(60) : random.below(15),
      trouble: random.below(10) / 10,
    }
    const settings = settingsFrom(random)
    const [order, cut] = [random.below(2 ** 31), random.next()]
    try {
      await checkSession(input, settings, order, cut)
    } catch (cause) {
      const text = JSON.stringify({ number, input, settings, order, cut })
      parentPort?.postMessage({ broken: `${text}: ${String(cause)}` } satisfies Report)
      break
    }
    checked++
    if (checked % REPORT_EACH === 0) parentPort?.postMessage({ checked: REPORT_EACH } satisfies Report)
  }
  parentPort?.postMessage({ checked: checked % REPORT_EACH } satisfies Report)
}

const settingsFrom = (random: Random): BuilderSettings => ({
  join: (['faithful', 'lenient', 'prompt_prefix'] as const)[random.below(3)] ?? 'faithful',
  train_side_calls: random.chance(0.5),
  keep_retries: random.chance(0.5),
  max_tokens: random.chance(0.5) ? null : 5 + random.below(76),
})

if (isMainThread) await soak()
else await work(workerData as Share)

// Runs the quickstart with each real harness CLI, one after the other, and prints one table. Exit code 0 = every one of them
// had at least one solved sample and balanced accounts. Names as arguments choose; none = all six.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import Table from 'cli-table3'
import type { SessionRow } from '../src/cli/quickstart/view.js'
import { sum } from '../src/cli/quickstart/view.js'
import { harnesses } from '../src/harnesses/registry.js'

interface Outcome {
  readonly harness: string
  readonly code: number
  readonly seconds: number
  readonly rows: readonly SessionRow[]
  readonly stderr: string
}

const entry = fileURLToPath(new URL('../main.js', import.meta.url))
const all = Object.entries(harnesses).flatMap(([id, preset]) => (preset.install === null ? [] : [id]))
const chosen = process.argv.slice(2)
for (const name of chosen)
  if (!all.includes(name)) throw new Error(`unknown harness ${name}: wanted one of ${all.join(', ')}`)

let child: ReturnType<typeof spawn> | null = null
let stopped = false
process.on('SIGINT', () => {
  stopped = true
})
process.on('SIGTERM', () => {
  stopped = true
  child?.kill('SIGTERM')
})

const outcomes: Outcome[] = []
for (const harness of chosen.length > 0 ? chosen : all) {
  if (stopped) break
  process.stderr.write(`== ${harness}\n`)
  const outcome = await quickstart(harness)
  if (outcome.code !== 0) process.stderr.write(`${outcome.stderr}\n`)
  outcomes.push(outcome)
}

const table = new Table({
  head: [
    'harness',
    'exit',
    'seconds',
    'statuses',
    'rewards',
    'calls',
    'traces',
    'sampled',
    'trained',
    'set aside',
    'joins',
  ],
  style: { head: [], border: [] },
})
for (const { harness, code, seconds, rows } of outcomes) {
  table.push([
    harness,
    String(code),
    seconds.toFixed(1),
    counted(rows.map(row => row.status)),
    rows.map(row => row.reward ?? 'none').join(' '),
    rows.map(row => row.calls).join(' '),
    rows.map(row => row.traces).join(' '),
    String(sum(rows.map(row => row.sampled))),
    String(sum(rows.map(row => row.trained))),
    String(sum(rows.flatMap(row => Object.values(row.setAside)))),
    counted(rows.flatMap(row => Object.entries(row.joins).flatMap(([name, count]) => Array<string>(count).fill(name)))),
  ])
}
const good = outcomes.filter(outcome => outcome.code === 0).length
process.stdout.write(`${table.toString()}\n${good} passed, ${outcomes.length - good} failed\n`)
process.exitCode = stopped ? 130 : good === outcomes.length ? 0 : 1

function quickstart(harness: string): Promise<Outcome> {
  const startedAt = performance.now()
  return new Promise((resolve, reject) => {
    const started = spawn(process.execPath, [entry, 'quickstart', '--harness', harness, '--json'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child = started
    let stdout = ''
    let stderr = ''
    started.stdout.on('data', chunk => {
      stdout += String(chunk)
    })
    started.stderr.on('data', chunk => {
      stderr += String(chunk)
    })
    started.on('error', reject)
    started.on('close', code => {
      const line = stdout.trim().split('\n').at(-1) ?? ''
      const rows = line.startsWith('{') ? (JSON.parse(line) as { rows: SessionRow[] }).rows : []
      resolve({ harness, code: code ?? 1, seconds: (performance.now() - startedAt) / 1000, rows, stderr })
    })
  })
}

function counted(names: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].map(([name, count]) => `${name} ${count}`).join(', ') || '-'
}

// `npm run e2e:harnesses`: every real CLI through every scenario of scripts/harnesses/scenarios.ts, some cells side by side, and one table.
// Each cell has its own service, engine, ports and folders. Exit code 0 = no cell failed.
//
//   --only NAMES    of CLIs and scenarios, both mixed, e.g. `--only pi,codex,cut`
//   --jobs N        cells at a time (2): they wait more than they compute
//   --report PATH   the table as a file too: `.json`, else Markdown; may be given more than once
//   --keep          leave every cell's folder with all it saw

import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { realClock } from '../actors/system/clock.js'
import { loadPlan } from '../src/config/load.js'
import { installHarness } from '../src/harnesses/install.js'
import { harnesses } from '../src/harnesses/registry.js'
import { upstreams } from '../src/upstreams/registry.js'
import { optionsOf } from './harnesses/options.js'
import { failed, type Outcome, skipped } from './harnesses/outcome.js'
import { runQuickstart } from './harnesses/quickstart.js'
import { runScenario } from './harnesses/run.js'
import { type CliId, SCENARIOS } from './harnesses/scenarios.js'
import {
  agreementText,
  isBad,
  jsonReport,
  markdownReport,
  outcomeText,
  type RunFacts,
  terminalTable,
  totalsOf,
  totalsText,
} from './harnesses/table.js'

const ALL_CLIS = Object.entries(harnesses).flatMap(([id, preset]) => (preset.install === null ? [] : [id as CliId]))
const ALL_SCENARIOS = ['quickstart', ...SCENARIOS.map(scenario => scenario.name)]
const options = optionsOf(process.argv.slice(2), ALL_CLIS, ALL_SCENARIOS)
const startedAt = new Date()

const stopping = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => stopping.abort(new Error('interrupted')))

const cells = options.clis.flatMap(harness => options.scenarios.map(scenario => ({ harness, scenario })))
const outcomes = new Map<(typeof cells)[number], Outcome>()
try {
  for (const harness of options.clis) await install(harness)
  const waiting = [...cells]
  await Promise.all(Array.from({ length: options.jobs }, () => work(waiting)))
} catch (cause) {
  if (!stopping.signal.aborted) throw cause
}
report(cells.flatMap(cell => outcomes.get(cell) ?? []))

async function work(waiting: (typeof cells)[number][]): Promise<void> {
  for (let cell = waiting.shift(); cell !== undefined; cell = waiting.shift()) {
    const outcome = await run(cell.harness, cell.scenario)
    outcomes.set(cell, outcome)
    process.stderr.write(`[${outcomes.size}/${cells.length}] ${outcomeText(outcome)}\n`)
  }
}

/** Throws only when the run is interrupted: what breaks a cell is that cell's failure. */
async function run(harness: CliId, name: string): Promise<Outcome> {
  stopping.signal.throwIfAborted()
  const scenario = SCENARIOS.find(candidate => candidate.name === name)
  const why = scenario?.skip?.[harness]
  if (why !== undefined) return skipped(harness, name, why)
  const beganAt = performance.now()
  try {
    return scenario === undefined
      ? await runQuickstart(harness, stopping.signal)
      : await runScenario(harness, scenario, stopping.signal, options.isKept)
  } catch (cause) {
    stopping.signal.throwIfAborted()
    return failed(harness, name, beganAt, cause instanceof Error ? (cause.stack ?? cause.message) : String(cause))
  }
}

async function install(harness: CliId): Promise<void> {
  const plan = loadPlan({ path: null, profiles: Object.keys(upstreams) })
  await installHarness({
    preset: harnesses[harness],
    cacheDir: plan.cacheDir,
    env: plan.hostEnvironment,
    clock: realClock(),
    signal: stopping.signal,
  })
}

function report(done: readonly Outcome[]): void {
  const facts: RunFacts = {
    commit: commit(),
    startedAt: startedAt.toISOString().slice(0, 16).replace('T', ' '),
    seconds: (Date.now() - startedAt.getTime()) / 1000,
    jobs: options.jobs,
    node: process.versions.node,
    processors: availableParallelism(),
    command:
      cells.length < ALL_CLIS.length * ALL_SCENARIOS.length
        ? 'npm run e2e:harnesses, some cells'
        : 'npm run e2e:harnesses',
  }
  for (const path of options.reports)
    writeFileSync(path, path.endsWith('.json') ? jsonReport(done, facts) : markdownReport(done, facts))
  const told = done.filter(outcome => isBad(outcome) || outcome.note !== null || outcome.skipped !== null)
  const totals = totalsOf(done)
  process.stdout.write(
    [
      terminalTable(done),
      'Calls that the harness shows again as they were captured:',
      agreementText(done),
      ...told.map(outcomeText),
      `${cells.length} cells at commit ${facts.commit ?? 'unknown'} in ${facts.seconds.toFixed(0)} s, ${options.jobs} at a time`,
      totalsText(totals),
      '',
    ].join('\n'),
  )
  process.exitCode = stopping.signal.aborted ? 130 : totals.failed === 0 && done.length === cells.length ? 0 : 1
}

/** With a mark when the files are not as committed. null = not in a repository. */
function commit(): string | null {
  const git = (...words: string[]): string =>
    execFileSync('git', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  try {
    return git('rev-parse', '--short=12', 'HEAD') + (git('status', '--porcelain') === '' ? '' : ' (changed)')
  } catch {
    return null
  }
}

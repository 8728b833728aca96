// `npm run e2e:harnesses`: every real CLI through every scenario of scripts/harnesses/scenarios.ts, one after the other, and one table.
// Exit code 0 = all passed. `--only` takes names of CLIs and scenarios; both kinds may be mixed, e.g. `--only pi,codex,cut`.

import Table from 'cli-table3'
import { realClock } from '../actors/system/clock.js'
import { loadPlan } from '../src/config/load.js'
import { installHarness } from '../src/harnesses/install.js'
import { harnesses } from '../src/harnesses/registry.js'
import { upstreams } from '../src/upstreams/registry.js'
import { runQuickstart } from './harnesses/quickstart.js'
import { type Outcome, runScenario } from './harnesses/run.js'
import { type CliId, SCENARIOS } from './harnesses/scenarios.js'

const QUICKSTART = 'quickstart'
const clis = Object.entries(harnesses).flatMap(([id, preset]) => (preset.install === null ? [] : [id as CliId]))
const names = [QUICKSTART, ...SCENARIOS.map(scenario => scenario.name)]

const { chosenClis, chosenScenarios } = choice(process.argv.slice(2))
const stopping = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => stopping.abort(new Error('interrupted')))

const outcomes: Outcome[] = []
try {
  for (const harness of chosenClis) {
    await install(harness)
    for (const name of chosenScenarios) {
      stopping.signal.throwIfAborted()
      const outcome = await run(harness, name)
      outcomes.push(outcome)
      process.stderr.write(`${line(outcome)}\n`)
    }
  }
} catch (cause) {
  if (!stopping.signal.aborted) throw cause
}

report()
const bad = outcomes.filter(outcome => outcome.problems.length > 0).length
process.stdout.write(`${outcomes.length - bad} passed, ${bad} failed\n`)
process.exitCode = stopping.signal.aborted ? 130 : bad === 0 ? 0 : 1

async function run(harness: CliId, name: string): Promise<Outcome> {
  const scenario = SCENARIOS.find(candidate => candidate.name === name)
  return scenario === undefined
    ? await runQuickstart(harness, stopping.signal)
    : await runScenario(harness, scenario, stopping.signal)
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

function report(): void {
  const shown = chosenScenarios.filter(name => outcomes.some(outcome => outcome.scenario === name))
  const table = new Table({ head: ['harness', ...shown], style: { head: [], border: [] } })
  for (const harness of chosenClis) {
    const cells = shown.map(name => {
      const outcome = outcomes.find(candidate => candidate.harness === harness && candidate.scenario === name)
      return outcome === undefined ? '-' : cell(outcome)
    })
    table.push([harness, ...cells])
  }
  process.stdout.write(`${table.toString()}\nCalls matched, by harness:\n`)
  for (const harness of chosenClis) {
    const own = outcomes.filter(outcome => outcome.harness === harness)
    const total = own.reduce((sum, outcome) => sum + outcome.agreement.total, 0)
    const matched = own.reduce((sum, outcome) => sum + outcome.agreement.matched, 0)
    process.stdout.write(`  ${harness}: ${matched} of ${total}${ways(own)}\n`)
  }
  for (const outcome of outcomes.filter(({ problems, note }) => problems.length > 0 || note !== null))
    process.stdout.write(`${line(outcome)}\n`)
}

function cell({ problems, agreement, rows }: Outcome): string {
  const verdict = problems.length === 0 ? 'pass' : 'FAIL'
  const calls = agreement.total === 0 ? `${sum(rows, 'calls')} calls` : `${agreement.matched} of ${agreement.total}`
  const failed = sum(rows, 'failedCalls')
  return `${verdict}\n${calls}${failed === 0 ? '' : `\n${failed} failed`}`
}

function sum(rows: Outcome['rows'], key: 'calls' | 'failedCalls'): number {
  return rows.reduce((total, row) => total + row[key], 0)
}

function line({ harness, scenario, problems, note, seconds, rows, agreement, folder }: Outcome): string {
  const verdict = problems.length === 0 ? 'pass' : 'FAIL'
  const matched = agreement.total === 0 ? '' : `, calls matched: ${agreement.matched} of ${agreement.total}`
  const facts = rows.map(({ status, failureClass, traces, joins, breaks }) => {
    const ended = failureClass === null ? status : `${status} (${failureClass})`
    return `    ${ended}, ${traces} traces, joins ${JSON.stringify(joins)}, breaks ${JSON.stringify(breaks)}`
  })
  const why = [...problems, ...(note === null ? [] : [note]), ...(folder === null ? [] : [`see ${folder}`])]
  const lines = [...facts, ...why.map(text => `    ${text}`)]
  return `${verdict} ${harness} ${scenario} (${seconds.toFixed(0)} s)${matched}\n${lines.join('\n')}`
}

function ways(own: readonly Outcome[]): string {
  const counts = new Map<string, number>()
  for (const { agreement } of own)
    for (const [way, count] of Object.entries(agreement.ways)) counts.set(way, (counts.get(way) ?? 0) + count)
  return counts.size === 0 ? '' : ` (${[...counts].map(([way, count]) => `${way} ${count}`).join(', ')})`
}

function choice(args: readonly string[]): {
  readonly chosenClis: readonly CliId[]
  readonly chosenScenarios: readonly string[]
} {
  const wanted = args.filter(arg => arg !== '--only').flatMap(arg => arg.split(','))
  for (const name of wanted)
    if (!names.includes(name) && !clis.some(id => id === name))
      throw new Error(`unknown name ${name}: wanted one of ${[...clis, ...names].join(', ')}`)
  const chosen = clis.filter(id => wanted.includes(id))
  const scenarios = names.filter(name => wanted.includes(name))
  return {
    chosenClis: chosen.length > 0 ? chosen : clis,
    chosenScenarios: scenarios.length > 0 ? scenarios : names,
  }
}

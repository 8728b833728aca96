// One scenario with one real CLI through the whole service: embedded policy, a forwarder that plays faults before it, the service, and
// a forwarder in front of the gateway that sees what the harness sees. Everything it starts ends with it.

import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { startService } from '../../actors/service.js'
import { realClock } from '../../actors/system/clock.js'
import { connectionTo } from '../../src/cli/connection.js'
import { exampleTask } from '../../src/cli/quickstart/example.js'
import { isAccounted, type SessionRow, sessionRow } from '../../src/cli/quickstart/view.js'
import { loadPlan } from '../../src/config/load.js'
import { isObject } from '../../src/domain/json.js'
import { createLogger } from '../../src/observability/logger.js'
import { sessionLayout } from '../../src/runtimes/environment.js'
import { startSimulation } from '../../src/simulation/server.js'
import { upstreams } from '../../src/upstreams/registry.js'
import { type Agreement, agreement, type CapturedCall, capturedCalls, isGeneration } from './check.js'
import { expectationProblems, sessionFacts, summedCounts, summedFacts } from './expect.js'
import { readHistory } from './history.js'
import { failed, type Outcome, since } from './outcome.js'
import type { CliId, Scenario } from './scenarios.js'
import { windowProblems } from './window.js'
import { type Exchange, forwarder } from './wire.js'

/** Tokens; written into each CLI's own config and kept by the engine too. */
const WINDOW = 131_072
const MODEL = 'policy'
const DEFAULT_SEED = 3

interface SessionRun {
  readonly result: Readonly<Record<string, unknown>>
  readonly row: SessionRow
  readonly calls: readonly CapturedCall[]
  readonly agreed: Agreement
  /** Of the harness with the gateway, of the gateway with the engine. */
  readonly views: readonly [readonly Exchange[], readonly Exchange[]]
  readonly stdout: string
}

export async function runScenario(
  harness: CliId,
  scenario: Scenario,
  signal: AbortSignal,
  isKept = false,
): Promise<Outcome> {
  const startedAt = performance.now()
  const base = join(homedir(), '.local', 'state')
  mkdirSync(base, { recursive: true })
  const folder = mkdtempSync(join(base, 'sextant-e2e-'))
  const clock = realClock()
  const closers: (() => Promise<unknown>)[] = []
  let isGone = false
  try {
    const simulation = await startSimulation({ clock, plan: simulationPlan() })
    closers.unshift(() => simulation.close())
    let withTools = 0
    const engine = await forwarder({
      host: '127.0.0.1',
      port: 0,
      target: simulation.url,
      clock,
      spoil: exchange => {
        if (!exchange.path.endsWith('/chat/completions') || !readHistory(exchange.body).hasTools) return null
        return scenario.fault?.(withTools++, harness) ?? null
      },
    })
    closers.unshift(() => engine.close())
    const port = await freePort()
    const service = await startService(planFor(folder, port, engine.url), {
      clock,
      threads: 'real',
      log: createLogger({ level: 'error' }),
      logLevel: 'error',
    })
    closers.unshift(() => service.stop())
    // Another loopback address, the same port: the service tells harnesses this one.
    let window: readonly string[] | null = null
    const front = await forwarder({
      host: '127.0.0.2',
      port,
      target: `http://127.0.0.1:${port}`,
      clock,
      spoil: exchange => {
        // The harness's home ends with the session, so it is looked into while the harness runs.
        const session = sessionFolder(folder)
        if (window === null && session !== null && isGeneration(exchange))
          window = windowProblems(harness, WINDOW, sessionLayout(session).homeDir, exchange)
        return null
      },
    })
    closers.unshift(() => front.close())
    const connection = connectionTo(service.controlUrl, service.token)
    closers.unshift(() => connection.close())
    const runs: SessionRun[] = []
    for (const seed of scenario.seeds ?? [DEFAULT_SEED]) {
      const from = [front.exchanges.length, engine.exchanges.length] as const
      withTools = 0
      const task = await taskFor(harness, scenario, seed)
      await connection.submit(task)
      const deadline = clock.now() + scenario.limitMs
      const result = await ended(connection, String(task['task_id']), deadline, () => clock.now(), signal)
      if (result === null)
        return failed(harness, scenario.name, startedAt, `did not end within ${scenario.limitMs / 1000} s`, folder)
      const stdout = printed(join(folder, 'state', 'sessions', String(result['session_id'])))
      const views = [front.exchanges.slice(from[0]), engine.exchanges.slice(from[1])] as const
      runs.push({
        result,
        row: sessionRow(result),
        calls: capturedCalls(result),
        agreed: agreement(result, ...views, stdout),
        views,
        stdout,
      })
    }
    const expected = scenario.expect(harness)
    const problems = [
      ...runs.flatMap(({ row, calls, result, agreed }) => [
        ...expectationProblems(expected, row, calls, result),
        ...(isAccounted(row) ? [] : ['accounts do not balance']),
        ...agreed.problems,
      ]),
      ...(window ?? []),
    ]
    isGone = problems.length === 0 && !isKept
    if (!isGone) keep(folder, runs)
    return {
      harness,
      scenario: scenario.name,
      skipped: null,
      problems,
      agreement: summed(runs.map(({ agreed }) => agreed)),
      rows: runs.map(({ row }) => row),
      facts: summedFacts(runs.map(({ result, row, calls }) => sessionFacts(result, row, calls))),
      basis: expected.basis,
      note: expected.note ?? null,
      seconds: since(startedAt),
      folder: isGone ? null : folder,
    }
  } finally {
    for (const close of closers) await close()
    if (isGone) rmSync(folder, { recursive: true, force: true })
  }
}

const simulationPlan = () => ({
  port: 0,
  modelName: MODEL,
  contextWindow: WINDOW,
  seed: 1,
  prefillMsPer1k: 0,
  decodeMsPerToken: 0,
  solveProbability: 1,
  drift: [],
})

function planFor(folder: string, port: number, engineUrl: string) {
  return loadPlan({
    path: null,
    profiles: Object.keys(upstreams),
    overrides: {
      control: { port: 0 },
      gateway: { port, publicUrl: `http://127.0.0.2:${port}` },
      stages: { init: 1, ready: 1, running: 1, postrun: 1 },
      upstreams: [
        { id: 'engine', profile: 'vllm', urls: [engineUrl], modelServed: MODEL, contextWindow: WINDOW, probe: 'off' },
      ],
      simulation: null,
      stateDir: join(folder, 'state'),
      saveDir: join(folder, 'results'),
    },
  })
}

/** The bundled task, with the scenario's script in place of its own; graded only where the script solves it. */
async function taskFor(harness: CliId, scenario: Scenario, seed: number): Promise<Record<string, unknown>> {
  const settings = { taskId: `${harness}-${scenario.name}-${seed}`, harness, samples: 1, seed }
  const task = await exampleTask('fix-calculator', settings)
  const runtime = isObject(task['runtime']) ? task['runtime'] : {}
  const prepare = scenario.prepare?.[harness]
  const steps = Array.isArray(runtime['prepare']) ? runtime['prepare'] : []
  const isSolved = scenario.script === 'fix-calculator'
  return {
    ...task,
    ...(!isSolved && {
      instruction: `Work in this folder as far as you like.\n\nScenario: ${scenario.script}`,
      evaluator: { strategy: 'session_completed' },
    }),
    timeout_seconds: scenario.limitMs / 1000,
    limits: { context_window: WINDOW },
    agent: { harness, settings: scenario.settings?.[harness] ?? {} },
    ...(prepare !== undefined && {
      runtime: { ...runtime, prepare: [...steps, { type: 'exec', command: prepare }] },
    }),
    ...(scenario.maxTokens !== undefined && { sampling: { seed, max_tokens: scenario.maxTokens } }),
  }
}

async function ended(
  connection: ReturnType<typeof connectionTo>,
  taskId: string,
  deadline: number,
  now: () => number,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>> | null> {
  while (now() < deadline) {
    signal.throwIfAborted()
    const { results } = await connection.task(taskId, 5)
    if (results[0] !== undefined) return results[0]
  }
  return null
}

function sessionFolder(folder: string): string | null {
  const sessions = join(folder, 'state', 'sessions')
  const [name] = existsSync(sessions) ? readdirSync(sessions).filter(entry => entry.startsWith('s-')) : []
  return name === undefined ? null : join(sessions, name)
}

function printed(session: string): string {
  const logs = sessionLayout(session).agentLogDir
  if (!existsSync(logs)) return ''
  return readdirSync(logs)
    .filter(name => name.endsWith('.stdout.log'))
    .map(name => readFileSync(join(logs, name), 'utf8'))
    .join('\n')
}

/** What a failed run is looked into with. */
function keep(folder: string, runs: readonly SessionRun[]): void {
  writeFileSync(join(folder, 'views.json'), JSON.stringify(runs, null, 1))
}

function summed(all: readonly Agreement[]): Agreement {
  const sum = (key: 'matched' | 'total'): number => all.reduce((total, one) => total + one[key], 0)
  return {
    matched: sum('matched'),
    total: sum('total'),
    ways: summedCounts(all.map(({ ways }) => ways)),
    problems: all.flatMap(one => one.problems),
  }
}

/** Below the range from which the system gives ports to outgoing connections, so that nobody takes it by chance meanwhile. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 30_000)
    const taken = await Promise.all(['127.0.0.1', '127.0.0.2'].map(host => isTaken(host, port)))
    if (!taken.includes(true)) return port
  }
}

async function isTaken(host: string, port: number): Promise<boolean> {
  const server = createServer()
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch {
    return true
  }
  server.close()
  await once(server, 'close')
  return false
}

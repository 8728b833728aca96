// The main job as a newcomer runs it, with a real harness CLI: what the README promises of `npm run quickstart`.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { isAccounted, type SessionRow, sum } from '../../src/cli/quickstart/view.js'
import { processesWith } from '../support/leftovers.js'
import { projectRoot } from '../support/paths.js'

/** Five whole runs of a real CLI, on a machine that may be busy. */
const LIMIT_MS = 300_000
t.setTimeout(LIMIT_MS)

interface Outcome {
  readonly code: number | null
  readonly rows: readonly SessionRow[]
  readonly figures: { readonly secondsToFirstReward: number | null; readonly saveDir: string; readonly taskId: string }
}

/** A state folder of its own: outside any git work tree, and not below the system's temporary folder. */
function stateHome(t: Test): string {
  const folder = mkdtempSync('/var/tmp/sextant-quickstart-')
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** `env -u`: the test runner would otherwise load itself into every Node process below, the CLIs included. */
function start(folder: string, argv: readonly string[], stdout: 'pipe' | 'ignore' = 'pipe'): ChildProcess {
  return spawn('/usr/bin/env', ['-u', 'NODE_OPTIONS', ...argv], {
    cwd: projectRoot,
    env: { ...process.env, XDG_STATE_HOME: folder },
    stdio: ['ignore', stdout, 'pipe'],
    detached: true,
  })
}

async function quickstart(t: Test, ...flags: string[]): Promise<Outcome> {
  const folder = stateHome(t)
  const child = start(folder, [process.execPath, 'dist/main.js', 'quickstart', '--json', ...flags])
  let stdout = ''
  let stderr = ''
  child.stdout?.on('data', chunk => {
    stdout += String(chunk)
  })
  child.stderr?.on('data', chunk => {
    stderr += String(chunk)
  })
  const [code] = (await once(child, 'close')) as [number | null]
  const line = stdout.trim().split('\n').at(-1) ?? ''
  if (!line.startsWith('{')) throw new Error(`no figures, exit code ${code}: ${stderr.slice(-2_000)}`)
  t.strictSame(processesWith(folder), [], 'no process is left')
  return { code, ...(JSON.parse(line) as Omit<Outcome, 'code'>) }
}

/** What must be the same for the same seed (the ids of the trace, not the names of the sessions). */
function essence({ rows, figures }: Outcome): unknown[] {
  const folder = join(figures.saveDir, `task_${figures.taskId}`)
  const files = readdirSync(folder)
  return rows.map(row => {
    const file = files.find(name => name.includes(row.sessionId)) ?? ''
    const result = JSON.parse(readFileSync(join(folder, file), 'utf8')) as {
      trajectory: { traces: { response_ids: number[]; loss_mask: number[] }[] }
    }
    const [trace] = result.trajectory.traces
    const sampled = trace?.response_ids.filter((_, index) => trace.loss_mask[index] === 1)
    return { status: row.status, reward: row.reward, calls: row.calls, joins: row.joins, sampled }
  })
}

t.test(
  'both verdicts, every token accounted for, joins exact; same seed, same result',
  { timeout: LIMIT_MS },
  async t => {
    const first = await quickstart(t)
    t.equal(first.code, 0)
    t.equal(first.rows.length, 4)
    t.ok(first.rows.some(row => row.reward === 1) && first.rows.some(row => row.reward === 0), 'rewards 1 and 0')
    t.ok(
      first.rows.every(row => row.status === 'COMPLETED' && row.sampled > 0 && isAccounted(row)),
      'sampled = trained + set aside',
    )
    t.ok(
      first.rows.some(row => row.longestExactTrace > 1),
      'a multi-call trace with all joins exact',
    )
    t.ok((first.figures.secondsToFirstReward ?? Number.POSITIVE_INFINITY) < 120, 'first reward within 120 s')
    // Fewer samples: what a sample gives depends on the seed and its index, not on its siblings.
    const second = await quickstart(t, '--samples', '2')
    t.equal(second.rows.length, 2)
    t.strictSame(essence(second), essence(first).slice(0, 2))
  },
)

t.test('--drift breaks prefixes, and the causes are named', { timeout: LIMIT_MS }, async t => {
  const { code, rows } = await quickstart(t, '--drift', '--samples', '1')
  t.equal(code, 0)
  t.ok(sum(rows.map(row => row.joins.rewritten ?? 0)) > 0)
  t.ok(sum(rows.map(row => row.breaks.arguments_reserialised ?? 0)) > 0)
  t.ok(rows.every(isAccounted))
})

t.test("--kill ends the proxy's thread in mid-run: no recorded token is lost", { timeout: LIMIT_MS }, async t => {
  const { rows } = await quickstart(t, '--kill', '--samples', '2')
  t.equal(rows.length, 2)
  t.ok(rows.every(row => isAccounted(row) && row.lost === 0))
  t.ok(
    rows.some(row => row.reward !== null),
    'sessions went on at the same address',
  )
})

t.test('Ctrl-C through npm in mid-run stops everything', { timeout: LIMIT_MS }, async t => {
  const folder = stateHome(t)
  const child = start(folder, ['npm', 'run', '--silent', 'quickstart'], 'ignore')
  // Closed when every process that writes to it has ended, npm's children included.
  const closed = once(child, 'close')
  await new Promise<void>(resolve => {
    child.stderr?.on('data', chunk => {
      if (String(chunk).includes('RUNNING')) resolve()
    })
  })
  t.ok(processesWith(folder).length > 0, 'it runs')
  // A terminal sends the signal to the whole group.
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGINT')
  await closed
  t.strictSame(processesWith(folder), [], 'no process is left')
})

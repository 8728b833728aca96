// Sessions through the real pools: threads, processes, folders.

import { access, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { localRuntime } from '../support/session-fixtures.js'
import { type StageWorld, stageWorld } from '../support/stage-world.js'

t.setTimeout(240_000)

/** One world for all but READY's test: its threads take seconds to start on a busy machine. */
const world = stageWorld(t, { plan: { stages: { init: 2, ready: 2, running: 4, postrun: 2 } } })

/** Waits until the run of `name` has made `started` in its workspace. */
async function started(world: StageWorld, name: string): Promise<void> {
  while (!(await exists(join(world.sessionDir(name), 'workspace', 'started')))) await world.describe()
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

t.test('a session goes through all three pools and leaves artifacts and logs, nothing else', async t => {
  world.start('s-whole', 'echo "key $OPENAI_API_KEY"; echo done > result.txt')
  const result = await world.result('s-whole')
  t.match(result, {
    status: 'COMPLETED',
    error: null,
    failureClass: null,
    agentResult: { status: 'completed', returnCode: 0 },
    evaluation: { outcomeReward: 1 },
    metadata: { teardown: { proven: true } },
  })
  t.strictSame(result.trajectory.ledger.tokens, { sampled: 6, trained: 6, setAside: {} })
  t.equal(result.trajectory.traces[0]?.reward, 1)
  for (const key of ['init_ms', 'run_ms', 'postrun_ms', 'agent_exec_ms', 'build_ms', 'eval_ms', 'e2e_ms'] as const) {
    t.type(result.timing[key], 'number', key)
  }
  t.strictSame((await readdir(world.sessionDir('s-whole'))).sort(), ['artifacts', 'logs'])
  t.equal(await world.processesOf('s-whole'), 0)
  const log = await readFile(join(world.sessionDir('s-whole'), 'logs', 'agent', 'step.00.stdout.log'), 'utf8')
  t.equal(log, 'key [session key]\n', 'the key is in no log')
  const described = await world.describe()
  t.match(described, { readyDepth: 0, runInflight: 0, initInflight: 0, postrunInflight: 0 })
})

t.test('a pool thread dies in mid-run: clear outcome, nothing left, the next session works', async t => {
  world.start('s-killed', 'setsid sleep 600 & touch started; sleep 600')
  await started(world, 's-killed')
  t.ok((await world.processesOf('s-killed')) >= 2)
  for (const index of [1, 2]) world.stages.tell({ type: 'kill-pool-thread', pool: 'running', index })
  const result = await world.result('s-killed')
  t.match(result, { status: 'ERROR', error: /agent execution failed: the running thread ended/, evaluation: null })
  t.equal(result.failureClass, 'infrastructure')
  t.strictSame(result.trajectory.ledger.tokens, { sampled: 6, trained: 0, setAside: { session_error: 6 } })
  t.equal(result.trajectory.traces.length, 1, 'traces are kept, masked')
  t.equal(await world.processesOf('s-killed'), 0)
  world.start('s-next', 'true')
  t.match(await world.result('s-next'), { status: 'COMPLETED' })
})

t.test('runs lost to a neighbour’s crash are each reported, once', async t => {
  const names = ['s-a', 's-b', 's-c', 's-d']
  for (const name of names) world.start(name, 'touch started; sleep 600')
  for (const name of names) await started(world, name)
  world.stages.tell({ type: 'kill-pool-thread', pool: 'running', index: 1 })
  const first = await Promise.race(names.map(name => world.result(name)))
  t.equal(first.failureClass, 'infrastructure')
  world.stages.tell({ type: 'kill-pool-thread', pool: 'running', index: 1 })
  const results = await Promise.all(names.map(name => world.result(name)))
  for (const result of results) t.match(result, { status: 'ERROR', failureClass: 'infrastructure' })
  for (const name of names) t.equal(await world.processesOf(name), 0)
  t.match(await world.describe(), { runInflight: 0, readyDepth: 0 })
})

t.test('a running session that is cancelled: one kill, no trained token, its slot free', async t => {
  const session = world.start('s-cancel', 'trap "" TERM; touch started; sleep 600')
  await started(world, 's-cancel')
  session.tell({ type: 'cancel-session', reason: 'task cancelled' })
  session.tell({ type: 'cancel-session', reason: 'again' })
  const result = await world.result('s-cancel')
  t.match(result, { status: 'ERROR', error: 'session cancelled', metadata: { cancel_reason: 'task cancelled' } })
  t.strictSame(result.trajectory.ledger.tokens, { sampled: 6, trained: 0, setAside: { session_error: 6 } })
  t.equal(await world.processesOf('s-cancel'), 0)
  t.match(await world.describe(), { runInflight: 0 })
})

t.test('capture-7: an agent that runs out of its budget is TIMEOUT, with traces that stay trainable', async t => {
  world.start('s-slow', 'sleep 600', { agentTimeoutSeconds: 0.4 })
  const result = await world.result('s-slow')
  t.match(result, {
    status: 'TIMEOUT',
    failureClass: 'policy',
    agentResult: { status: 'timeout', timeoutSource: 'agent', timeoutStage: 'exec', returnCode: -1 },
  })
  t.equal(result.trajectory.ledger.tokens.trained, 6)
})

t.test('a prepare command that fails is ERROR, environment, and its folders go', async t => {
  const prepare = [{ type: 'exec', command: 'echo no >&2; exit 5', max_attempts: 1, retry_backoff_seconds: 0 }] as const
  world.start('s-prepare', 'true', { runtime: { ...localRuntime, prepare } })
  const result = await world.result('s-prepare')
  t.match(result, {
    status: 'ERROR',
    error: /runtime initialization failed: prepare\[0\]: the command exited with 5: no/,
    failureClass: 'environment',
  })
  t.strictSame((await readdir(world.sessionDir('s-prepare'))).sort(), ['artifacts', 'logs'])
})

t.test('INIT that outlasts the session budget is TIMEOUT in stage init', async t => {
  const prepare = [{ type: 'exec', command: 'sleep 600', max_attempts: 1, retry_backoff_seconds: 0 }] as const
  world.start('s-init', 'true', { runtime: { ...localRuntime, prepare }, timeoutSeconds: 0.5 })
  t.match(await world.result('s-init'), {
    status: 'TIMEOUT',
    agentResult: { timeoutSource: 'session', timeoutStage: 'init' },
  })
  t.equal(await world.processesOf('s-init'), 0)
})

t.test('READY never exceeds its limit while RUNNING is slow', async t => {
  const slow = stageWorld(t, { plan: { stages: { init: 3, ready: 2, running: 1, postrun: 2 } } })
  const names = Array.from({ length: 7 }, (_, i) => `s-${i}`)
  const gate = join(slow.plan.stateDir, 'gate')
  for (const name of names) slow.start(name, `until [ -e '${gate}' ]; do sleep 0.02; done`)
  for (;;) {
    const { readyDepth, initInflight } = await slow.describe()
    if (readyDepth === 2 && initInflight === 0) break
  }
  t.match(await slow.describe(), { readyDepth: 2, runInflight: 1, initQueueDepth: 4, readyHighWater: 2 })
  await writeFile(gate, '')
  for (const result of await Promise.all(names.map(name => slow.result(name)))) t.equal(result.status, 'COMPLETED')
  t.equal((await slow.describe()).readyHighWater, 2)
})

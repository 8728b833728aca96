// Tasks that hear nothing: every stage is stopped by force, every session ends, nothing is left.

import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { projectRoot } from '../support/paths.js'
import { localRuntime } from '../support/session-fixtures.js'
import { stageWorld } from '../support/stage-world.js'

t.setTimeout(120_000)

const deaf = pathToFileURL(join(projectRoot, 'test/fixtures/pool-tasks/deaf.mjs')).href
const stages = { init: 1, ready: 1, running: 1, postrun: 1 }

t.test('a deaf INIT is ended with its thread; the session that was cancelled ends', async t => {
  const world = stageWorld(t, { taskFiles: { init: deaf }, stopMs: 100, plan: { stages } })
  const session = world.start('s-init', 'true')
  await world.reached('s-init', 'INITIALIZING')
  session.tell({ type: 'cancel-session', reason: 'test' })
  t.match(await world.result('s-init'), { status: 'ERROR', error: 'session cancelled' })
  t.match(await world.describe(), { initInflight: 0 })
})

t.test('a deaf run is given up after the kill of its processes, and the session still gets its traces', async t => {
  const world = stageWorld(t, { taskFiles: { running: deaf }, stopMs: 100, plan: { stages } })
  world.start('s-run', 'true', { agentTimeoutSeconds: 0.3 })
  const result = await world.result('s-run')
  t.match(result, {
    status: 'TIMEOUT',
    agentResult: { status: 'timeout', timeoutSource: 'agent', timeoutStage: 'setup' },
  })
  t.strictSame(result.trajectory.ledger.tokens, { sampled: 6, trained: 0, setAside: { session_timeout: 6 } })
  t.match(await world.describe(), { runInflight: 0 })
})

t.test('a deaf POSTRUN is ended with its thread; the runtime is torn down from main', async t => {
  const world = stageWorld(t, { taskFiles: { postrun: deaf }, stopMs: 100, plan: { stages } })
  const session = world.start('s-post', 'true')
  await world.reached('s-post', 'POST_RUN')
  session.tell({ type: 'cancel-session', reason: 'test' })
  const result = await world.result('s-post')
  t.match(result, { status: 'ERROR', error: 'session cancelled', metadata: { teardown: { proven: true } } })
  t.strictSame((await readdir(world.sessionDir('s-post'))).sort(), ['artifacts', 'logs'])
  t.match(await world.describe(), { postrunInflight: 0, postrunQueueDepth: 0 })
})

t.test(
  'a stop of the system leaves no process and no work folder of sessions that were in INIT, READY and RUNNING',
  async t => {
    const world = stageWorld(t, { plan: { stages: { init: 2, ready: 1, running: 1, postrun: 1 } } })
    const wait = {
      type: 'exec',
      command: 'touch started; sleep 600',
      max_attempts: 1,
      retry_backoff_seconds: 0,
    } as const
    world.start('s-run', 'touch started; sleep 600')
    await world.reached('s-run', 'RUNNING')
    world.start('s-ready', 'true', {
      runtime: { ...localRuntime, prepare: [{ ...wait, command: 'setsid sleep 600 &' }] },
    })
    await world.reached('s-ready', 'READY')
    const started = (name: string) => join(world.sessionDir(name), 'workspace', 'started')
    while (!existsSync(started('s-run'))) await world.describe()
    t.ok((await world.processesOf('s-run')) > 0)
    t.ok((await world.processesOf('s-ready')) > 0)
    t.strictSame((await world.stop()).missed, [])
    for (const name of ['s-run', 's-ready']) {
      t.equal(await world.processesOf(name), 0, `${name} has no process`)
      t.strictSame((await readdir(world.sessionDir(name))).sort(), ['artifacts', 'logs'])
    }
  },
)

t.test('a stop in the middle of INIT leaves no process either', async t => {
  const world = stageWorld(t, { plan: { stages } })
  const command = 'touch started; sleep 600'
  const prepare = [{ type: 'exec', command, max_attempts: 1, retry_backoff_seconds: 0 }] as const
  world.start('s-init', 'true', { runtime: { ...localRuntime, prepare } })
  while (!existsSync(join(world.sessionDir('s-init'), 'workspace', 'started'))) await world.describe()
  t.strictSame((await world.stop()).missed, [])
  t.equal(await world.processesOf('s-init'), 0)
  t.strictSame((await readdir(world.sessionDir('s-init'))).sort(), ['artifacts', 'logs'])
})

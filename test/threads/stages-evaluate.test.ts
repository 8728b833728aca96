// POSTRUN with a real grader through the real pools: fresh copy, failing and endless graders, a cancel in mid-grading, isolation.

import { access, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { JsonObject } from '../../src/domain/json.js'
import type { SessionSpec } from '../../src/domain/session.js'
import type { PrepareAction } from '../../src/domain/task.js'
import { localRuntime } from '../support/session-fixtures.js'
import { stageWorld } from '../support/stage-world.js'

t.setTimeout(240_000)

const exec = (command: string): PrepareAction => ({ type: 'exec', command, max_attempts: 1, retry_backoff_seconds: 0 })

/** A repository whose test passes when `answer.txt` says 42. */
const prepare = [
  exec(`git init -q && echo 41 > answer.txt
cat > test.sh <<'END'
[ "$(cat answer.txt)" = 42 ] && echo "PASSED tests/test_answer.py::test_42" || echo "FAILED tests/test_answer.py::test_42"
env | grep -c 'API_KEY' ; true
END
git add -A && git commit -qm base`),
]

const graded = (config: JsonObject = {}): Partial<SessionSpec> => ({
  runtime: { ...localRuntime, prepare },
  evaluator: {
    strategy: 'test_on_output',
    config: { test_command: 'bash test.sh', expected_output_json: { test_42: 'PASSED' }, ...config },
    env: {},
    refresh_runtime: null,
  },
})

const world = stageWorld(t, { plan: { stages: { init: 2, ready: 2, running: 2, postrun: 2 } } })

t.test('the fix is graded in a fresh copy, with the agent’s processes gone before', async t => {
  // It waits for the grader and would undo the fix under its eyes.
  const spoiler = 'until [ -e ../eval_runtime ]; do sleep 0.01; done; echo 0 > answer.txt'
  world.start('s-good', `echo 42 > answer.txt; (setsid bash -c '${spoiler}' >/dev/null 2>&1 &)`, graded())
  const good = await world.result('s-good')
  t.match(good, { status: 'COMPLETED', evaluation: { strategy: 'test_on_output', outcomeReward: 1 } })
  t.equal(good.trajectory.traces[0]?.reward, 1)
  for (const key of ['eval_ms', 'eval_prepare_ms', 'eval_container_start_ms', 'eval_runtime_validation_ms'] as const) {
    t.type(good.timing[key], 'number', key)
  }
  t.strictSame((await readdir(world.sessionDir('s-good'))).sort(), ['artifacts', 'logs'])
  t.match(await readFile(join(world.sessionDir('s-good'), 'artifacts', 'patch.diff'), 'utf8'), /\+42/)
  world.start('s-bad', 'echo 43 > answer.txt', graded())
  const bad = await world.result('s-bad')
  t.match(bad, { status: 'COMPLETED', failureClass: null, evaluation: { outcomeReward: 0 } })
  t.equal(bad.trajectory.ledger.tokens.trained, 6, 'a wrong answer is trained on')
})

t.test('a grader that fails is ERROR, grader; traces are kept and masked', async t => {
  world.start('s-grader', 'echo 42 > answer.txt', graded({ patch_command: 'echo broken >&2; exit 3' }))
  const result = await world.result('s-grader')
  t.match(result, { status: 'ERROR', error: /evaluator failed: /, failureClass: 'grader', evaluation: null })
  t.equal(result.trajectory.traces.length, 1)
  t.strictSame(result.trajectory.ledger.tokens, { sampled: 6, trained: 0, setAside: { session_error: 6 } })
})

t.test('a fresh copy that fails once is made again; one that fails twice is ERROR, infrastructure', async t => {
  const mark = join(world.plan.stateDir, 'prepared-once')
  const base = graded()
  const evalPrepare = (command: string): Partial<SessionSpec> => ({
    ...base,
    runtime: { ...localRuntime, prepare, eval_prepare: [exec(command), ...prepare] },
  })
  // What the first attempt left must be gone: mkdir fails where the folder is there.
  const once = `mkdir left && { [ -e '${mark}' ] || { touch '${mark}'; exit 7; }; }`
  world.start('s-once', 'echo 42 > answer.txt', evalPrepare(once))
  const good = await world.result('s-once')
  t.match(good, { status: 'COMPLETED', evaluation: { outcomeReward: 1, metadata: { retried_after: /fresh copy: / } } })
  const count = join(world.plan.stateDir, 'attempts')
  world.start('s-twice', 'echo 42 > answer.txt', evalPrepare(`echo x >> '${count}'; exit 7`))
  const bad = await world.result('s-twice')
  t.match(bad, {
    status: 'ERROR',
    error: /evaluator failed: fresh copy/,
    failureClass: 'infrastructure',
    evaluation: null,
  })
  t.equal(await readFile(count, 'utf8'), 'x\nx\n', 'two attempts, no more')
  t.equal(bad.trajectory.traces.length, 1)
  t.equal(await world.processesOf('s-twice'), 0)
})

t.test('a grader without end is TIMEOUT, grader; nothing of it lives on', async t => {
  const endless = { test_command: 'sleep 600', test_timeout: 0.3 }
  world.start('s-endless', 'echo 42 > answer.txt', graded(endless))
  const result = await world.result('s-endless')
  t.match(result, { status: 'TIMEOUT', failureClass: 'grader', metadata: { verifier_timeout: true } })
  t.strictSame(result.trajectory.ledger.tokens.setAside, { session_timeout: 6 })
  t.equal(await world.processesOf('s-endless'), 0)
})

t.test('a cancel during the evaluation ends it: no trained token, folder and processes gone', async t => {
  const flag = join(world.plan.stateDir, 'grading')
  const session = world.start(
    's-cancelled',
    'echo 42 > answer.txt',
    graded({ test_command: `touch '${flag}'; sleep 600` }),
  )
  await world.reached('s-cancelled', 'EVALUATING')
  while (
    !(await access(flag).then(
      () => true,
      () => false,
    ))
  )
    await world.describe()
  session.tell({ type: 'cancel-session', reason: 'task cancelled' })
  const result = await world.result('s-cancelled')
  t.match(result, { status: 'ERROR', error: 'session cancelled', evaluation: null, failureClass: null })
  t.strictSame(result.trajectory.ledger.tokens, { sampled: 6, trained: 0, setAside: { session_error: 6 } })
  t.equal(await world.processesOf('s-cancelled'), 0)
  t.strictSame((await readdir(world.sessionDir('s-cancelled'))).sort(), ['artifacts', 'logs'])
})

t.test('threads of RUNNING may die while another session is graded', async t => {
  world.start('s-steady', 'echo 42 > answer.txt', graded({ test_command: 'sleep 1; bash test.sh' }))
  await world.reached('s-steady', 'EVALUATING')
  for (const index of [1, 2]) world.stages.tell({ type: 'kill-pool-thread', pool: 'running', index })
  t.match(await world.result('s-steady'), { status: 'COMPLETED', evaluation: { outcomeReward: 1 } })
})

t.test('a POSTRUN thread that dies in mid-grading: the ledger is built again, the rest is torn down', async t => {
  const flag = join(world.plan.stateDir, 'dying')
  const session = world.start('s-dying', 'echo 42 > answer.txt', graded({ test_command: `touch '${flag}'; sleep 600` }))
  session.tell({ type: 'completion-recorded', calls: 2, turns: 2, promptTokens: 12, sampledTokens: 6 })
  while (
    !(await access(flag).then(
      () => true,
      () => false,
    ))
  )
    await world.describe()
  for (const index of [1, 2]) world.stages.tell({ type: 'kill-pool-thread', pool: 'postrun', index })
  const result = await world.result('s-dying')
  t.match(result, {
    status: 'ERROR',
    failureClass: 'infrastructure',
    evaluation: null,
    metadata: { teardown: { proven: true } },
  })
  t.equal(result.metadata['lost'], undefined)
  t.equal(await world.processesOf('s-dying'), 0)
  world.start('s-after', 'echo 42 > answer.txt', graded())
  t.match(await world.result('s-after'), { status: 'COMPLETED', evaluation: { outcomeReward: 1 } })
})

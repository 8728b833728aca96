import t from 'tap'
import type { EvaluatorContext } from '../../../src/evaluators/base.js'
import { sessionCompleted } from '../../../src/evaluators/session-completed.js'
import { localSpec } from '../../support/local-runtime.js'
import { agentResult, emptyTrajectory } from '../../support/outcomes.js'
import { wallClock } from '../../support/wall-clock.js'

const context = (fields: Partial<EvaluatorContext>): EvaluatorContext => ({
  sessionId: 's-1',
  taskId: 'task-1',
  sessionDir: '/none',
  artifactsDir: '/none/artifacts',
  logsDir: '/none/logs',
  agentResult: agentResult(),
  trajectory: emptyTrajectory(),
  runtimeSpec: localSpec,
  runtime: null,
  refreshRuntime: false,
  freshRuntime: () => Promise.reject(new Error('no fresh copy is wanted')),
  env: {},
  workspaceLitter: [],
  clock: wallClock,
  timeoutMs: 1_000,
  signal: new AbortController().signal,
  ...fields,
})

t.test('reward 1 needs a completed agent and a completed build', async t => {
  const reward = async (fields: Partial<EvaluatorContext>) =>
    (await sessionCompleted.evaluate({}, context(fields))).outcomeReward
  t.equal(await reward({}), 1)
  t.equal(await reward({ agentResult: agentResult({ status: 'failed' }) }), 0)
  t.equal(await reward({ agentResult: agentResult({ status: 'timeout' }) }), 0)
  t.equal(await reward({ trajectory: emptyTrajectory({ status: 'ERROR' }) }), 0)
})

t.test('it takes no settings', async t => {
  const spec = { strategy: 'session_completed', config: { x: 1 }, env: {}, refresh_runtime: null }
  t.match(sessionCompleted.check(spec), [{ path: 'x' }])
  await t.rejects(sessionCompleted.evaluate({ x: 1 }, context({})), { code: 'EVAL_FAILED' })
})

// A thread dies while something of a session is under way in it: a model call, INIT, POSTRUN, a generation. The session ends with a clear
// outcome that blames the infrastructure, the next session works, and nothing is left behind. killed.test.ts has the deaths between calls.

import { existsSync, mkdirSync } from 'node:fs'
import { watch } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import type { SimulationMessage } from '../../actors/protocol/simulation.js'
import { holdings, nextWorksAndNothingIsLeft } from '../support/holdings.js'
import { scriptedEngine } from '../support/scripted-engine.js'
import { agentTask, type RunningService, runService } from '../support/service.js'

t.setTimeout(180_000)

const WITHIN_MS = 60_000

type Result = Readonly<Record<string, unknown>>

const resultOf = async ({ connection }: RunningService): Promise<Result> =>
  (await connection.task('task-1', 120)).results[0] ?? {}

const ledgerOf = (result: Result) =>
  (
    result['trajectory'] as {
      metadata: { ledger: { calls: number; failed_calls: number; tokens: Record<string, number> } }
    }
  ).metadata.ledger

/** The file is there; its folder must be. Rejects after WITHIN_MS. */
async function appears(file: string): Promise<void> {
  const changes = watch(dirname(file), { signal: AbortSignal.timeout(WITHIN_MS) })
  if (existsSync(file)) return
  for await (const _ of changes) if (existsSync(file)) return
}

/** A command that leaves `mark`, starts a process that has nothing to do with it any more, and never ends. */
function hanging(t: Test, { folder }: RunningService): { readonly command: string; readonly mark: string } {
  const marks = join(folder, `marks-${t.name.replace(/\W+/g, '-')}`)
  mkdirSync(marks)
  const mark = join(marks, 'begun')
  return { mark, command: `setsid tail -f /dev/null & : > '${mark}'; exec tail -f /dev/null` }
}

t.test("the proxy's thread under a model call: the cut call is counted and blamed on no harness", async t => {
  const never = new Promise<void>(() => {})
  const engine = await scriptedEngine(t, (_body, index) => (index === 0 ? { before: never } : { pieces: ['done'] }))
  const before = await holdings()
  const running = await runService(t, {
    upstreams: [{ id: 'main', profile: 'vllm', urls: [engine.url], modelServed: 'served', probe: 'off' }],
  })
  const once = `
    const { OPENAI_BASE_URL: url, OPENAI_API_KEY: key } = process.env
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })
    const headers = { authorization: 'Bearer ' + key, 'content-type': 'application/json' }
    fetch(url + '/chat/completions', { method: 'POST', headers, body }).then(answer => process.exit(answer.ok ? 0 : 1), () => process.exit(3))`
  const command = `${JSON.stringify(process.execPath)} -e '${once.replaceAll("'", "'\\''")}'`
  await running.connection.submit(agentTask({ agent: { harness: 'shell', custom_shell: { command } } }))
  const { closedEarly } = await engine.generation(0)
  running.service.kill('proxy-1')
  t.equal(await closedEarly, true, 'the engine is let go')
  const result = await resultOf(running)
  t.match(result, {
    status: 'ERROR',
    error: 'the harness exited with 3',
    metadata: {
      failure_class: 'infrastructure',
      upstream_failures: { count: 1, by_status: { 503: 1 }, ended_on_failure: true },
    },
  })
  t.match(ledgerOf(result), { calls: 0, failed_calls: 1, tokens: { sampled: 0, trained: 0 } })
  await nextWorksAndNothingIsLeft(t, running, before)
})

t.test('the threads of INIT: the environment is not blamed, and what INIT had started is gone', async t => {
  const before = await holdings()
  const running = await runService(t)
  const { command, mark } = hanging(t, running)
  await running.connection.submit(
    agentTask({ runtime: { backend: 'local', prepare: [{ type: 'exec', command }] }, timeout_seconds: 120 }),
  )
  await appears(mark)
  for (const thread of ['init-1', 'init-2']) running.service.kill(thread)
  const result = await resultOf(running)
  t.match(result, {
    status: 'ERROR',
    error: /^runtime initialization failed: the init thread ended/,
    metadata: { failure_class: 'infrastructure', teardown: { proven: true } },
  })
  t.match(ledgerOf(result), { calls: 0, failed_calls: 0, tokens: { sampled: 0 } })
  await nextWorksAndNothingIsLeft(t, running, before)
})

t.test('the threads of POSTRUN: what was captured is built again of the store, without a reward', async t => {
  const before = await holdings()
  const running = await runService(t)
  const { command, mark } = hanging(t, running)
  await running.connection.submit(
    agentTask({
      evaluator: {
        strategy: 'test_on_output',
        config: { patch_command: command, test_command: 'true', expected_output_json: { a: 'PASSED' } },
      },
    }),
  )
  await appears(mark)
  for (const thread of ['postrun-1', 'postrun-2']) running.service.kill(thread)
  const result = await resultOf(running)
  t.match(result, {
    status: 'ERROR',
    error: /^post-run failed: the postrun thread ended/,
    metadata: { failure_class: 'infrastructure', teardown: { proven: true } },
  })
  const { calls, tokens } = ledgerOf(result)
  t.ok(calls >= 1)
  t.match(result, { metadata: { lost: undefined }, trajectory: { traces: { length: 1 } } })
  t.strictSame(tokens, { sampled: tokens['sampled'], trained: 0, set_aside: { session_error: tokens['sampled'] } })
  await nextWorksAndNothingIsLeft(t, running, before)
})

t.test('the inference server under a generation: a failed call, then the same server at the same address', async t => {
  const before = await holdings()
  const running = await runService(t, { simulation: { decodeMsPerToken: 20 } })
  const { system, plan } = running.service
  const url = plan.upstreams[0]?.urls[0]
  await running.connection.submit(agentTask({ timeout_seconds: 120 }))
  const simulation = system.refOf<SimulationMessage>({ system: 'simulation', path: '/simulation/' })
  for (let generating = false; !generating; ) {
    const load = await system.ask(simulation, { type: 'simulation-load-requested' }, WITHIN_MS)
    generating = load.running > 0
  }
  running.service.kill('simulation')
  const result = await resultOf(running)
  t.match(result, { status: 'COMPLETED', error: null, metadata: { upstream_failures: { ended_on_failure: false } } })
  const { calls, failed_calls } = ledgerOf(result)
  t.ok(calls >= 2 && failed_calls >= 1, `${calls} calls, ${failed_calls} failed`)
  t.equal((await fetch(`${url}/health`)).status, 200, 'on its old port')
  await nextWorksAndNothingIsLeft(t, running, before)
})

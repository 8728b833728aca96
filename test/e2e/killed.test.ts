// A thread dies in mid-session: the session ends with a clear outcome, what could be kept is kept, the next session works, and nothing
// is left behind.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { holdings, nextWorksAndNothingIsLeft } from '../support/holdings.js'
import { agentTask, type RunningService, runService } from '../support/service.js'

t.setTimeout(180_000)

type Result = Readonly<Record<string, unknown>>

/** Runs one session up to its first recorded call, kills `threads`, lets the agent go on, and returns the result. */
async function killedInMidRun(running: RunningService, threads: readonly string[]): Promise<Result> {
  const { connection, service, folder } = running
  const goFolder = join(folder, 'go')
  const go = join(goFolder, 'on')
  mkdirSync(goFolder)
  for await (const { type, data } of connection.events()) {
    if (type === 'hello') await connection.submit(agentTask({}, { AGENT_PAUSE_FILE: go }))
    if (type === 'session.progressed' && Number(data['calls']) >= 1) break
  }
  for (const thread of threads) service.kill(thread)
  writeFileSync(go, '')
  const task = await connection.task('task-1', 120)
  return task.results[0] ?? {}
}

const countsOf = (result: Result) => {
  const { metadata } = result['trajectory'] as {
    metadata: { ledger: { calls: number; tokens: Record<string, number> } }
  }
  return metadata.ledger
}

t.test("the proxy's thread: the session goes on with all its records", async t => {
  const before = await holdings()
  const running = await runService(t)
  const result = await killedInMidRun(running, ['proxy-1'])
  t.match(result, { status: 'COMPLETED', error: null })
  const ledger = countsOf(result)
  t.ok(ledger.calls >= 2, `${ledger.calls} calls, before and after the death`)
  await nextWorksAndNothingIsLeft(t, running, before)
})

t.test('the merge thread: what it held is read back from its shard, and the session goes on', async t => {
  const before = await holdings()
  const running = await runService(t)
  const result = await killedInMidRun(running, ['merge-1'])
  t.match(result, { status: 'COMPLETED', error: null, metadata: { failure_class: null } })
  const ledger = countsOf(result)
  t.ok(ledger.calls >= 2, `${ledger.calls} calls, before and after the death`)
  t.ok((ledger.tokens['trained'] ?? 0) > 0)
  await nextWorksAndNothingIsLeft(t, running, before)
})

t.test('the threads of RUNNING: the run is lost, its calls are kept and set aside', async t => {
  const before = await holdings()
  const running = await runService(t)
  const result = await killedInMidRun(running, ['running-1', 'running-2'])
  t.match(result, { status: 'ERROR', error: /agent execution failed/, metadata: { failure_class: 'infrastructure' } })
  const ledger = countsOf(result)
  t.ok(ledger.calls >= 1)
  t.equal(ledger.tokens['trained'], 0)
  await nextWorksAndNothingIsLeft(t, running, before)
})

t.test('the inference server: calls fail until it is back, then the session goes on', async t => {
  const before = await holdings()
  const running = await runService(t)
  const result = await killedInMidRun(running, ['simulation'])
  t.match(result, { status: 'COMPLETED' })
  await nextWorksAndNothingIsLeft(t, running, before)
})

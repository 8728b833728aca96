// The session actor in the real kernel with probes for stages, proxy, merge, rollout and reaper: who is told what, and what the
// key is seen by.

import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import type { MergeMessage } from '../../../../actors/protocol/merge.js'
import type { ProxyMessage } from '../../../../actors/protocol/proxy.js'
import type { ReaperMessage } from '../../../../actors/protocol/reaper.js'
import type { SessionMessage, SessionReport } from '../../../../actors/protocol/session.js'
import type { StagesMessage } from '../../../../actors/protocol/stages.js'
import { sessionProps } from '../../../../actors/session/actor.js'
import type { AnyMessage } from '../../../../actors/system/ref.js'
import {
  agentResult,
  postrunOutcome,
  runtimeHandle,
  sessionId,
  sessionSetup,
  sessionSpec,
} from '../../../support/session-fixtures.js'
import { createTestSystem } from '../../../support/test-system.js'

const WITHIN_MS = 2_000

function world(t: Test) {
  const { system, clock, probe, deadLetters } = createTestSystem(t)
  const rollout = probe<SessionReport>('rollout')
  const stages = probe<StagesMessage>('stages')
  const proxy = probe<ProxyMessage>('proxy')
  const merge = probe<MergeMessage>('merge')
  const reaper = probe<ReaperMessage>('reaper')
  const spec = sessionSpec({ limits: { ...sessionSpec().limits, max_turns: 5 }, models: { 'title-*': 'small' } })
  const session = system.spawn(
    sessionProps({
      shardLedger: null,
      setup: sessionSetup({ spec, createdAtMs: clock.now() }),
      attempt: 3,
      sideCalls: [{ name: 'title', noTools: true }],
      rollout: rollout.ref,
      stages: stages.ref,
      proxy: proxy.ref,
      merge: merge.ref,
      reaper: reaper.ref,
    }),
    's-1',
  )
  const tell = (message: SessionMessage) => session.tell(message)
  const registered = async () => {
    const put = await proxy.expectMessage('session-put', WITHIN_MS)
    put.replyTo.tell({ type: 'session-put-done', gatewayUrl: 'http://127.0.0.1:7' })
    return put.session
  }
  const initialised = async () => {
    await stages.expectMessage('init-requested', WITHIN_MS)
    tell({ type: 'init-started', atMs: clock.now() })
    const made = { runtime: runtimeHandle, harnessInstallDir: null, timing: {}, error: null, timedOut: false }
    tell({ type: 'init-finished', ...made, atMs: clock.now() })
  }
  return { system, clock, rollout, stages, proxy, merge, reaper, session, tell, registered, initialised, deadLetters }
}

t.test('a session goes its way: each party is told what it needs, and the key reaches the run alone', async t => {
  const w = world(t)
  t.match(await w.reaper.expectMessage('session-lives', WITHIN_MS), { sessionId: 's-1' })
  t.match(await w.merge.expectMessage('open-ledger', WITHIN_MS), { sessionId: 's-1' })
  const first = await w.registered()
  t.match(first, { state: 'registered', attempt: 3, limits: { max_turns: 5 }, sideCalls: [{ name: 'title' }] })
  await w.initialised()
  w.tell({ type: 'run-slot-granted', atMs: w.clock.now() })
  const second = await w.registered()
  t.match(second, { state: 'running', keyHash: first.keyHash, models: { 'title-*': 'small' } })
  const { job } = await w.stages.expectMessage('start-run', WITHIN_MS)
  t.match(job.sessionKey, /^sk-[A-Za-z0-9_-]{43}$/)
  t.equal(createHash('sha256').update(job.sessionKey).digest('hex'), first.keyHash)
  t.equal(job.gatewayUrl, 'http://127.0.0.1:7')
  w.tell({ type: 'completion-recorded', calls: 1, turns: 1, promptTokens: 11, sampledTokens: 7 })
  t.match(await w.rollout.expectMessage('session-progressed', WITHIN_MS), { calls: 1, sampledTokens: 7 })
  w.tell({ type: 'run-finished', result: agentResult(), timing: {}, atMs: w.clock.now() })
  const close = await w.proxy.expectMessage('session-close-requested', WITHIN_MS)
  t.notOk(
    w.merge.messages().some(message => message.type === 'ledger-seal-requested'),
    'nothing is sealed while calls may still come',
  )
  close.replyTo.tell({ type: 'session-closed', calls: 1, aborted: 0 })
  const seal = await w.merge.expectMessage('ledger-seal-requested', WITHIN_MS)
  seal.replyTo.tell({ type: 'ledger-sealed', ledger: { sessionId: sessionId('s-1'), calls: [], failed: [] } })
  await w.stages.expectMessage('postrun-requested', WITHIN_MS)
  w.tell({ type: 'postrun-started', atMs: w.clock.now() })
  w.tell({ type: 'postrun-finished', outcome: postrunOutcome(), atMs: w.clock.now() })
  const end = await w.rollout.expectMessage('session-ended', WITHIN_MS)
  t.equal(end.result.status, 'COMPLETED')
  await w.proxy.expectMessage('forget-session', WITHIN_MS)
  await w.merge.expectMessage('drop-ledger', WITHIN_MS)
  const told: readonly AnyMessage[] = [w.rollout, w.stages, w.proxy, w.merge, w.reaper].flatMap(
    (probe): readonly AnyMessage[] => probe.messages(),
  )
  const holders = told.filter(message => JSON.stringify(message).includes(job.sessionKey)).map(({ type }) => type)
  t.strictSame(holders, ['start-run'])
  await w.clock.settle()
  t.notOk(
    w.system.inspect().actors.some(actor => JSON.stringify(actor).includes('s-1/')),
    'the actor is gone',
  )
})

t.test('a proxy that does not answer is asked again; after its tries the session ends as infrastructure', async t => {
  const w = world(t)
  await w.proxy.expectMessage('session-put', WITHIN_MS)
  await w.clock.advance(6_000)
  await w.proxy.expectMessage('session-put', WITHIN_MS)
  await w.clock.advance(200_000)
  const { result } = await w.rollout.expectMessage('session-ended', WITHIN_MS)
  t.match(result, { status: 'ERROR', failureClass: 'infrastructure', error: /proxy: / })
})

t.test('a proxy that dies before the close does not keep the captured calls from the build', async t => {
  const w = world(t)
  await w.registered()
  await w.initialised()
  w.tell({ type: 'run-slot-granted', atMs: w.clock.now() })
  await w.registered()
  await w.stages.expectMessage('start-run', WITHIN_MS)
  w.tell({ type: 'run-finished', result: agentResult(), timing: {}, atMs: w.clock.now() })
  await w.proxy.expectMessage('session-close-requested', WITHIN_MS)
  await w.system.stopActor(w.proxy.ref)
  const seal = await w.merge.expectMessage('ledger-seal-requested', WITHIN_MS)
  seal.replyTo.tell({ type: 'ledger-sealed', ledger: { sessionId: sessionId('s-1'), calls: [], failed: [] } })
  t.match(await w.stages.expectMessage('postrun-requested', WITHIN_MS), { job: { evaluate: true, sessionError: null } })
})

t.test('the same proxy restart registers the session again, with the same key', async t => {
  const w = world(t)
  const first = await w.registered()
  await w.initialised()
  w.tell({ type: 'run-slot-granted', atMs: w.clock.now() })
  await w.registered()
  w.tell({ type: 'completion-recorded', calls: 4, turns: 4, promptTokens: 14, sampledTokens: 70 })
  w.tell({ type: 'pair-restarted', part: 'proxy' })
  t.match(await w.registered(), { state: 'running', keyHash: first.keyHash, firstSequence: 4 })
  const description = await w.system.ask(w.session, { type: 'session-described' }, WITHIN_MS)
  t.match(description, { status: 'RUNNING', calls: 4, sampledTokens: 70 })
})

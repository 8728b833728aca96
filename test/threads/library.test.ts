// Sextant as a library: a session actor and a proxy actor by themselves, with probes in the place of everyone else. Only what
// actors/index.ts offers is used to run them. The model call is a real one, over HTTP to the proxy's port.

import t from 'tap'
import {
  createSystem,
  type FrameReceived,
  type MergeProbe,
  type ProxyMessage,
  proxyAddress,
  proxyAlone,
  type ReaperMessage,
  type SessionReport,
  type StagesMessage,
  sessionProps,
} from '../../actors/index.js'
import type { CaptureFrame } from '../../src/wire/frames.js'
import { dialectCalls, gatewayPlan } from '../support/pair.js'
import { scriptedEngine } from '../support/scripted-engine.js'
import { agentResult, postrunOutcome, runtimeHandle, sessionSetup } from '../support/session-fixtures.js'
import { recordingLogger } from '../support/test-system.js'

const WITHIN_MS = 20_000

/** The next frame, which must be of that kind. */
async function nextFrame<K extends CaptureFrame['kind']>(
  probe: MergeProbe,
  kind: K,
): Promise<{ readonly received: FrameReceived; readonly frame: Extract<CaptureFrame, { readonly kind: K }> }> {
  const received = await probe.expectMessage('frame-received', WITHIN_MS)
  if (received.frame.kind !== kind) throw new Error(`wanted ${kind}, but ${received.frame.kind} came`)
  // `kind` is the discriminant of the union.
  return { received, frame: received.frame as Extract<CaptureFrame, { readonly kind: K }> }
}

for (const threads of ['inline', 'real'] as const) {
  t.test(`${threads} threads: a session and a proxy run among probes, from registration to the result`, async t => {
    const engine = await scriptedEngine(t, [{ pieces: ['Hello', '!'] }])
    const plan = gatewayPlan([{ urls: [engine.url] }])
    const system = createSystem({ plan, threads, log: recordingLogger(), logLevel: 'silent' })
    t.teardown(() => system.stop(WITHIN_MS))

    const merge = system.mergeProbe('merge')
    const stages = system.probe<StagesMessage>('stages')
    const rollout = system.probe<SessionReport>('rollout')
    const reaper = system.probe<ReaperMessage>('reaper')
    const { replies } = await system.startThreads('proxies', proxyAlone(plan, 1, 0, merge.attach))
    const setup = sessionSetup({ createdAtMs: system.clock.now() })
    const { sessionId } = setup.spec
    const session = system.spawn(
      sessionProps({
        shardLedger: null,
        setup,
        attempt: 1,
        sideCalls: [],
        rollout: rollout.ref,
        stages: stages.ref,
        proxy: system.refOf<ProxyMessage>(proxyAddress(1)),
        merge: merge.ref,
        reaper: reaper.ref,
      }),
      sessionId,
    )
    const atMs = () => system.clock.now()

    t.match(await reaper.expectMessage('session-lives', WITHIN_MS), { sessionId })
    t.match(await merge.expectMessage('open-ledger', WITHIN_MS), { sessionId })
    t.match(await stages.expectMessage('init-requested', WITHIN_MS), { sessionId, job: { spec: setup.spec } })
    session.tell({ type: 'init-started', atMs: atMs() })
    const made = { runtime: runtimeHandle, harnessInstallDir: null, timing: {}, error: null, timedOut: false }
    session.tell({ type: 'init-finished', ...made, atMs: atMs() })
    session.tell({ type: 'run-slot-granted', atMs: atMs() })
    const { job } = await stages.expectMessage('start-run', WITHIN_MS)
    t.equal(job.gatewayUrl, `http://127.0.0.1:${replies['proxy-1']?.['port']}`, "the run is given the proxy's address")

    const { path, body, text } = dialectCalls.openai_chat
    const call = (key: string) =>
      fetch(job.gatewayUrl + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    t.equal((await call('sk-of-nobody')).status, 401)
    let isAnswered = false
    const answering = call(job.sessionKey).then(response => {
      isAnswered = true
      return response
    })
    t.match((await nextFrame(merge, 'call-started')).frame, { sessionId, sequence: 0 })
    const captured = await nextFrame(merge, 'completion-captured')
    const { record } = captured.frame
    t.match(record, { sessionId, sequence: 0, dialect: 'openai_chat', finish: 'stop' })
    t.strictSame(record.promptIds, Int32Array.of(1, 2, 3), 'the ids that the engine told, as typed arrays')
    t.strictSame(record.sampledIds, Int32Array.of(10, 11, 99))
    t.strictSame(record.logprobs, Float32Array.of(-0.5, -0.5, -0.5))
    const held = await system.ask(system.refOf<ProxyMessage>(proxyAddress(1)), { type: 'proxy-described' }, WITHIN_MS)
    t.match(held, { inflight: 1, unacknowledged: 1 })
    t.notOk(isAnswered, 'the answer waits for the acknowledgement')
    merge.acknowledge(captured.received)
    t.equal(text(await (await answering).json()), 'Hello!')
    const delivery = await nextFrame(merge, 'delivery-known')
    t.match(delivery.frame, { completionId: record.completionId, delivered: 'yes' })
    merge.acknowledge(delivery.received)
    session.tell({ type: 'completion-recorded', calls: 1, turns: 1, promptTokens: 11, sampledTokens: 3 })
    t.match(await rollout.expectMessage('session-progressed', WITHIN_MS), { calls: 1, sampledTokens: 3 })

    session.tell({ type: 'run-finished', result: agentResult(), timing: {}, atMs: atMs() })
    const seal = await merge.expectMessage('ledger-seal-requested', WITHIN_MS)
    t.equal((await call(job.sessionKey)).status, 403, 'a closed session calls no more')
    const ledger = { sessionId, calls: [{ record, delivered: 'yes' as const }], failed: [] }
    seal.replyTo.tell({ type: 'ledger-sealed', ledger })
    const postrun = await stages.expectMessage('postrun-requested', WITHIN_MS)
    t.match(postrun.job, { ledger: { calls: [{ record: { completionId: record.completionId } }] } })
    session.tell({ type: 'postrun-started', atMs: atMs() })
    session.tell({ type: 'postrun-finished', outcome: postrunOutcome(), atMs: atMs() })
    const { result } = await rollout.expectMessage('session-ended', WITHIN_MS)
    t.match(result, { sessionId, status: 'COMPLETED', error: null })
    t.match(await merge.expectMessage('drop-ledger', WITHIN_MS), { sessionId })

    system.kill('proxy-1')
    t.match(await merge.expectMessage('link-ended', WITHIN_MS), { link: 0 }, 'a death is told')
    t.strictSame((await system.stop()).missed, [])
    t.strictSame(
      rollout.messages().map(message => ('status' in message ? message.status : message.type)),
      ['INITIALIZING', 'READY', 'RUNNING', 'session-progressed', 'POST_RUN', 'COMPLETED', 'session-ended'],
    )
  })
}

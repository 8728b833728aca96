// The pair on threads, real and inline: started by its host, captured over its own port, and what a death costs.

import { createHash } from 'node:crypto'
import t from 'tap'
import { createSystem } from '../../actors/index.js'
import type { MergeMessage } from '../../actors/protocol/merge.js'
import type { ProxyMessage } from '../../actors/protocol/proxy.js'
import type { SessionMessage } from '../../actors/protocol/session.js'
import { pairThreads } from '../../actors/threads/pair.js'
import { mergeAddress, proxyAddress } from '../../actors/threads/pair-names.js'
import type { SessionId } from '../../src/domain/ids.js'
import { openRecordStore } from '../../src/store/record-store.js'
import { restoreSession } from '../../src/store/session-entries.js'
import { dialectCalls, gatewayPlan, noLimits } from '../support/pair.js'
import { scriptedEngine } from '../support/scripted-engine.js'

const ASK_MS = 20_000

for (const mode of ['real', 'inline'] as const) {
  t.test(`${mode} threads: a dead merge thread loses no acknowledged record, and its session goes on`, async t => {
    const engine = await scriptedEngine(t, () => ({ pieces: ['a'] }))
    const store = { maxBytes: 1 << 26, retentionMs: 60_000 }
    const plan = { ...gatewayPlan([{ urls: [engine.url] }]), stateDir: t.testdir(), store }
    let onRestart = () => {}
    const restart = new Promise<void>(resolve => {
      onRestart = resolve
    })
    const system = createSystem({ plan, threads: mode, logLevel: 'silent' })
    t.teardown(() => system.stop(20_000))
    const group = { ...pairThreads(plan, 1, 0), onRestarted: () => onRestart() }
    const { replies } = await system.startThreads('pair-1', group)
    const { port } = replies['proxy-1'] as { port: number }
    const proxy = system.refOf<ProxyMessage>(proxyAddress(1))
    const merge = system.refOf<MergeMessage>(mergeAddress(1))
    const probe = system.probe<SessionMessage>()
    const sessionId = 's-a' as SessionId
    const session = {
      ...{
        sessionId,
        keyHash: createHash('sha256').update('sk-a').digest('hex'),
        attempt: 0,
        state: 'running' as const,
      },
      ...{ sampling: {}, samplingSeed: null, limits: noLimits, models: {}, sideCalls: [], session: probe.ref },
      used: { turns: 0, promptTokens: 0, sampledTokens: 0 },
    }
    const open = (firstSequence: number) => {
      merge.tell({ type: 'open-ledger', sessionId, session: probe.ref })
      return system.ask(proxy, { type: 'session-put', session: { ...session, firstSequence } }, ASK_MS)
    }
    const call = async () => {
      const headers = { authorization: 'Bearer sk-a' }
      const body = JSON.stringify(dialectCalls.openai_chat.body)
      return (await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, { method: 'POST', headers, body })).status
    }
    await open(0)
    t.strictSame([await call(), await call()], [200, 200])
    system.kill('merge-1')
    await restart
    await open(2)
    t.equal(await call(), 200)
    await system.ask(proxy, { type: 'session-close-requested', sessionId }, ASK_MS)
    const sealed = await system.ask(merge, { type: 'ledger-seal-requested', sessionId, atMs: 1 }, ASK_MS)
    if (sealed.type !== 'ledger-sealed') throw new Error(sealed.type)
    t.strictSame(
      sealed.ledger.calls.map(one => [one.record.sequence, one.record.sampledIds]),
      [0, 1, 2].map(sequence => [sequence, Int32Array.of(10, 99)]),
    )
    merge.tell({ type: 'drop-ledger', sessionId })
    merge.tell({ type: 'result-stored', sessionId })
    await system.ask(merge, { type: 'merge-described' }, ASK_MS)
    t.strictSame((await system.stop(20_000)).missed, [])
    const shard = await openRecordStore({ ...store, stateDir: plan.stateDir, shard: 1, mode: 'reader' })
    t.match(shard.sessions(), [{ sessionId, finishedAtMs: Number }], 'over, and still readable')
    t.equal(restoreSession(shard, sessionId)?.log.calls.length, 3)
    await shard.close()
  })

  t.test(`${mode} threads: a call is captured, a proxy's death loses no acknowledged record`, async t => {
    let open = () => {}
    const opened = new Promise<void>(resolve => {
      open = resolve
    })
    const engine = await scriptedEngine(t, (_body, index) =>
      index === 1 ? { pieces: ['b'], before: opened } : { pieces: ['a'] },
    )
    const plan = gatewayPlan([{ urls: [engine.url] }])
    const restarted: (readonly string[])[] = []
    let onRestart = () => {}
    const restart = new Promise<void>(resolve => {
      onRestart = resolve
    })
    const system = createSystem({ plan, threads: mode, logLevel: 'error' })
    t.teardown(() => system.stop(20_000))
    const { replies } = await system.startThreads('pair-1', {
      ...pairThreads(plan, 1, 0),
      onRestarted: threads => {
        restarted.push(threads)
        onRestart()
      },
    })
    const port = (replies['proxy-1'] as { port: number }).port
    const proxy = system.refOf<ProxyMessage>(proxyAddress(1))
    const merge = system.refOf<MergeMessage>(mergeAddress(1))
    const probe = system.probe<SessionMessage>()
    const sessionId = 's-a' as SessionId
    const put = (firstSequence: number) =>
      system.ask(
        proxy,
        {
          type: 'session-put',
          session: {
            sessionId,
            keyHash: createHash('sha256').update('sk-a').digest('hex'),
            attempt: 0,
            state: 'running',
            sampling: {},
            samplingSeed: null,
            limits: noLimits,
            models: {},
            sideCalls: [],
            session: probe.ref,
            firstSequence,
            used: { turns: 0, promptTokens: 0, sampledTokens: 0 },
          },
        },
        ASK_MS,
      )
    const call = () =>
      fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: 'Bearer sk-a' },
        body: JSON.stringify(dialectCalls.openai_chat.body),
      })

    merge.tell({ type: 'open-ledger', sessionId, session: probe.ref })
    t.strictSame(await put(0), { type: 'session-put-done', gatewayUrl: `http://127.0.0.1:${port}` })
    t.match(await (await call()).json(), { choices: [{ message: { content: 'a' } }] })
    t.match(await probe.expectMessage('completion-recorded', ASK_MS), {
      calls: 1,
      turns: 1,
      promptTokens: 3,
      sampledTokens: 2,
    })

    const running = call().then(
      response => response.status,
      () => 'cut',
    )
    await engine.generation(1)
    system.kill('proxy-1')
    t.equal(await running, mode === 'real' ? 'cut' : 503, 'a harness may try again')
    await restart
    t.strictSame(restarted, [['proxy-1']])
    open()

    t.equal((await call()).status, 401, 'the session must register again')
    t.match(await put(2), { gatewayUrl: `http://127.0.0.1:${port}` }, 'on the port it had')
    t.equal((await call()).status, 200)
    t.match(await probe.expectMessage('completion-recorded', ASK_MS), {
      calls: 2,
      turns: 2,
      promptTokens: 6,
      sampledTokens: 4,
    })
    t.match(await system.ask(merge, { type: 'merge-described' }, ASK_MS), { sessions: 1, calls: 2, tokens: 4 })
    await system.ask(proxy, { type: 'session-close-requested', sessionId }, ASK_MS)
    t.strictSame(
      probe.messages().flatMap(message => (message.type === 'call-started' ? [message.sequence] : [])),
      [0, 1, 2],
    )
    const sealed = await system.ask(
      merge,
      { type: 'ledger-seal-requested', sessionId, atMs: system.clock.now() },
      ASK_MS,
    )
    t.match(sealed, {
      ledger: {
        calls: [
          { record: { sequence: 0, sampledIds: Int32Array.of(10, 99) }, delivered: 'yes' },
          { record: { sequence: 2, sampledIds: Int32Array.of(10, 99) }, delivered: 'yes' },
        ],
        failed: [{ sequence: 1, status: 503, error: "the proxy's thread ended before the answer", abortedTokens: 0 }],
      },
    })
    t.match(await system.ask(merge, { type: 'ledger-seal-requested', sessionId, atMs: system.clock.now() }, ASK_MS), {
      type: 'ledger-unknown',
    })
    t.equal((await call()).status, 403)
    t.strictSame((await system.stop(20_000)).missed, [])
    await t.rejects(call(), 'the port is closed')
  })
}

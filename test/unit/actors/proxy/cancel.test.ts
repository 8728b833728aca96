// Clients that leave, sessions that end, retries: the engine is let go, and what happened is in the ledger.

import { connect } from 'node:net'
import t from 'tap'
import {
  dialectCalls,
  gatewayPlan,
  type Pair,
  type PairSession,
  quiet,
  readerOf,
  startPair,
} from '../../../support/pair.js'
import { type ScriptedAnswer, scriptedEngine } from '../../../support/scripted-engine.js'

const { path, body } = dialectCalls.openai_chat
const never = new Promise<void>(() => {})

async function world(t: Parameters<typeof startPair>[0], script: readonly ScriptedAnswer[]) {
  const engine = await scriptedEngine(t, script)
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
  return { engine, pair, session: await pair.session('s-a') }
}

/** Posts and leaves when told; resolves once the client is gone. */
function leavingClient(pair: Pair, session: PairSession, changes: object = {}) {
  const abort = new AbortController()
  const response = pair.post(path, { ...body, ...changes }, { key: session.key, signal: abort.signal })
  return {
    response,
    async leave() {
      abort.abort()
      await response.then(
        answer => answer.text().catch(() => {}),
        () => {},
      )
    },
  }
}

t.test(
  'chat-wire-7: a client that leaves in mid-stream ends the engine’s call; its ids are counted as aborted',
  async t => {
    const pieces = ['one', 'two', ...Array(1000).fill('more')]
    const { engine, pair, session } = await world(t, [{ pieces, pause: { atChunk: 2, until: never } }])
    const client = leavingClient(pair, session, { stream: true })
    await readerOf(await client.response).until('two')
    await client.leave()
    t.equal(await (await engine.generation(0)).closedEarly, true, 'the engine sees its connection closed')
    const ledger = await pair.ledger(session)
    t.match(ledger, {
      calls: [],
      failed: [{ status: 499, sequence: 0, abortedTokens: 2, error: /client closed/ }],
    })
    t.match(await pair.inflight(), { inflight: 0, unacknowledged: 0 }, 'no counter stays behind')
  },
)

t.test('a client that leaves before a whole answer ends the engine’s call', async t => {
  const { engine, pair, session } = await world(t, [{ pieces: ['x'], before: never }])
  const client = leavingClient(pair, session)
  const generation = await engine.generation(0)
  await client.leave()
  t.equal(await generation.closedEarly, true)
  t.match(await pair.ledger(session), { calls: [], failed: [{ status: 499, abortedTokens: 0 }] })
})

t.test('a client that leaves while the record is on its way: recorded, undelivered', async t => {
  const { pair, session } = await world(t, [{ pieces: ['x'] }])
  pair.merge.tell({ type: 'pause-acknowledgements' })
  const client = leavingClient(pair, session)
  await session.probe.expectMessage('completion-recorded', 5_000)
  await client.leave()
  await quiet()
  pair.merge.tell({ type: 'resume-acknowledgements' })
  t.match(await pair.ledger(session), { calls: [{ delivered: 'no', record: { sequence: 0 } }], failed: [] })
})

t.test('a marked retry whose first connection is gone: one turn, one answer, one engine call at a time', async t => {
  const { engine, pair, session } = await world(t, [{ pieces: ['x'], before: never }, { pieces: ['y'] }])
  const client = leavingClient(pair, session)
  const first = await engine.generation(0)
  await client.leave()
  const retry = await pair.post(path, body, { key: session.key, headers: { 'x-stainless-retry-count': '1' } })
  t.equal(retry.status, 200)
  t.equal(await first.closedEarly, true)
  t.match(await pair.ledger(session), {
    calls: [{ delivered: 'yes', record: { retryCount: 1, sequence: 1 } }],
    failed: [{ status: 499, sequence: 0 }],
  })
})

t.test('capture-5: the end of a session cancels its calls, and its key is worth nothing afterwards', async t => {
  const { engine, pair, session } = await world(t, [
    { pieces: ['x'], before: never },
    { pieces: ['one', 'two'], pause: { atChunk: 1, until: never } },
  ])
  const waiting = pair.post(path, body, { key: session.key })
  await engine.generation(0)
  const streaming = await pair.post(path, { ...body, stream: true }, { key: session.key })
  await readerOf(streaming).until('one')
  const closed = await pair.closeSession(session)
  t.strictSame(closed, { type: 'session-closed', calls: 0, aborted: 2 })
  t.equal((await waiting).status, 403)
  for (const index of [0, 1]) t.equal(await (await engine.generation(index)).closedEarly, true)
  t.equal((await pair.post(path, body, { key: session.key })).status, 403)
  t.strictSame(await pair.closeSession(session), { type: 'session-closed', calls: 0, aborted: 2 }, 'closing twice')
  pair.proxy.tell({ type: 'forget-session', sessionId: session.sessionId })
  t.equal((await pair.post(path, body, { key: session.key })).status, 401)
  t.equal(engine.generations.length, 2)
  const { failed } = await pair.ledger(session)
  t.strictSame(failed.map(call => [call.sequence, call.status, call.abortedTokens]).sort(), [
    [0, 499, 0],
    [1, 499, 1],
  ])
})

t.test('closing waits until the captures of the session are acknowledged', async t => {
  const { pair, session } = await world(t, [{ pieces: ['x'] }])
  pair.merge.tell({ type: 'pause-acknowledgements' })
  const answer = pair.post(path, body, { key: session.key }).catch(() => null)
  await session.probe.expectMessage('completion-recorded', 5_000)
  let isClosed = false
  const closing = pair.closeSession(session).then(closed => {
    isClosed = true
    return closed
  })
  t.match(await pair.inflight(), { inflight: 1, unacknowledged: 1 })
  t.equal(isClosed, false)
  pair.merge.tell({ type: 'resume-acknowledgements' })
  t.match(await closing, { calls: 1, aborted: 0 })
  await answer
  t.match(await pair.ledger(session), { calls: [{ delivered: 'no' }] })
})

t.test('a call that waits for a slot is let go with 403 when its session ends, and leaves no record', async t => {
  const engine = await scriptedEngine(t, [{ pieces: ['x'], before: never }])
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url], concurrency: 1 }]))
  const busy = await pair.session('busy')
  const session = await pair.session('s-a')
  const running = pair.post(path, body, { key: busy.key }).catch(() => null)
  await engine.generation(0)
  const waiting = pair.post(path, body, { key: session.key })
  while ((await pair.inflight()).inflight < 2);
  await pair.closeSession(session)
  t.equal((await waiting).status, 403)
  t.match(await pair.ledger(session), { calls: [], failed: [] })
  await pair.closeSession(busy)
  await running
  t.equal(engine.generations.length, 1)
})

t.test('admission waits, then says 429 with Retry-After in the dialect’s shape', async t => {
  const engine = await scriptedEngine(t, [{ pieces: ['x'], before: never }])
  const plan = gatewayPlan([{ urls: [engine.url] }], { limits: { inflightPerSession: 1, admissionTimeoutMs: 20 } })
  const pair = await startPair(t, plan)
  const session = await pair.session('s-a')
  const running = pair.post(path, body, { key: session.key }).catch(() => null)
  await engine.generation(0)
  const { path: messages, body: message } = dialectCalls.anthropic_messages
  const refused = await pair.post(messages, message, { key: session.key })
  t.equal(refused.status, 429)
  t.equal(refused.headers.get('retry-after'), '2')
  t.match(await refused.json(), { type: 'error', error: { type: 'rate_limit_error' } })
  const { failed } = await pair.ledger(session)
  await running
  t.match(
    failed.find(call => call.status === 429),
    { sequence: 1 },
  )
})

t.test('a client that sends half a body and leaves is nobody’s call', async t => {
  const { engine, pair, session } = await world(t, [{ pieces: ['x'] }])
  const socket = connect(Number(new URL(pair.url).port), '127.0.0.1')
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${session.key}\r\ncontent-length: 1000\r\n\r\n{"model"`,
  )
  while ((await pair.inflight()).inflight === 0);
  socket.destroy()
  while ((await pair.inflight()).inflight !== 0);
  t.equal(engine.generations.length, 0)
  t.match(await pair.ledger(session), { calls: [], failed: [] })
})

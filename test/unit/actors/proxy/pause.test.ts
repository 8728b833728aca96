// Pauses for updates of the weights: what runs ends or goes on, what comes waits, nothing is lost, and the count of running calls
// always comes back to zero. Over real HTTP, through the inference actor as main does it.

import t from 'tap'
import { realClock } from '../../../../actors/system/clock.js'
import { virtualClock } from '../../../../actors/system/virtual-clock.js'
import { dialectCalls, gatewayPlan, quiet, readerOf, startPair } from '../../../support/pair.js'
import { type Script, scriptedEngine } from '../../../support/scripted-engine.js'

const { path, body } = dialectCalls.openai_chat

/** A promise and the way to settle it. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  return { opened, open: () => open() }
}

async function world(
  t: Parameters<typeof startPair>[0],
  script: Script,
  changes: Parameters<typeof gatewayPlan>[1] = {},
  concurrency = 8,
) {
  const engine = await scriptedEngine(t, script)
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url], concurrency }], changes))
  return { engine, pair, session: await pair.session('s-a') }
}

t.test('capture-3: a call over an update is marked with both versions; one that waited has the new one', async t => {
  const first = gate()
  const { engine, pair, session } = await world(t, [{ pieces: ['a'], before: first.opened }, { pieces: ['b'] }])
  t.match(await pair.resume({ policyVersion: '7' }), { pause: null, policyVersion: '7' })
  const running = pair.post(path, body, { key: session.key })
  await engine.generation(0)
  t.match(await pair.pause({ mode: 'keep' }), { pause: { mode: 'keep' }, inflight: 1 }, 'answered at once')
  const waiting = pair.post(path, body, { key: session.key })
  await session.probe.expectMessage('calls-held', 5_000)
  t.match(await pair.resume({ policyVersion: '8' }), { pause: null, policyVersion: '8' })
  t.equal((await waiting).status, 200)
  first.open()
  t.equal((await running).status, 200)
  const { calls } = await pair.ledger(session)
  t.strictSame(
    calls
      .map(({ record }) => record)
      .sort((left, right) => left.sequence - right.sequence)
      .map(({ policyVersionStart, policyVersionEnd }) => [policyVersionStart, policyVersionEnd]),
    [
      ['7', '8'],
      ['8', '8'],
    ],
  )
})

t.test('capture-3: what the engine tells of its weights stands above our own account', async t => {
  const weight_versions = [
    { version: 3, start: 0, end: 1 },
    { version: 4, start: 1, end: 2 },
  ]
  const { pair, session } = await world(t, [{ pieces: ['a'], extra: { weight_versions } }])
  await pair.resume({ policyVersion: 'ours' })
  for (const stream of [false, true]) await (await pair.post(path, { ...body, stream }, { key: session.key })).text()
  const { calls } = await pair.ledger(session)
  t.equal(calls.length, 2)
  for (const { record } of calls) {
    t.match(record, { policyVersionStart: '3', policyVersionEnd: '4' })
    t.strictSame(record.policySpans, [
      { version: '3', start: 0, end: 1 },
      { version: '4', start: 1, end: 2 },
    ])
  }
})

for (const stream of [false, true]) {
  t.test(`capture-8: a running call ends, the next waits for the resume${stream ? ', streamed' : ''}`, async t => {
    const first = gate()
    const pieces = ['one', 'two']
    const { engine, pair, session } = await world(
      t,
      [{ pieces, before: first.opened }, { pieces: ['second'] }],
      { limits: { admissionTimeoutMs: 50 } },
      1,
    )
    const running = pair.post(path, { ...body, stream }, { key: session.key })
    await engine.generation(0)
    let isDrained = false
    const paused = pair.pause().then(reply => {
      isDrained = true
      return reply
    })
    const waiting = pair.post(path, { ...body, stream }, { key: session.key })
    await session.probe.expectMessage('calls-held', 5_000)
    t.match(await pair.inference(), { pause: { owner: 'trainer' }, inflight: 1, waiting: 1 })
    t.equal(isDrained, false, 'not while a call runs')
    first.open()
    t.match(await (await running).text(), /one.*two/s, 'the running call got its answer')
    t.match(await paused, { pause: { owner: 'trainer' }, inflight: 0, waiting: 1 })
    t.equal(engine.generations.length, 1, 'the second call has not reached the engine')
    await new Promise(resolve => setImmediate(resolve))
    t.match(await pair.resume(), { pause: null, policyVersion: 'update-1' })
    const late = await waiting
    t.equal(late.status, 200, 'a pause is no overload: no 429 from the admission time-out')
    t.match(await late.text(), /second/)
    await session.probe.expectMessage('calls-released', 5_000)
    const ledger = await pair.ledger(session)
    t.equal(ledger.calls.length, 2)
    t.strictSame(ledger.failed, [])
  })
}

t.test('capture-8: a stream that waits is kept alive in each dialect, as far as its clients bear it', async t => {
  const real = realClock()
  const keepAlives = virtualClock()
  const clock = {
    ...real,
    sleep: (ms: number, signal?: AbortSignal) => (ms === 10_000 ? keepAlives : real).sleep(ms, signal),
  }
  const engine = await scriptedEngine(t, [{ pieces: ['late'] }])
  const plan = gatewayPlan([{ urls: [engine.url] }], { limits: { admissionTimeoutMs: 60_000 } })
  const pair = await startPair(t, plan, clock)
  for (const [dialect, call] of Object.entries(dialectCalls)) {
    const session = await pair.session(`s-${dialect}`)
    await pair.pause()
    const response = pair.post(call.streamPath, { ...call.body, ...call.streamBody }, { key: session.key })
    await session.probe.expectMessage('calls-held', 5_000)
    await keepAlives.advance(25_000)
    if (dialect !== 'google_generate') {
      const reader = readerOf(await response)
      t.match(await reader.until('\n\n'), /^(: keep-alive|event: ping)/, dialect)
      await pair.resume()
      t.match(await reader.rest(), /late/)
    } else {
      await pair.resume()
      t.notMatch(await (await response).text(), /keep-alive|ping/, 'gemini-cli loses the chunk after a comment')
    }
    await keepAlives.advance(60_000)
  }
})

t.test('a call that the engine aborts for the update is made again after the resume, with the new weights', async t => {
  const first = gate()
  const { engine, pair, session } = await world(t, [
    { pieces: ['half'], finish: 'abort', before: first.opened },
    { pieces: ['whole'] },
  ])
  await pair.resume({ policyVersion: '1' })
  const response = pair.post(path, body, { key: session.key })
  await engine.generation(0)
  const paused = pair.pause()
  first.open()
  t.match(await paused, { inflight: 0 }, 'the aborted call is no running call')
  await session.probe.expectMessage('calls-held', 5_000)
  t.equal(engine.generations.length, 1)
  await pair.resume({ policyVersion: '2' })
  t.match(await (await response).text(), /whole/)
  const ledger = await pair.ledger(session)
  t.match(ledger.calls, [{ record: { policyVersionStart: '2', policyVersionEnd: '2' } }])
  t.match(ledger.failed, [{ status: 503, abortedTokens: 2 }], 'what it had sampled is counted')
})

t.test('life-cycle-21: whatever is cancelled and when, the count comes back to 0 and a pause drains', async t => {
  const never = new Promise<void>(() => {})
  const total = 100
  const { engine, pair, session } = await world(
    t,
    ({ seed }) => ({ pieces: ['x'], ...(Number(seed) % 2 === 1 && { before: never }) }),
    { limits: { inflightPerSession: total, sessionCredit: total, creditRecords: total } },
    20,
  )
  const other = await pair.session('s-b')
  let random = 1
  const next = (bound: number) => {
    random = (random * 48_271) % 2_147_483_647
    return random % bound
  }
  const ends = Array.from({ length: total }, (_, index) => {
    const abort = new AbortController()
    const stream = next(2) === 1
    // Odd seeds are never answered: those are cancelled in any case.
    const cancels = index % 2 === 1 ? 1 + next(2) : next(3)
    const { key } = next(4) === 0 ? other : session
    const answer = pair.post(path, { ...body, stream, seed: index }, { key, signal: abort.signal }).then(
      response => response.text().catch(() => ''),
      () => '',
    )
    const moments = [
      () => Promise.resolve(),
      () => quiet(),
      () => Promise.race([engine.generation(Math.min(index, total >> 2)), quiet()]),
    ]
    const cancelled = (async () => {
      for (let count = 0; count < cancels; count += 1) {
        await moments[next(moments.length)]?.()
        abort.abort()
      }
    })()
    return Promise.all([answer, cancelled])
  })
  await pair.closeSession(other)
  await Promise.all(ends)
  t.match(await pair.pause({ timeoutMs: 10_000 }), { inflight: 0, waiting: 0, isComplete: true })
  t.match(await pair.inflight(), { inflight: 0, unacknowledged: 0 })
})

t.test('life-cycle-22: a call that waits at the gate ends with 403 when its session is cancelled', async t => {
  const { engine, pair, session } = await world(t, [{ pieces: ['x'] }])
  await pair.pause()
  const waiting = pair.post(path, body, { key: session.key })
  await session.probe.expectMessage('calls-held', 5_000)
  await pair.closeSession(session)
  t.equal((await waiting).status, 403, 'at once, not at the resume')
  t.match(await pair.inference(), { inflight: 0, waiting: 0 })
  await pair.resume()
  await quiet()
  t.equal(engine.generations.length, 0, 'the resume does not release it')
  t.match(await pair.ledger(session), { calls: [], failed: [] })
})

t.test('more calls than may wait are told to come again', async t => {
  const { pair, session } = await world(t, [{ pieces: ['x'] }], { limits: { mailbox: 1 } })
  await pair.pause()
  const waiting = pair.post(path, body, { key: session.key })
  await session.probe.expectMessage('calls-held', 5_000)
  const refused = await pair.post(path, body, { key: session.key })
  t.strictSame([refused.status, refused.headers.get('retry-after')], [429, '2'])
  await pair.resume()
  t.equal((await waiting).status, 200)
})

t.test('a pause has an owner: another can neither take nor end it, but for force', async t => {
  const { pair } = await world(t, [{ pieces: ['x'] }])
  t.match(await pair.pause({ owner: 'one' }), { pause: { owner: 'one' } })
  t.match(await pair.pause({ owner: 'two' }), { type: 'inference-refused', owner: 'one' })
  t.match(await pair.resume({ owner: 'two' }), { type: 'inference-refused', owner: 'one' })
  t.match(await pair.inference(), { pause: { owner: 'one' } })
  t.match(await pair.resume({ owner: 'two', force: true }), { pause: null })
})

t.test('a pause that does not drain in time says so, and stays', async t => {
  const first = gate()
  const { engine, pair, session } = await world(t, [{ pieces: ['x'], before: first.opened }])
  const running = pair.post(path, body, { key: session.key })
  await engine.generation(0)
  t.match(await pair.pause({ timeoutMs: 20 }), { pause: { owner: 'trainer' }, inflight: 1 })
  t.match(await pair.inference(), { pause: { owner: 'trainer' }, inflight: 1 })
  first.open()
  t.equal((await running).status, 200)
  t.match(await pair.pause(), { inflight: 0 }, 'asking again waits for the rest')
})

t.test('a pause whose owner has died ends with its lease, and is logged', async t => {
  const { pair, session } = await world(t, [{ pieces: ['x'] }])
  await pair.pause({ leaseMs: 40 })
  const response = await pair.post(path, body, { key: session.key })
  t.equal(response.status, 200)
  t.match(await pair.inference(), { pause: null, policyVersion: 'update-1' })
  t.match(
    pair.log.lines.filter(line => line.event === 'pause-expire'),
    [{ level: 'warn', fields: { owner: 'trainer' } }],
  )
})

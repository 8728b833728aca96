// Deliveries against a real receiver on loopback: lost acknowledgements, which answers are tried again, receivers that stay away.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { callbackProps } from '../../../../actors/callback/actor.js'
import { type CallbackSettings, callbackMachine } from '../../../../actors/callback/machine.js'
import type { CallbackMessage, DeliveryReport } from '../../../../actors/protocol/callback.js'
import { realClock } from '../../../../actors/system/clock.js'
import { createHttpClient } from '../../../../src/http/client.js'
import type { KeptOutbox } from '../../../../src/store/control-records.js'
import { recordingRef } from '../../../support/session-fixtures.js'
import { createRealTimeSystem } from '../../../support/test-system.js'

const settings: CallbackSettings = {
  concurrency: 4,
  capacity: 100,
  expiryMs: 60_000,
  firstWaitMs: 1,
  longestWaitMs: 4,
}

interface Teardown {
  teardown(run: () => unknown): unknown
}

interface Received {
  readonly body: string
  readonly deliveryId: string
}

/** Answers the n-th request (from 0) with `answer(n)`; keeps what came. */
async function receiver(t: Teardown, answer: (n: number, response: ServerResponse, request: IncomingMessage) => void) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', chunk => {
      body += chunk
    })
    request.on('end', () => {
      received.push({ body, deliveryId: String(request.headers['x-sextant-delivery-id']) })
      answer(received.length - 1, response, request)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback` }
}

const outboxEntry = (deliveryId: string, taskId: string, url: string, over: Partial<KeptOutbox> = {}): KeptOutbox => ({
  deliveryId,
  taskId,
  generation: 1,
  url,
  attempts: 0,
  error: null,
  firstAtMs: null,
  nextAtMs: 0,
  expiresAtMs: null,
  ...over,
})

function start(t: Teardown, over: Partial<CallbackSettings> = {}, attemptMs = 2_000, token: string | null = null) {
  const { system, probe } = createRealTimeSystem(t, realClock())
  const client = createHttpClient({ connections: 2 })
  const settled: string[] = []
  const store = {
    putOutbox: async () => undefined,
    settleOutbox: async (deliveryId: string) => void settled.push(deliveryId),
  }
  const deps = { client, store, attemptMs, token, random: () => 0.5 }
  const ref = system.spawn(callbackProps({ settings: { ...settings, ...over }, deps, mailbox: 64 }), 'callback')
  const reports = probe<DeliveryReport>('reports')
  const deliver = (taskId: string, url: string, body = `{"task_id":"${taskId}"}`) =>
    ref.tell({
      type: 'deliver-result',
      entry: outboxEntry(`d-${taskId}`, taskId, url),
      body,
      atMs: Date.now(),
      reportTo: reports.ref,
    })
  const final = async (): Promise<DeliveryReport> => {
    for (;;) {
      const report = await reports.expectMessage('delivery-changed', 5_000)
      if (report.state !== 'pending') return report
    }
  }
  return { system, ref, deliver, final, reports, settled }
}

t.test('each attempt carries the configured token, and none where none is configured', async t => {
  const tokens: unknown[] = []
  const { url } = await receiver(t, (n, response, request) => {
    tokens.push(request.headers['x-polar-control-token'])
    response.writeHead(n === 0 ? 503 : 200)
    response.end()
  })
  const sealed = start(t, {}, 2_000, 'callback-secret')
  sealed.deliver('t-1', url)
  t.match(await sealed.final(), { state: 'delivered' })
  const plain = start(t)
  plain.deliver('t-2', url)
  t.match(await plain.final(), { state: 'delivered' })
  t.strictSame(tokens, ['callback-secret', 'callback-secret', undefined])
})

t.test('a lost acknowledgement: the same bytes and the same delivery id again, then it is delivered', async t => {
  const { received, url } = await receiver(t, (n, response, request) => {
    if (n === 0) request.socket.destroy()
    else response.end('ok')
  })
  const { deliver, final, settled } = start(t)
  deliver('t-1', url, '{"results":[1,2,3]}')
  t.match(await final(), { state: 'delivered', attempts: 2, error: null })
  t.strictSame(settled, ['d-t-1'], 'out of the outbox before it is told')
  t.strictSame(received, [
    { body: '{"results":[1,2,3]}', deliveryId: 'd-t-1' },
    { body: '{"results":[1,2,3]}', deliveryId: 'd-t-1' },
  ])
})

t.test('408, 425, 429 and 5xx are tried again', async t => {
  const statuses = [408, 425, 429, 500, 503, 599, 204]
  const { received, url } = await receiver(t, (n, response) => {
    response.statusCode = statuses[n] ?? 500
    response.end()
  })
  const { deliver, final } = start(t)
  deliver('t-1', url)
  t.match(await final(), { state: 'delivered', attempts: 7 })
  t.equal(received.length, 7)
})

t.test('any other 4xx, and a redirect, is one post and a visible failure', async t => {
  for (const status of [400, 401, 404, 422, 302]) {
    const { received, url } = await receiver(t, (_n, response) => {
      response.statusCode = status
      response.end()
    })
    const { deliver, final, system } = start(t)
    deliver('t-1', url)
    t.match(await final(), { state: 'undelivered', attempts: 1, error: `the receiver answered ${status}` })
    t.equal(received.length, 1)
    await system.stop(1_000)
  }
})

t.test('an attempt has a time limit of its own', async t => {
  const { url } = await receiver(t, (n, response) => {
    if (n > 0) response.end()
  })
  const { deliver, final, reports } = start(t, {}, 100)
  deliver('t-1', url)
  t.match(await final(), { state: 'delivered', attempts: 2 })
  t.match(reports.messages()[0], { state: 'pending', error: 'no answer within 100 ms' })
})

t.test('a receiver that stays away: undelivered with attempts and the last error; others are not held up', async t => {
  const good = await receiver(t, (_n, response) => response.end())
  const { deliver, reports, ref, system } = start(t, { expiryMs: 1_000 })
  deliver('away', 'http://127.0.0.1:1/')
  deliver('here', good.url)
  const ends = new Map<string, DeliveryReport>()
  while (ends.size < 2) {
    const report = await reports.expectMessage('delivery-changed', 5_000)
    if (report.state !== 'pending') ends.set(report.taskId, report)
  }
  t.match(ends.get('here'), { state: 'delivered', attempts: 1 })
  t.match(ends.get('away'), { state: 'undelivered', error: /127\.0\.0\.1:1 cannot be reached: ECONNREFUSED/ })
  t.ok((ends.get('away')?.attempts ?? 0) > 2)
  t.match(await system.ask(ref, { type: 'deliveries-described' }, 1_000), { pending: 0 })
})

t.test('as data: Retry-After, growing waits, limits', async t => {
  const machine = callbackMachine({ ...settings, concurrency: 1, capacity: 2, firstWaitMs: 100, longestWaitMs: 300 })
  const reportTo = recordingRef<DeliveryReport>('/r/')
  const job = (taskId: string): CallbackMessage => ({
    type: 'deliver-result',
    entry: outboxEntry(taskId, taskId, 'http://127.0.0.1:1/'),
    body: '',
    atMs: 0,
    reportTo,
  })
  let state = machine.initial.state
  const send = (message: Parameters<typeof machine.step>[1]) => {
    const step = machine.step(state, message)
    state = step.state
    return step.effects
  }
  const failed = (deliveryId: string, atMs: number, retryAfterMs: number | null = null) =>
    send({
      type: 'attempt-finished',
      deliveryId,
      outcome: { kind: 'try-again', error: 'e', retryAfterMs },
      startedAtMs: 0,
      atMs,
      jitter: 1,
    })
  t.match(send(job('a')), [{ type: 'post', deliveryId: 'a' }])
  t.strictSame(send(job('a')), [], 'the same delivery twice is one')
  t.strictSame(send(job('b')), [], 'one attempt at a time')
  t.match(send(job('c')), [{ type: 'report', report: { state: 'undelivered', attempts: 0 } }, { type: 'warn' }])
  t.match(failed('a', 10), [
    { type: 'note', entry: { attempts: 1, firstAtMs: 0, nextAtMs: 110, expiresAtMs: 60_000 } },
    { type: 'report' },
    { type: 'arm-retry', afterMs: 100 },
    { type: 'post', deliveryId: 'b' },
  ])
  t.strictSame(send({ type: 'retry-due', deliveryId: 'a' }), [], 'its turn comes after b')
  t.match(failed('b', 20, 5_000), [
    { type: 'note' },
    { type: 'report' },
    { type: 'arm-retry', afterMs: 5_000 },
    { type: 'post', deliveryId: 'a' },
  ])
  t.match(failed('a', 30), [{ type: 'note' }, { type: 'report' }, { type: 'arm-retry', afterMs: 200 }])
  send({ type: 'retry-due', deliveryId: 'a' })
  t.match(failed('a', 40), [{ type: 'note' }, { type: 'report' }, { type: 'arm-retry', afterMs: 300 }])
  send({ type: 'retry-due', deliveryId: 'a' })
  t.match(failed('a', 59_900), [
    { type: 'settle', delivery: { state: 'undelivered', attempts: 4 }, report: { state: 'undelivered', attempts: 4 } },
    { type: 'warn' },
  ])
  const entry = outboxEntry('kept', 'kept', '', { attempts: 3, firstAtMs: 50_000, nextAtMs: 61_000 })
  t.match(send({ type: 'deliver-result', entry, body: '', atMs: 60_000, reportTo }), [
    { type: 'arm-retry', afterMs: 1_000 },
  ])
  t.match(send({ type: 'retry-due', deliveryId: 'kept' }), [{ type: 'post', deliveryId: 'kept' }])
  t.match(
    failed('kept', 61_010),
    [{ type: 'note', entry: { attempts: 4, firstAtMs: 50_000 } }, { type: 'report' }, { afterMs: 300 }],
    'a delivery of an earlier life goes on where it was',
  )
})

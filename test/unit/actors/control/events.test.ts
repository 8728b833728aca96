// GET /events: hello, ids, replay after Last-Event-ID, what is dropped, the end.

import t from 'tap'
import { EventHub } from '../../../../src/api/event-hub.js'
import { eventsOf } from '../../../../src/http/event-stream.js'
import { type Control, startControl, TOKEN } from '../../../support/control-fixture.js'

interface Event {
  readonly type: string
  readonly ts: string
  readonly data: Record<string, unknown>
}

async function open(control: Control, headers: Record<string, string> = {}) {
  const left = new AbortController()
  const response = await control.fetch('/events', {
    headers: { 'x-polar-control-token': TOKEN, ...headers },
    signal: left.signal,
  })
  if (response.body === null) throw new Error('no body')
  const events = eventsOf(response.body as unknown as AsyncIterable<Uint8Array>)
  const next = async (): Promise<Event | null> => {
    const { value, done } = await events.next()
    return done ? null : (JSON.parse(value.data) as Event)
  }
  return { response, next, leave: () => left.abort() }
}

t.test('a subscriber gets hello, then each event once, in order', async t => {
  const control = await startControl(t)
  const { response, next, leave } = await open(control)
  t.equal(response.headers.get('content-type'), 'text/event-stream')
  t.equal(response.headers.get('cache-control'), 'no-cache')
  t.equal(response.headers.get('x-accel-buffering'), 'no')
  t.match(await next(), { type: 'hello', ts: /^\d{4}-.*Z$/ })
  control.publish('task.created', { task_id: 'a' })
  control.publish('task.completed', { task_id: 'a' })
  t.match(await next(), { type: 'task.created', data: { task_id: 'a' } })
  t.match(await next(), { type: 'task.completed' })
  leave()
})

t.test('who comes back with Last-Event-ID gets what was missed', async t => {
  const control = await startControl(t)
  const first = await open(control)
  const hello = await first.next()
  const boot = String(hello?.data['boot'])
  for (const n of [1, 2, 3]) control.publish('e', { n })
  for (const n of [1, 2, 3]) t.match(await first.next(), { data: { n } })
  first.leave()
  const second = await open(control, { 'last-event-id': `${boot}-1` })
  t.match(await second.next(), { type: 'hello', data: { missed: 0 } })
  t.match(await second.next(), { data: { n: 2 } })
  t.match(await second.next(), { data: { n: 3 } })
  second.leave()
  const stranger = await open(control, { 'last-event-id': 'another-process-77' })
  t.match(await stranger.next(), { type: 'hello', data: { missed: null } })
  t.match(await stranger.next(), { data: { n: 1 } })
  stranger.leave()
})

t.test('stopping the service ends the streams', async t => {
  const control = await startControl(t)
  const { next } = await open(control)
  await next()
  const ended = next()
  await control.stop()
  t.equal(await ended, null)
})

t.test('a slow subscriber loses the oldest events and is told how many; the ring tells what is gone', async t => {
  const hub = new EventHub({ boot: 'b', ring: 5, queue: 3, now: () => 0 })
  const slow = hub.subscribe(null)
  for (let n = 1; n <= 8; n += 1) hub.publish('e', { n })
  const taken = slow.take()
  t.strictSame([taken?.dropped, taken?.event.number], [5, 6])
  t.strictSame([slow.take()?.dropped, slow.take()?.event.number, slow.take()], [0, 8, null])
  const late = hub.subscribe('b-1')
  t.equal(late.missed, 2, 'events 2 and 3 are no longer kept')
  t.strictSame([late.take()?.event.number, hub.idOf({ number: 4, type: '', data: {}, atMs: 0 })], [6, 'b-4'])
  hub.close()
  await slow.ready()
  t.ok(slow.closed && late.closed)
  t.equal(hub.subscribers, 0)
  t.ok(hub.subscribe(null).closed)
})

// GET /events: server-sent events of the contract (2.3) with ids, replay and the number dropped (A-10). One frame = an `id:` line and
// one `data:` line. First `hello`, and `ping` after 15 s of silence.

import type { Clock } from '../domain/clock.js'
import type { JsonObject } from '../domain/json.js'
import type { AnswerWriter } from '../http/answer.js'
import type { EventHub, Subscription } from './event-hub.js'

const PING_MS = 15_000

export interface StreamOptions {
  readonly hub: EventHub
  readonly clock: Clock
  readonly lastEventId: string | null
}

/** Writes events until the client leaves or the hub closes. Never rejects. */
export async function streamEvents(writer: AnswerWriter, { hub, clock, lastEventId }: StreamOptions): Promise<void> {
  const subscription = hub.subscribe(lastEventId)
  const left = new AbortController()
  const leave = () => {
    left.abort()
    subscription.close()
  }
  writer.delivered.then(leave, leave)
  writer.start(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache',
    connection: 'keep-alive',
    'x-accel-buffering': 'no',
  })
  const frame = (type: string, atMs: number, data: JsonObject, id: string | null) =>
    `${id === null ? '' : `id: ${id}\n`}data: ${JSON.stringify({ type, ts: new Date(atMs).toISOString(), data })}\n\n`
  try {
    await writer.write(frame('hello', clock.now(), { boot: hub.boot, missed: subscription.missed }, null))
    while (!subscription.closed && !writer.closed) {
      const taken = subscription.take()
      if (taken === null) {
        if (!(await readyWithin(subscription, clock, left.signal)))
          await writer.write(frame('ping', clock.now(), {}, null))
        continue
      }
      const { event, dropped } = taken
      if (dropped > 0) await writer.write(frame('dropped', event.atMs, { count: dropped }, null))
      await writer.write(frame(event.type, event.atMs, event.data, hub.idOf(event)))
    }
  } finally {
    leave()
    writer.end()
  }
}

/** False after 15 s without an event. */
async function readyWithin(subscription: Subscription, clock: Clock, left: AbortSignal): Promise<boolean> {
  const waited = new AbortController()
  const stop = () => waited.abort()
  left.addEventListener('abort', stop, { once: true })
  const silent = clock.sleep(PING_MS, waited.signal).then(
    () => false,
    () => true,
  )
  const ready = subscription.ready().then(() => true)
  try {
    return await Promise.race([ready, silent])
  } finally {
    left.removeEventListener('abort', stop)
    waited.abort()
  }
}

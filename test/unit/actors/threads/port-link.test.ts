import { once } from 'node:events'
import { MessageChannel } from 'node:worker_threads'
import t from 'tap'
import {
  type CaptureBody,
  type CaptureReceiver,
  type CaptureSender,
  captureReceiver,
  captureSender,
} from '../../../../actors/threads/port-link.js'
import type { RolloutError } from '../../../../src/domain/errors.js'
import type { SessionId } from '../../../../src/domain/ids.js'
import { type CaptureFrame, sessionOf } from '../../../../src/wire/frames.js'
import { completionRecord } from '../../../support/records.js'

const limits = { creditRecords: 2, creditBytes: 1_000_000, sessionCredit: 2 }

const captured = (sessionId: string, sequence: number, text = '{}'): CaptureBody => ({
  kind: 'completion-captured',
  record: completionRecord({ sessionId: sessionId as SessionId, sequence, originalRequest: text }),
})

interface Link {
  readonly sender: CaptureSender
  readonly receiver: CaptureReceiver
  readonly frames: CaptureFrame[]
  readonly malformed: RolloutError[]
  /** Waits until so many frames have arrived. */
  arrived(count: number): Promise<void>
}

function link(t: { teardown(fn: () => void): void }, options: Partial<typeof limits> = {}): Link {
  const { port1, port2 } = new MessageChannel()
  const frames: CaptureFrame[] = []
  const malformed: RolloutError[] = []
  let notify = () => {}
  const receiver = captureReceiver(port2, {
    frame(frame) {
      frames.push(frame)
      notify()
    },
    malformed: cause => {
      malformed.push(cause)
    },
    closed: () => {},
  })
  const sender = captureSender(port1, { ...limits, ...options })
  t.teardown(() => {
    sender.close()
    receiver.close()
  })
  return {
    sender,
    receiver,
    frames,
    malformed,
    async arrived(count) {
      while (frames.length < count) {
        await new Promise<void>(resolve => {
          notify = resolve
        })
      }
    },
  }
}

/** All messages posted so far have been handled: a message of our own has gone round behind them. */
async function settled(): Promise<void> {
  const { port1, port2 } = new MessageChannel()
  port2.on('message', data => port2.postMessage(data))
  port1.postMessage(0)
  await once(port1, 'message')
  port1.close()
}

t.test('that a call started is told without credit and without an acknowledgement', async t => {
  const { sender, frames, arrived } = link(t)
  const sent = [0, 1, 2].map(sequence => sender.send(captured('s-1', sequence)))
  await arrived(2)
  sender.announce({ sessionId: 's-1' as SessionId, sequence: 3, attempt: 1, startedAtMs: 7 })
  await arrived(3)
  t.strictSame(frames[2], {
    v: 1,
    kind: 'call-started',
    frameId: 3,
    sessionId: 's-1',
    sequence: 3,
    attempt: 1,
    startedAtMs: 7,
  })
  t.equal(sender.unacknowledged, 3)
  sender.close()
  for (const one of sent) await t.rejects(one, { code: 'ACTOR_DEAD' })
  sender.announce({ sessionId: 's-1' as SessionId, sequence: 4, attempt: 1, startedAtMs: 7 })
})

t.test('with credit 2 and a receiver that does not acknowledge, nothing is lost and the rest waits', async t => {
  const { sender, receiver, frames, arrived } = link(t)
  const sent = [0, 1, 2, 3, 4].map(sequence => sender.send(captured('s-1', sequence)))
  await arrived(2)
  await settled()
  t.equal(frames.length, 2, 'the window is full')
  t.equal(sender.unacknowledged, 5)
  for (let index = 0; index < 5; index += 1) {
    await arrived(index + 1)
    receiver.acknowledge(frames[index]?.frameId ?? -1)
  }
  t.strictSame(
    (await Promise.all(sent)).map(ack => ack.kind),
    Array(5).fill('frame-acknowledged'),
  )
  t.strictSame(
    frames.map(frame => frame.kind === 'completion-captured' && frame.record.sequence),
    [0, 1, 2, 3, 4],
    'in order',
  )
  t.equal(sender.unacknowledged, 0)
})

t.test('a session without credit stalls no other session', async t => {
  const { sender, receiver, frames, arrived } = link(t, { creditRecords: 3, sessionCredit: 1 })
  const slow = [0, 1, 2].map(sequence => sender.send(captured('slow', sequence)))
  await arrived(1)
  for (let sequence = 0; sequence < 10; sequence += 1) {
    const quick = sender.send(captured('quick', sequence))
    await arrived(2 + sequence)
    const frame = frames[1 + sequence]
    t.equal(frame && sessionOf(frame), 'quick')
    receiver.acknowledge(frame?.frameId ?? -1)
    await quick
  }
  t.equal(frames.filter(frame => sessionOf(frame) === 'slow').length, 1)
  receiver.acknowledge(0)
  await slow[0]
  sender.close()
  for (const waiting of slow.slice(1)) await t.rejects(waiting, { code: 'ACTOR_DEAD' })
})

t.test('bytes are a limit too, and a frame over it goes alone', async t => {
  const { sender, receiver, frames, arrived } = link(t, { creditRecords: 10, creditBytes: 10_000, sessionCredit: 10 })
  const sent = [
    sender.send(captured('a', 0)),
    sender.send(captured('b', 0, 'x'.repeat(50_000))),
    sender.send(captured('c', 0)),
  ]
  await arrived(1)
  await settled()
  t.equal(frames.length, 1, 'the large one waits, and the one behind it keeps its place')
  receiver.acknowledge(0)
  await arrived(2)
  await settled()
  t.equal(frames.length, 2)
  receiver.acknowledge(1)
  await arrived(3)
  receiver.acknowledge(2)
  t.equal((await Promise.all(sent)).length, 3)
})

t.test('waiting for credit ends with an abort; what was sent does not', async t => {
  const { sender, receiver, arrived, frames } = link(t, { creditRecords: 1 })
  const abort = new AbortController()
  const first = sender.send(captured('a', 0), abort.signal)
  const second = sender.send(captured('a', 1), abort.signal)
  await arrived(1)
  const refused = t.rejects(second, { message: 'enough' })
  abort.abort(new Error('enough'))
  await refused
  t.equal(sender.unacknowledged, 1)
  receiver.acknowledge(0)
  t.match(await first, { kind: 'frame-acknowledged' })
  const third = sender.send(captured('a', 2))
  await arrived(2)
  t.match(frames[1], { record: { sequence: 2 } }, 'the aborted frame was never sent')
  receiver.acknowledge(2)
  await third
  await t.rejects(sender.send(captured('a', 3), abort.signal), { message: 'enough' })
})

t.test('a refusal is an answer, with its reason', async t => {
  const { sender, receiver, arrived } = link(t)
  const sent = sender.send(captured('a', 0))
  await arrived(1)
  receiver.refuse(0, 'unknown-session')
  t.match(await sent, { kind: 'frame-refused', reason: 'unknown-session' })
})

t.test('a frame that cannot be read is refused by its number and reported', async t => {
  const { sender, malformed } = link(t)
  const broken = { kind: 'call-failed', failed: { sessionId: 's-1' } } as unknown as CaptureBody
  t.match(await sender.send(broken), { kind: 'frame-refused', reason: 'malformed' })
  t.match(malformed, [{ code: 'WIRE_MALFORMED', message: /failed\.sequence/ }])
})

t.test('when the other end goes, all that waits ends with ACTOR_DEAD', async t => {
  const { sender, receiver, arrived } = link(t, { creditRecords: 1 })
  const sent = [sender.send(captured('a', 0)), sender.send(captured('a', 1))]
  await arrived(1)
  const ended = Promise.all(sent.map(each => t.rejects(each, { code: 'ACTOR_DEAD' })))
  receiver.close()
  await ended
  t.equal(sender.unacknowledged, 0)
  await t.rejects(sender.send(captured('a', 2)), { code: 'ACTOR_DEAD' })
})

// The credit window under any order of sends and acknowledgements: limits are never exceeded, nothing is lost, order holds per session.

import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { MessagePort } from 'node:worker_threads'
import fc from 'fast-check'
import t from 'tap'
import { captureSender } from '../../actors/threads/port-link.js'
import { decode } from '../../src/wire/codec.js'
import { parseCaptureFrame, sessionOf } from '../../src/wire/frames.js'

/** What of a MessagePort the sender uses; posts are kept until the test acknowledges them. */
class FakePort extends EventEmitter {
  readonly posted: Uint8Array[] = []
  postMessage(bytes: Uint8Array): void {
    this.posted.push(bytes)
  }
  close(): void {
    this.emit('close')
  }
}

const operation = fc.oneof(
  fc.record({ send: fc.constantFrom('a', 'b', 'c'), size: fc.constantFrom(10, 300, 5_000) }),
  fc.record({ acknowledge: fc.nat(100) }),
)

t.test('credit is never exceeded, nothing is lost, sessions keep their order', async t => {
  const limits = fc.record({
    creditRecords: fc.integer({ min: 1, max: 6 }),
    creditBytes: fc.constantFrom(400, 2_000, 100_000),
    sessionCredit: fc.integer({ min: 1, max: 3 }),
  })
  await fc.assert(
    fc.asyncProperty(limits, fc.array(operation, { maxLength: 60 }), async (credit, operations) => {
      const port = new FakePort()
      const sender = captureSender(port as unknown as MessagePort, credit)
      const open: { readonly frameId: number; readonly session: string; readonly bytes: number }[] = []
      const arrived: Record<string, string[]> = {}
      const sent: Record<string, string[]> = {}
      const acknowledged: Promise<unknown>[] = []
      const receive = (): void => {
        for (const bytes of port.posted.splice(0)) {
          const frame = parseCaptureFrame(decode(bytes))
          assert.equal(frame.kind, 'delivery-known')
          if (frame.kind !== 'delivery-known') return
          const session = sessionOf(frame)
          open.push({ frameId: frame.frameId, session, bytes: bytes.byteLength })
          arrived[session] = [...(arrived[session] ?? []), frame.completionId]
        }
        assert.ok(open.length <= credit.creditRecords, 'records')
        const bytes = open.reduce((sum, frame) => sum + frame.bytes, 0)
        assert.ok(bytes <= credit.creditBytes || open.length === 1, 'bytes')
        for (const session of ['a', 'b', 'c']) {
          assert.ok(open.filter(frame => frame.session === session).length <= credit.sessionCredit, 'session')
        }
      }
      const acknowledge = (index: number): void => {
        const [frame] = open.splice(index % open.length, 1)
        port.emit('message', { v: 1, kind: 'frame-acknowledged', frameId: frame?.frameId })
      }
      for (const [index, step] of operations.entries()) {
        if ('send' in step) {
          const completionId = `${index}`.padEnd(step.size, '.')
          sent[step.send] = [...(sent[step.send] ?? []), completionId]
          acknowledged.push(
            sender.send({ kind: 'delivery-known', sessionId: step.send, completionId, delivered: 'yes' }),
          )
        } else if (open.length > 0) acknowledge(step.acknowledge)
        receive()
      }
      while (open.length > 0) {
        acknowledge(0)
        receive()
      }
      assert.equal(sender.unacknowledged, 0)
      assert.deepEqual(arrived, sent)
      await Promise.all(acknowledged)
    }),
    { numRuns: 200 },
  )
  t.pass('200 runs')
})

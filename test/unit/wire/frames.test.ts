import t from 'tap'
import { decode, encode } from '../../../src/wire/codec.js'
import { parseAckFrame, parseCaptureFrame, sessionOf } from '../../../src/wire/frames.js'
import { completionRecord, failedCall } from '../../support/records.js'

const capture = (record: object) => ({ v: 1, kind: 'completion-captured', frameId: 3, record })

t.test('a packed frame owns its memory, and so do the arrays read from it', async t => {
  const first = encode({ a: 1 })
  const second = encode({ b: 2 })
  t.not(first.buffer, second.buffer)
  t.equal(first.buffer.byteLength, first.byteLength)
  const big = encode(capture(completionRecord({ originalRequest: 'x'.repeat(1_000_000) })))
  const frame = parseCaptureFrame(decode(big))
  t.equal(frame.kind === 'completion-captured' && frame.record.promptIds?.buffer.byteLength, 12)
})

t.test('bytes that are no MessagePack are a typed error', async t => {
  t.throws(() => decode(Uint8Array.of(0xc1, 0xff)), { code: 'WIRE_MALFORMED', details: { frameId: null } })
  t.throws(() => decode(encode({ a: 'abc' }).subarray(0, 4)), { code: 'WIRE_MALFORMED' })
})

t.test('a malformed frame is refused by number, naming what is wrong', async t => {
  const refused = (value: unknown, message: RegExp, frameId: number | null) =>
    t.throws(() => parseCaptureFrame(value), { code: 'WIRE_MALFORMED', message, details: { frameId } })
  refused(null, /not an object/, null)
  refused({ v: 1, kind: 'call-failed' }, /frameId/, null)
  refused({ ...capture(completionRecord()), v: 2 }, /version 2, wanted 1/, 3)
  refused({ v: 1, kind: 'nonsense', frameId: 3 }, /kind nonsense/, 3)
  refused({ v: 1, kind: 'call-failed', frameId: 3 }, /failed is missing/, 3)
  refused(capture({ ...completionRecord(), promptIds: [1, 2] }), /record\.promptIds/, 3)
  refused(capture({ ...completionRecord(), sequence: -1 }), /record\.sequence/, 3)
  refused(capture(completionRecord({ logprobs: Float32Array.of(-1) })), /logprobs has 1 entries, sampledIds 3/, 3)
  refused(capture(completionRecord({ sampledIds: null })), /logprobs has 3 entries/, 3)
  refused({ v: 1, kind: 'call-failed', frameId: 3, failed: { ...failedCall(), status: 'x' } }, /failed\.status/, 3)
  refused(
    { v: 1, kind: 'delivery-known', frameId: 3, sessionId: 's', completionId: 'c', delivered: 'maybe' },
    /frame\.delivered/,
    3,
  )
  // Every field of a record is checked.
  for (const key of Object.keys(completionRecord())) {
    const record: Record<string, unknown> = { ...completionRecord() }
    record[key] = Symbol.for('wrong')
    refused(capture(record), new RegExp(`record\\.${key}`), 3)
  }
})

t.test('acknowledgements are checked as well', async t => {
  t.strictSame(parseAckFrame({ v: 1, kind: 'frame-acknowledged', frameId: 4 }), {
    v: 1,
    kind: 'frame-acknowledged',
    frameId: 4,
  })
  t.match(parseAckFrame({ v: 1, kind: 'frame-refused', frameId: 4, reason: 'sealed' }), { reason: 'sealed' })
  t.throws(() => parseAckFrame({ v: 1, kind: 'frame-refused', frameId: 4, reason: 'mood' }), { code: 'WIRE_MALFORMED' })
})

t.test('each frame names its session', async t => {
  t.equal(sessionOf(parseCaptureFrame(capture(completionRecord()))), 's-1')
  t.equal(sessionOf({ v: 1, kind: 'call-failed', frameId: 0, failed: failedCall() }), 's-1')
})

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { decode, encode } from '../../src/wire/codec.js'
import { parseCaptureFrame } from '../../src/wire/frames.js'
import { completionRecord, failedCall } from '../support/records.js'

const plain = { noNullPrototype: true }
const ids = fc.int32Array({ min: 0, max: 200_000 })
// -0 is the same logprob as 0, and MessagePack writes it as the integer.
const json = fc.jsonValue({ depthSize: 'small' }).map(value => JSON.parse(JSON.stringify(value)) as never)
// The library renames this key, which no API has.
const object = fc.dictionary(
  fc.string().filter(key => key !== '__proto__'),
  json.filter(noProto),
  { noNullPrototype: true },
)

function noProto(value: unknown): boolean {
  return !JSON.stringify(value).includes('__proto__')
}

const record = fc
  .record({
    sequence: fc.nat(),
    promptIds: fc.option(ids),
    sampledIds: ids,
    completionTokens: fc.nat(),
    originalRequest: fc.string({ unit: 'binary' }),
    originalLike: fc.constant(null),
    request: object,
    response: object,
    startedAtMs: fc.integer({ min: 0, max: 2 ** 45 }),
    notTrainable: fc.option(fc.string()),
    losses: fc.array(fc.record({ path: fc.string(), reason: fc.string() }, plain)),
    rulesApplied: fc.array(fc.string()),
    lp: fc.option(fc.float({ max: 0, noNaN: true })),
  })
  .map(({ lp, ...changes }) =>
    completionRecord({
      ...changes,
      logprobs:
        lp === null
          ? null
          : changes.sampledIds.length === 0
            ? new Float32Array(0)
            : new Float32Array(changes.sampledIds.length).fill(lp),
    }),
  )

const frame = fc.oneof(
  fc.record(
    {
      v: fc.constant(1),
      kind: fc.constant('call-started'),
      frameId: fc.nat(),
      sessionId: fc.string(),
      sequence: fc.nat(),
      attempt: fc.nat(),
      startedAtMs: fc.integer({ min: 0, max: 2 ** 45 }),
    },
    plain,
  ),
  fc.record({ v: fc.constant(1), kind: fc.constant('completion-captured'), frameId: fc.nat(), record }, plain),
  fc.record(
    {
      v: fc.constant(1),
      kind: fc.constant('call-failed'),
      frameId: fc.nat(),
      failed: fc.record({ status: fc.nat(599), error: fc.string(), abortedTokens: fc.nat() }).map(failedCall),
    },
    plain,
  ),
  fc.record(
    {
      v: fc.constant(1),
      kind: fc.constant('delivery-known'),
      frameId: fc.nat(),
      sessionId: fc.string(),
      completionId: fc.string(),
      delivered: fc.constantFrom('yes', 'no', 'unknown'),
    },
    plain,
  ),
)

t.test('every frame comes back as it was sent, typed arrays included', async t => {
  fc.assert(
    fc.property(frame, value => {
      const back = parseCaptureFrame(decode(encode(value)))
      assert.deepEqual(back, value)
    }),
    { numRuns: 200 },
  )
  t.pass('200 frames')
})

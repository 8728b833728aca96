// The binary form of a result gives back the contract's JSON to the byte and every logprob to the bit; what is damaged is refused.

import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { sessionResultJson } from '../../src/api/encode.js'
import { binaryResultJson, sessionResultBinary } from '../../src/api/result-binary.js'
import { perRequest } from '../../src/builders/per-request.js'
import { prefixMerging } from '../../src/builders/prefix-merging.js'
import type { JsonObject } from '../../src/domain/json.js'
import type { SessionResult } from '../../src/domain/session.js'
import type { Trace } from '../../src/domain/trajectory.js'
import { applyOutcome } from '../../src/ledger/masking.js'
import { packContainer, unpackContainer } from '../../src/wire/columns.js'
import { ledgerOf, recordOf, SESSION } from '../support/ledger-fixtures.js'
import { generateCalls, worldText } from '../support/session-generator.js'
import { agentResult, evaluation, sessionResult } from '../support/traces.js'

const context = { decode: async (ids: Int32Array) => worldText(ids), sessionId: SESSION, taskId: 't', taskMetadata: {} }

const json = fc.jsonValue({ depthSize: 'small' }).map(value => JSON.parse(JSON.stringify(value)) as never)
const object = fc.dictionary(fc.string({ unit: 'binary' }), json, { maxKeys: 4 }).map(value => value as JsonObject)
/** Any bit pattern of a finite float32. */
const finite = fc.float({ noNaN: true, noDefaultInfinity: true })

const session = fc.record({
  seed: fc.integer(),
  turns: fc.integer({ min: 0, max: 14 }),
  trouble: fc.constantFrom(0, 0.2, 0.5, 0.9),
  builder: fc.constantFrom(prefixMerging, perRequest),
  status: fc.constantFrom('COMPLETED' as const, 'ERROR' as const, 'TIMEOUT' as const),
  free: object,
  messages: fc.array(object, { maxLength: 6 }),
  tools: fc.option(fc.array(object, { maxLength: 2 })),
  logprobs: fc.array(finite, { minLength: 1, maxLength: 8 }),
})

async function resultOf(input: typeof session extends fc.Arbitrary<infer T> ? T : never): Promise<SessionResult> {
  const { builder, status, free, messages, tools, logprobs } = input
  const built = await builder.build(ledgerOf(generateCalls(input.seed, input)), {}, context)
  const outcome = applyOutcome({
    trajectory: built,
    status,
    agentResult: agentResult(),
    evaluation: evaluation(),
    evaluationTimedOut: false,
    truncated: null,
    containmentProven: true,
  })
  const traces = outcome.traces.map(
    (trace, n): Trace => ({
      ...trace,
      promptMessages: messages.slice(0, n + 1),
      responseMessages: messages.slice(n % 3),
      tools,
      metadata: { ...free, ...trace.metadata },
      responseLogprobs: trace.responseLogprobs.map((value, i) =>
        value === 0 ? (trace.lossMask[i] === 1 ? -0 : 0) : (logprobs[i % logprobs.length] ?? 0),
      ),
    }),
  )
  return sessionResult({ ...outcome, traces }, { status, metadata: free })
}

t.test('a result comes back as the JSON it would have been', () =>
  fc.assert(
    fc.asyncProperty(session, async input => {
      const result = await resultOf(input)
      const read = binaryResultJson(await sessionResultBinary(result), 'x')
      if (read !== sessionResultJson(result)) throw new Error('the binary form says something else')
    }),
    { numRuns: 150 },
  ),
)

t.test('columns come back to the bit, zero signs and denormals included', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(finite),
      fc.array(fc.integer({ min: 0, max: 1 })),
      fc.int32Array({ maxLength: 60 }),
      fc.nat(60),
      async (floats, bits, ids, first) => {
        const shared = Math.min(first, ids.length)
        const columns = [
          { type: 'int32', values: ids.slice(0, shared) },
          { type: 'int32', values: ids, like: { of: [0], first: shared } },
          { type: 'float32', values: Float32Array.from([...floats, -0, 1e-45]) },
          { type: 'bits', values: Uint8Array.from(bits) },
        ] as const
        const read = unpackContainer(await packContainer('{"a":1}', columns))
        const bytes = (values: Int32Array | Float32Array | Uint8Array) =>
          Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString('hex')
        for (const [i, { values }] of columns.entries())
          if (bytes(read.columns[i]?.values ?? new Uint8Array(1)) !== bytes(values))
            throw new Error(`column ${i} differs`)
      },
    ),
    { numRuns: 200 },
  ),
)

t.test('what is cut, changed or of another kind is refused with its name, never read', async t => {
  const result = await resultOf({
    seed: 7,
    turns: 6,
    trouble: 0.5,
    builder: prefixMerging,
    status: 'COMPLETED',
    free: {},
    messages: [{ role: 'user', content: 'x' }],
    tools: null,
    logprobs: [-0.5, -1.25],
  })
  const good = await sessionResultBinary(result)
  const whole = sessionResultJson(result)
  const wanted = { code: 'TASK_INVALID', message: /^file: / }
  t.throws(() => binaryResultJson(Buffer.from(whole), 'file'), wanted)
  t.throws(() => binaryResultJson(new Uint8Array(0), 'file'), wanted)
  for (let length = 0; length < good.length; length += 7)
    if (!refuses(good.subarray(0, length))) return t.fail(`read although cut at ${length}`)
  t.ok(refuses(Buffer.concat([good, Buffer.of(0)])), 'bytes after the end')
  for (let at = 0; at < good.length; at += 3) {
    const bad = Uint8Array.from(good)
    bad[at] = (bad[at] ?? 0) ^ 0x10
    if (!refuses(bad) && binaryResultJson(bad, 'file') !== whole)
      return t.fail(`another result read after a flip at ${at}`)
  }
  return
})

function refuses(bytes: Uint8Array): boolean {
  try {
    binaryResultJson(bytes, 'file')
    return false
  } catch (cause) {
    if ((cause as { code?: string }).code !== 'TASK_INVALID') throw cause
    return true
  }
}

t.test('prompts that repeat each other cost their new part, and a token costs at most 12 bytes', async t => {
  const turns = 60
  const records = []
  let prompt: number[] = Array.from({ length: 400 }, (_, i) => (i * 7919) % 151_000)
  let words = 0
  for (let n = 0; n < turns; n++) {
    const sampled = Array.from({ length: 40 }, () => (words++ * 104_729 + 13) % 151_000)
    records.push(
      recordOf({
        id: `msg_${String(n).padStart(12, '0')}`,
        prompt,
        sampled,
        startedAtMs: n,
        logprobs: sampled.map(id => -Math.abs(Math.sin(id)) * 3),
        over: { finish: 'length', request: { messages: messagesUpTo(n) } },
      }),
    )
    prompt = [...prompt, ...sampled, 1000 + n]
  }
  const ledger = ledgerOf(records.map(record => ({ record, delivered: 'yes' })))
  for (const builder of [prefixMerging, perRequest]) {
    const result = sessionResult(await builder.build(ledger, {}, context))
    const bytes = await sessionResultBinary(result)
    t.equal(binaryResultJson(bytes, 'x'), sessionResultJson(result))
    const distinct = prompt.length
    t.ok(bytes.length <= 12 * distinct, `${builder.id}: ${(bytes.length / distinct).toFixed(1)} bytes a distinct token`)
  }
})

const messagesUpTo = (n: number): JsonObject[] =>
  Array.from({ length: n + 1 }, (_, i) => ({
    role: i % 2 === 0 ? 'user' : 'assistant',
    content: `message ${i} `.repeat(20),
  }))

const noPython = spawnSync('python3', ['--version']).status === 0 ? false : 'this machine has no python3'

t.test('the Python reader of docs/examples reads the same', { skip: noPython }, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'sextant-binary-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  for (const status of ['COMPLETED', 'ERROR'] as const) {
    const result = await resultOf({
      seed: 11,
      turns: 9,
      trouble: 0.5,
      builder: perRequest,
      status,
      free: { note: 'ü"\n' },
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: null },
      ],
      tools: [{ type: 'function' }],
      logprobs: [-0.1, -3.25, -1e-9],
    })
    const path = join(folder, `${status}.sxr`)
    writeFileSync(path, await sessionResultBinary(result))
    const read = JSON.parse(execFileSync('python3', ['docs/examples/read_result.py', path], { encoding: 'utf8' }))
    const wanted = JSON.parse(sessionResultJson(result))
    const exact = (value: { trajectory: { traces: { response_logprobs: number[] }[] } }) =>
      value.trajectory.traces.map(trace => trace.response_logprobs.splice(0).map(one => Math.fround(one) + 0))
    t.strictSame(exact(read), exact(wanted), 'logprobs')
    t.strictSame(read, wanted)
  }
})

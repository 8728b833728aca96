// The invariants of the token ledger (design: trajectory.md, section 5) over generated sessions. SEXTANT_LEDGER_RUNS sets
// their number; the seed is printed and SEXTANT_LEDGER_SEED repeats a run.

import fc from 'fast-check'
import t from 'tap'
import { perRequest } from '../../src/builders/per-request.js'
import { prefixMerging } from '../../src/builders/prefix-merging.js'
import type { CapturedCall, CompletionRecord, SessionLedger } from '../../src/domain/completion.js'
import type { JsonObject } from '../../src/domain/json.js'
import type { Trace, Trajectory } from '../../src/domain/trajectory.js'
import { unaccountedTokens } from '../../src/ledger/counts.js'
import { unusable } from '../../src/ledger/screen.js'
import { decode, encode } from '../../src/wire/codec.js'
import { parseCaptureFrame } from '../../src/wire/frames.js'
import { ledgerOf, SESSION, shuffled, streamOf } from '../support/ledger-fixtures.js'
import { generateCalls, seeded, worldText } from '../support/session-generator.js'

const runs = Number(process.env['SEXTANT_LEDGER_RUNS'] ?? 300)
const seed = Number(process.env['SEXTANT_LEDGER_SEED'] ?? Date.now() % 1_000_000)
t.comment(`seed ${seed}, ${runs} sessions`)

const context = {
  decode: async (ids: Int32Array) => worldText(ids),
  sessionId: SESSION,
  taskId: 't',
  taskMetadata: {},
}
const merge = (ledger: SessionLedger, config: JsonObject = {}): Promise<Trajectory> =>
  prefixMerging.build(ledger, config, context)

const session = fc.record({
  seed: fc.integer(),
  turns: fc.integer({ min: 0, max: 14 }),
  trouble: fc.constantFrom(0, 0.2, 0.5, 0.9),
})
const callsOf = (input: { seed: number; turns: number; trouble: number }): CapturedCall[] =>
  generateCalls(input.seed, input)

const settings = fc.record({
  join: fc.constantFrom('faithful', 'lenient', 'prompt_prefix'),
  train_side_calls: fc.boolean(),
  keep_retries: fc.boolean(),
  max_tokens: fc.option(fc.integer({ min: 5, max: 80 }), { nil: null }),
})

const check = (property: fc.IAsyncProperty<unknown>, share = 1): Promise<void> =>
  fc.assert(property, { seed, numRuns: Math.max(1, Math.round(runs * share)) })

const recordsById = (calls: readonly CapturedCall[]): Map<string, CompletionRecord> =>
  new Map(calls.map(({ record }) => [record.completionId, record]))

const ones = (trace: Trace): number => trace.lossMask.reduce((sum, one) => sum + one, 0)

/** What a trace is, without identity of arrays. */
const picture = (trajectory: Trajectory): string =>
  JSON.stringify([
    trajectory.traces.map(trace => [streamOf(trace), [...trace.responseLogprobs], trace.calls, trace.breakReason]),
    trajectory.ledger,
  ])

function assertSound(calls: readonly CapturedCall[], made: Trajectory): void {
  const records = recordsById(calls)
  const trained = new Map<string, number>()
  let maskedIn = 0
  for (const trace of made.traces) {
    const { length } = trace.responseIds
    if (trace.lossMask.length !== length || trace.responseLogprobs.length !== length) throw new Error('lengths differ')
    const covered = new Uint8Array(length)
    for (const call of trace.calls) {
      const record = records.get(call.completionId)
      if (!record?.sampledIds) throw new Error('a call of no record')
      const span = trace.responseIds.subarray(call.start, call.end)
      if (span.some((id, i) => id !== record.sampledIds?.[i])) throw new Error('a span is not what was sampled')
      if (!call.trained) continue
      trained.set(call.completionId, (trained.get(call.completionId) ?? 0) + 1)
      if (unusable(record, record.promptIds !== null) !== null) throw new Error('an unusable call is trained')
      for (let i = call.start; i < call.end; i++) {
        covered[i] = 1
        if (trace.lossMask[i] !== 1) throw new Error('a trained token has mask 0')
        if (trace.responseLogprobs[i] !== record.logprobs?.[i - call.start]) throw new Error('a foreign logprob')
      }
    }
    for (let i = 0; i < length; i++) {
      if ((trace.lossMask[i] === 1) !== (covered[i] === 1)) throw new Error('a mask-1 token of no trained call')
      if (trace.lossMask[i] === 0 && trace.responseLogprobs[i] !== 0) throw new Error('a logprob behind mask 0')
    }
    maskedIn += ones(trace)
  }
  for (const [id, times] of trained) if (times > 1) throw new Error(`${id} is trained ${times} times`)
  if (maskedIn !== made.ledger.tokens.trained) throw new Error('the masks do not sum to what is trained')
  if (unaccountedTokens(made.ledger) !== 0) throw new Error('tokens are not accounted for')
  const sampled = calls.reduce((sum, { record }) => sum + (record.sampledIds?.length ?? record.completionTokens), 0)
  if (made.ledger.tokens.sampled !== sampled) throw new Error('sampled tokens are miscounted')
}

t.test('1-3: every sampled token is trained once or set aside by reason, with its own logprob, in every setting', () =>
  check(
    fc.asyncProperty(session, settings, async (input, config) => {
      const calls = callsOf(input)
      assertSound(calls, await merge(ledgerOf(calls), config))
      const { join: _, ...rest } = config
      assertSound(calls, await perRequest.build(ledgerOf(calls), rest, context))
    }),
  ),
)

t.test('2: without a limit every usable call is trained in exactly one trace or set aside as a whole', () =>
  check(
    fc.asyncProperty(session, async input => {
      const calls = callsOf(input)
      const made = await merge(ledgerOf(calls), { train_side_calls: true, keep_retries: true })
      const trained = made.traces.flatMap(trace =>
        trace.calls.filter(call => call.trained).map(call => call.completionId),
      )
      const aborted = calls.filter(({ record, delivered }) => delivered === 'no' && record.finish !== 'abort')
      for (const { record } of calls) {
        const usable = unusable(record, record.promptIds !== null) === null && (record.sampledIds?.length ?? 0) > 0
        const may = aborted.some(call => call.record === record)
        if (usable && !may && !trained.includes(record.completionId)) throw new Error(`${record.completionId} is lost`)
      }
    }),
    0.5,
  ),
)

t.test('4: no token is trained behind a context the model did not see', () =>
  check(
    fc.asyncProperty(session, fc.constantFrom(null, 30, 60), async (input, max_tokens) => {
      const calls = callsOf(input)
      const records = recordsById(calls)
      for (const trace of (await merge(ledgerOf(calls), { train_side_calls: true, max_tokens })).traces) {
        if (max_tokens !== null && streamOf(trace).s.length > Math.max(max_tokens, trace.promptIds.length))
          throw new Error('a trace is longer than max_tokens')
        if (trace.calls.at(-1)?.end !== trace.responseIds.length) throw new Error('a trace ends in context')
        let exact = true
        for (const call of trace.calls) {
          exact &&= call.join === null || call.join === 'exact'
          const prompt = records.get(call.completionId)?.promptIds ?? []
          const before = [...trace.promptIds, ...trace.responseIds.subarray(0, call.start)]
          if (exact && before.join() !== [...prompt].join()) throw new Error('an exact trace differs from the prompt')
          if (worldText(before) !== worldText(prompt)) throw new Error('the context says something else')
        }
      }
    }),
  ),
)

t.test('4: the parent of a call is the longest prompt + answer, as a search over all pairs finds it', () =>
  check(
    fc.asyncProperty(session, async input => {
      const calls = callsOf(input)
      const records = recordsById(calls)
      const made = await merge(ledgerOf(calls), { train_side_calls: true, keep_retries: true })
      const kept = made.traces.flatMap(trace => trace.calls.map(call => records.get(call.completionId)))
      for (const trace of made.traces)
        for (const [i, call] of trace.calls.entries()) {
          const record = records.get(call.completionId)
          if (!record) throw new Error('a call of no record')
          const previous = trace.calls[i - 1]
          const end = previous ? (record.promptIds?.length ?? 0) - (call.start - previous.end) : -1
          const longest = Math.max(-1, ...kept.map(other => (other && other !== record ? reach(other, record) : -1)))
          if (end !== longest) throw new Error(`${call.completionId} is joined at ${end}, wanted ${longest}`)
        }
    }),
    0.5,
  ),
)

/** Where the answer of `other` ends in the prompt of `record`, in its ids or in others of the same text; -1 = nowhere. */
function reach(other: CompletionRecord, record: CompletionRecord): number {
  const prompt = [...(record.promptIds ?? [])]
  const before = [...(other.promptIds ?? [])]
  const sampled = [...(other.sampledIds ?? [])]
  if (other.sideRule !== null && record.sideRule === null) return -1
  if (before.length >= prompt.length || before.some((id, i) => id !== prompt[i])) return -1
  const tail = prompt.slice(before.length)
  if (sampled.every((id, i) => id === tail[i])) return before.length + sampled.length
  for (let k = 1; k <= tail.length; k++)
    if (worldText(tail.slice(0, k)) === worldText(sampled)) return before.length + k
  return -1
}

t.test('5: the order in which calls arrive changes nothing', () =>
  check(
    fc.asyncProperty(session, settings, fc.integer(), async (input, config, order) => {
      const calls = callsOf(input)
      const random = seeded(order)
      const moved = shuffled(calls, () => random.next()).map(({ record, delivered }, sequence) => ({
        delivered,
        record: { ...record, sequence },
      }))
      const [one, other] = [await merge(ledgerOf(calls), config), await merge(ledgerOf(moved), config)]
      if (picture(one) !== picture(other)) throw new Error('the result depends on the order')
    }),
  ),
)

t.test('6: what is decoded is linear in what was sampled and never the whole prompt', () =>
  check(
    fc.asyncProperty(session, async input => {
      const calls = callsOf(input)
      let decoded = 0
      const decode = async (ids: Int32Array) => {
        decoded += ids.length
        return worldText(ids)
      }
      await prefixMerging.build(ledgerOf(calls), {}, { ...context, decode })
      const prompts = calls.reduce((sum, { record }) => sum + (record.promptIds?.length ?? 0), 0)
      if (decoded > 64 * (prompts + 64)) throw new Error(`${decoded} ids decoded for ${prompts} received`)
    }),
    0.3,
  ),
)

t.test('7: sessions built side by side do not mix, and a foreign call is refused', async t => {
  await check(
    fc.asyncProperty(session, session, async (left, right) => {
      const ledgers = [ledgerOf(callsOf(left)), ledgerOf(callsOf(right))]
      const alone = [await merge(ledgerOf(callsOf(left))), await merge(ledgerOf(callsOf(right)))]
      const together = await Promise.all(ledgers.map(ledger => merge(ledger)))
      if (alone.map(picture).join() !== together.map(picture).join()) throw new Error('sessions mix')
    }),
    0.3,
  )
  const [call] = generateCalls(1, { trouble: 0, turns: 1 })
  if (!call) return t.fail('a call wanted')
  const foreign = { ...ledgerOf([call]), sessionId: 's-other' as SessionLedger['sessionId'] }
  await t.rejects(merge(foreign), { code: 'INTERNAL_BUG' })
  return
})

t.test('8: records that went through the wire give the same traces', () =>
  check(
    fc.asyncProperty(session, async input => {
      const calls = callsOf(input)
      const read = calls.map(({ record, delivered }, frameId) => {
        const frame = parseCaptureFrame(decode(encode({ v: 1, kind: 'completion-captured', frameId, record })))
        if (frame.kind !== 'completion-captured') throw new Error('another frame came back')
        return { delivered, record: frame.record }
      })
      if (picture(await merge(ledgerOf(calls))) !== picture(await merge(ledgerOf(read))))
        throw new Error('the wire changes the traces')
    }),
    0.3,
  ),
)

t.test('8: a lost delivery fact changes nothing: unknown counts as yes', () =>
  check(
    fc.asyncProperty(session, fc.integer(), async (input, which) => {
      const calls = callsOf(input)
      const random = seeded(which)
      const recovered = calls.map(call =>
        call.delivered === 'yes' && random.chance(0.5) ? { ...call, delivered: 'unknown' as const } : call,
      )
      if (picture(await merge(ledgerOf(calls))) !== picture(await merge(ledgerOf(recovered))))
        throw new Error('recovery changes the traces')
    }),
    0.5,
  ),
)

t.test('a text that cannot be told never makes a wrong join', () =>
  check(
    fc.asyncProperty(session, async input => {
      const calls = callsOf(input)
      const made = await prefixMerging.build(ledgerOf(calls), {}, { ...context, decode: async () => null })
      assertSound(calls, made)
      if ((made.ledger.joins.retokenised ?? 0) > 0) throw new Error('a join without text')
    }),
    0.3,
  ),
)

t.test('the generated sessions hold every trouble the ledger knows', async t => {
  const seen = new Set<string>()
  for (let n = 0; n < 300; n++) {
    const calls = generateCalls(n, { trouble: 0.5, turns: 12 })
    const made = await merge(ledgerOf(calls), { max_tokens: 60 })
    for (const key of Object.keys({ ...made.ledger.tokens.setAside, ...made.ledger.joins })) seen.add(key)
    if (made.traces.some(trace => trace.calls.some(call => !call.trained))) seen.add('shared')
    if (made.ledger.reference.misplacedTokens > 0) seen.add('misplaced')
    if (made.ledger.alternatives.lenient.contextIdsDiffering > 0) seen.add('drift')
  }
  const wanted = [
    'abandoned_retry',
    'aborted',
    'drift',
    'exact',
    'filtered',
    'misplaced',
    'no_token_ids',
    'over_length',
  ]
  t.strictSame([...seen].sort(), [...wanted, 'retokenised', 'rewritten', 'shared', 'side_call'])
})

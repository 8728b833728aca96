// The invariants of the token ledger (design: trajectory.md, section 5) over one generated session, with as few builds as they
// need. Used by the property test and by the soak. Throws an Error that says what does not hold.

import { isDeepStrictEqual } from 'node:util'
import { perRequest } from '../../src/builders/per-request.js'
import { prefixMerging } from '../../src/builders/prefix-merging.js'
import type { CapturedCall, CompletionRecord, SessionLedger } from '../../src/domain/completion.js'
import type { JsonObject } from '../../src/domain/json.js'
import type { Trace, Trajectory } from '../../src/domain/trajectory.js'
import { unaccountedTokens } from '../../src/ledger/counts.js'
import { type LogEntry, parseLogEntry } from '../../src/ledger/log-entry.js'
import { unusable } from '../../src/ledger/screen.js'
import { insertCall, insertDelivered, restoreLog, sealLog, sessionLog } from '../../src/ledger/session-log.js'
import { decode, encode } from '../../src/wire/codec.js'
import { ledgerOf, SESSION, shuffled, streamOf } from './ledger-fixtures.js'
import { generateCalls, seeded, worldText } from './session-generator.js'
import { withText } from './told-sessions.js'

export interface SessionInput {
  readonly seed: number
  readonly turns: number
  readonly trouble: number
}

export interface BuilderSettings {
  readonly join: 'faithful' | 'lenient' | 'prompt_prefix'
  readonly train_side_calls: boolean
  readonly keep_retries: boolean
  readonly max_tokens: number | null
}

export const context = {
  decode: async (ids: Int32Array) => worldText(ids),
  sessionId: SESSION,
  taskId: 't',
  taskMetadata: {},
}

export const merge = (ledger: SessionLedger, config: JsonObject | BuilderSettings = {}): Promise<Trajectory> =>
  prefixMerging.build(ledger, { ...config }, context)

/** Every fourth session has messages and bodies that say what its ids say. */
export const callsOf = (input: SessionInput): CapturedCall[] => {
  const calls = generateCalls(input.seed, input)
  return input.seed % 4 === 0 ? withText(calls, input.seed) : calls
}

const recordsById = (calls: readonly CapturedCall[]): Map<string, CompletionRecord> =>
  new Map(calls.map(({ record }) => [record.completionId, record]))

/** All but what names the build. */
export const sameTraces = (left: Trajectory, right: Trajectory): boolean =>
  isDeepStrictEqual([left.traces, left.ledger], [right.traces, right.ledger])

/** `order` and `cut` decide the other order of arrival and the moment of the crash; `cut` in [0, 1). */
export async function checkSession(
  input: SessionInput,
  settings: BuilderSettings,
  order: number,
  cut: number,
): Promise<void> {
  const calls = callsOf(input)
  const log = sessionLog(SESSION)
  const entries = calls.flatMap(({ record, delivered }) => [
    insertCall(log, record),
    insertDelivered(log, record.completionId, delivered),
  ])
  const sealed = sealLog(log)
  const made = await merge(sealed, settings)
  assertSound(calls, made)
  if (settings.max_tokens === null) assertAlternative(made, settings.join)
  if (settings.join === 'faithful') assertContexts(calls, made, settings.max_tokens)
  const { join: _, ...rest } = settings
  assertSound(calls, await perRequest.build(sealed, rest, context))

  let decoded = 0
  const counting = async (ids: Int32Array) => {
    decoded += ids.length
    return worldText(ids)
  }
  const everything = await prefixMerging.build(sealed, EVERYTHING, { ...context, decode: counting })
  assertSound(calls, everything)
  assertContexts(calls, everything, null)
  assertLossless(calls, everything)
  assertParents(calls, everything)
  const prompts = calls.reduce((sum, { record }) => sum + (record.promptIds?.length ?? 0), 0)
  if (decoded > 64 * (prompts + 64)) throw new Error(`6: ${decoded} ids decoded for ${prompts} received`)

  const random = seeded(order)
  const moved = shuffled(calls, () => random.next()).map(({ record, delivered }, sequence) => ({
    delivered,
    record: { ...record, sequence },
  }))
  if (!sameTraces(made, await merge(ledgerOf(moved), settings))) throw new Error('5: the result depends on the order')

  const kept = entries.slice(0, Math.floor(cut * (entries.length + 1))).filter(entry => entry !== null)
  // What a proxy told before the crash and was not stored is lost only for a delivery: unknown counts as yes.
  const recovered = restoreLog(SESSION, throughTheStore(kept))
  for (const { record, delivered } of calls) {
    insertCall(recovered, record)
    if (delivered !== 'yes' || random.chance(0.5)) insertDelivered(recovered, record.completionId, delivered)
  }
  if (!sameTraces(made, await merge(sealLog(recovered), settings))) throw new Error('8: a recovery changes the traces')

  if (random.chance(0.7)) return
  const blind = await prefixMerging.build(sealed, {}, { ...context, decode: async () => null })
  assertSound(calls, blind)
  if ((blind.ledger.joins.retokenised ?? 0) > 0) throw new Error('a join without text')
}

const EVERYTHING = { train_side_calls: true, keep_retries: true }

const throughTheStore = (entries: readonly LogEntry[]): LogEntry[] =>
  entries.map(entry => parseLogEntry(decode(encode(entry))))

const ones = (trace: Trace): number => trace.lossMask.reduce((sum, one) => sum + one, 0)

/** 1-3: every sampled token is trained once or set aside by reason, with its own logprob. */
export function assertSound(calls: readonly CapturedCall[], made: Trajectory): void {
  const records = recordsById(calls)
  const trained = new Map<string, number>()
  let maskedIn = 0
  for (const trace of made.traces) {
    const { length } = trace.responseIds
    if (trace.lossMask.length !== length || trace.responseLogprobs.length !== length)
      throw new Error('3: lengths differ')
    const covered = new Uint8Array(length)
    for (const call of trace.calls) {
      const record = records.get(call.completionId)
      if (!record?.sampledIds) throw new Error('2: a call of no record')
      const span = trace.responseIds.subarray(call.start, call.end)
      if (span.some((id, i) => id !== record.sampledIds?.[i])) throw new Error('2: a span is not what was sampled')
      if (!call.trained) continue
      trained.set(call.completionId, (trained.get(call.completionId) ?? 0) + 1)
      if (unusable(record, record.promptIds !== null) !== null) throw new Error('2: an unusable call is trained')
      for (let i = call.start; i < call.end; i++) {
        covered[i] = 1
        if (trace.lossMask[i] !== 1) throw new Error('2: a trained token has mask 0')
        if (trace.responseLogprobs[i] !== record.logprobs?.[i - call.start]) throw new Error('2: a foreign logprob')
      }
    }
    for (let i = 0; i < length; i++) {
      if ((trace.lossMask[i] === 1) !== (covered[i] === 1)) throw new Error('2: a mask-1 token of no trained call')
      if (trace.lossMask[i] === 0 && trace.responseLogprobs[i] !== 0) throw new Error('3: a logprob behind mask 0')
    }
    maskedIn += ones(trace)
  }
  for (const [id, times] of trained) if (times > 1) throw new Error(`2: ${id} is trained ${times} times`)
  if (maskedIn !== made.ledger.tokens.trained) throw new Error('1: the masks do not sum to what is trained')
  if (unaccountedTokens(made.ledger) !== 0) throw new Error('1: tokens are not accounted for')
  const sampled = calls.reduce((sum, { record }) => sum + (record.sampledIds?.length ?? record.completionTokens), 0)
  if (made.ledger.tokens.sampled !== sampled) throw new Error('1: sampled tokens are miscounted')
}

/** 1: what the ledger says that a join setting gives is what that setting gave. */
function assertAlternative({ traces, ledger }: Trajectory, join: BuilderSettings['join']): void {
  const trainerTokens = traces.reduce((sum, trace) => sum + trace.promptIds.length + trace.responseIds.length, 0)
  const given = [traces.length, trainerTokens, ledger.tokens.trained]
  const said = ledger.alternatives[join]
  if (!isDeepStrictEqual(given, [said.traces, said.trainerTokens, said.trainedTokens]))
    throw new Error(`1: ${join} gave ${given.join()}, the ledger says ${JSON.stringify(said)}`)
}

/** 2: without a limit every usable call is trained in exactly one trace or set aside as a whole. */
function assertLossless(calls: readonly CapturedCall[], made: Trajectory): void {
  const trained = new Set(
    made.traces.flatMap(trace => trace.calls.filter(call => call.trained).map(call => call.completionId)),
  )
  for (const { record, delivered } of calls) {
    const usable = unusable(record, record.promptIds !== null) === null && (record.sampledIds?.length ?? 0) > 0
    const may = delivered === 'no' && record.finish !== 'abort'
    if (usable && !may && !trained.has(record.completionId)) throw new Error(`2: ${record.completionId} is lost`)
  }
}

/** 4: no token is trained behind a context the model did not see; a trace keeps to `maxTokens` and ends in an answer. */
function assertContexts(calls: readonly CapturedCall[], made: Trajectory, maxTokens: number | null): void {
  const records = recordsById(calls)
  for (const trace of made.traces) {
    const stream = streamOf(trace).s
    if (maxTokens !== null && stream.length > Math.max(maxTokens, trace.promptIds.length))
      throw new Error('4: a trace is longer than max_tokens')
    if (trace.calls.at(-1)?.end !== trace.responseIds.length) throw new Error('4: a trace ends in context')
    let exact = true
    for (const call of trace.calls) {
      exact &&= call.join === null || call.join === 'exact'
      const prompt = records.get(call.completionId)?.promptIds ?? new Int32Array(0)
      const before = stream.slice(0, trace.promptIds.length + call.start)
      const same = before.length === prompt.length && before.every((id, i) => id === prompt[i])
      if (exact && !same) throw new Error('4: an exact trace differs from the prompt')
      if (!same && worldText(before) !== worldText(prompt)) throw new Error('4: the context says something else')
    }
  }
}

/** 4: the parent of a call is the longest prompt + answer, as a search over all pairs finds it. */
function assertParents(calls: readonly CapturedCall[], made: Trajectory): void {
  const records = recordsById(calls)
  const kept = made.traces.flatMap(trace => trace.calls.map(call => records.get(call.completionId)))
  for (const trace of made.traces)
    for (const [i, call] of trace.calls.entries()) {
      const record = records.get(call.completionId)
      if (!record) throw new Error('4: a call of no record')
      const previous = trace.calls[i - 1]
      const end = previous ? (record.promptIds?.length ?? 0) - (call.start - previous.end) : -1
      const longest = kept.reduce(
        (most, other) => (other && other !== record ? Math.max(most, reach(other, record, most)) : most),
        -1,
      )
      if (end !== longest) throw new Error(`4: ${call.completionId} is joined at ${end}, wanted ${longest}`)
    }
}

const NO_IDS = new Int32Array(0)

/** Where the answer of `other` ends in the prompt of `record`, in its ids or in others of the same text; -1 = nowhere beyond `most`. */
function reach(other: CompletionRecord, record: CompletionRecord, most: number): number {
  const prompt = record.promptIds ?? NO_IDS
  const before = other.promptIds ?? NO_IDS
  const sampled = other.sampledIds ?? NO_IDS
  if (other.sideRule !== null && record.sideRule === null) return -1
  if (before.length >= prompt.length || before.some((id, i) => id !== prompt[i])) return -1
  const at = before.length
  if (sampled.every((id, i) => id === prompt[at + i])) return at + sampled.length
  const wanted = worldText(sampled)
  for (let end = Math.max(at + 1, most + 1); end <= prompt.length; end++) {
    const text = worldText(prompt.subarray(at, end))
    if (text.length > wanted.length) return -1
    if (text === wanted) return end
  }
  return -1
}

// The online ledger over generated sessions: what it keeps is what was captured, and a log made again of its entries, which went
// through the codec as a store's would, is the log that was not disturbed.

import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import type { CapturedCall, CompletionRecord } from '../../src/domain/completion.js'
import { type LogEntry, parseLogEntry } from '../../src/ledger/log-entry.js'
import { wholeOriginal } from '../../src/ledger/original-request.js'
import {
  insertCall,
  insertDelivered,
  insertFailed,
  recordsOf,
  restoreLog,
  type SessionLog,
  sealLog,
  sessionLog,
} from '../../src/ledger/session-log.js'
import { decode, encode } from '../../src/wire/codec.js'
import { SESSION, shuffled } from '../support/ledger-fixtures.js'
import { failedCall } from '../support/records.js'
import { generateCalls, seeded } from '../support/session-generator.js'
import { withText } from '../support/told-sessions.js'

const seed = Number(process.env['SEXTANT_LEDGER_SEED'] ?? Date.now() % 1_000_000)
const numRuns = 500
t.comment(`seed ${seed}, ${numRuns} sessions`)

const session = fc.record({
  seed: fc.integer(),
  turns: fc.integer({ min: 0, max: 14 }),
  trouble: fc.constantFrom(0, 0.2, 0.5, 0.9),
  order: fc.integer(),
})

type Session = { readonly seed: number; readonly turns: number; readonly trouble: number; readonly order: number }

/** Calls in some order of arrival. */
function arriving(input: Session): CapturedCall[] {
  const calls = withText(generateCalls(input.seed, input), input.seed)
  const random = seeded(input.order)
  return random.chance(0.5) ? calls : shuffled(calls, () => random.next())
}

const failure = (sequence: number) => failedCall({ sessionId: SESSION, sequence })

/** Inserts a call, what became of it, and now and then a failure. */
function insert(log: SessionLog, { record, delivered }: CapturedCall, place: number): LogEntry[] {
  const entries: (LogEntry | null)[] = [insertCall(log, record)]
  if (delivered !== 'unknown') entries.push(insertDelivered(log, record.completionId, delivered))
  if (place % 3 === 2) entries.push(insertFailed(log, failure(place)))
  return entries.filter(entry => entry !== null)
}

const throughTheStore = (entries: readonly LogEntry[]): LogEntry[] =>
  entries.map(entry => parseLogEntry(decode(encode(entry))))

const same = (left: unknown, right: unknown, what: string): void => {
  if (!isDeepStrictEqual(left, right)) throw new Error(`${what} differ`)
}

t.test('what is kept is what was captured', async () =>
  fc.assert(
    fc.property(session, input => {
      const calls = arriving(input)
      const log = sessionLog(SESSION)
      calls.forEach((call, place) => {
        insert(log, call, place)
        if (insertCall(log, call.record) !== null) throw new Error('a call was inserted twice')
      })
      const kept = [...recordsOf(log)]
      const byId = new Map(kept.map(record => [record.completionId, record]))
      const whole = kept.map(record => ({
        ...record,
        originalRequest: wholeOriginal(record, id => byId.get(id)),
        originalLike: null,
      }))
      same(
        whole,
        calls.map(({ record }) => record),
        'records',
      )
      same(
        sealLog(log).calls.map(call => call.delivered),
        calls.map(call => call.delivered),
        'deliveries',
      )
    }),
    { seed, numRuns },
  ),
)

t.test('8: a crash after any entry and a recovery leave the same log', async () =>
  fc.assert(
    fc.property(session, fc.double({ min: 0, max: 1, noNaN: true }), (input, part) => {
      const calls = arriving(input)
      const undisturbed = sessionLog(SESSION)
      const entries = calls.map((call, place) => insert(undisturbed, call, place))
      const crashed = Math.floor(part * calls.length)
      const stored = throughTheStore(entries.slice(0, crashed).flat())
      const recovered = restoreLog(SESSION, [...stored, ...stored])
      const rest = calls.slice(crashed).map((call, at) => insert(recovered, call, crashed + at))
      same(throughTheStore(rest.flat()), throughTheStore(entries.slice(crashed).flat()), 'entries')
      same(sealLog(recovered), sealLog(undisturbed), 'sealed logs')
      same(recovered.sums, undisturbed.sums, 'sums')
    }),
    { seed, numRuns },
  ),
)

t.test('entries that are missing, foreign or broken are found out', async t => {
  const calls = arriving({ seed: 7, turns: 8, trouble: 0, order: 1 })
  const log = sessionLog(SESSION)
  const entries = calls.flatMap((call, place) => insert(log, call, place))
  t.throws(() => restoreLog(SESSION, entries.slice(1)), { code: 'INTERNAL_BUG' })
  const foreign = { ...(calls[0]?.record as CompletionRecord), sessionId: 's-other' as CompletionRecord['sessionId'] }
  t.throws(() => insertCall(log, foreign), { code: 'INTERNAL_BUG' })
  const [entry] = entries
  for (const key of Object.keys(entry ?? {}))
    t.throws(() => parseLogEntry({ ...entry, [key]: undefined }), { code: 'WIRE_MALFORMED' }, key)
  for (const broken of [null, 3, {}, { kind: 'other' }, { kind: 'failed' }, { kind: 'delivered' }])
    t.throws(() => parseLogEntry(broken), { code: 'WIRE_MALFORMED' })
})

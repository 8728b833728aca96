// The invariants of the token ledger (design: trajectory.md, section 5) over generated sessions. SEXTANT_LEDGER_RUNS sets
// their number; the seed is printed and SEXTANT_LEDGER_SEED repeats a run. `npm run test:soak` checks many more.

import fc from 'fast-check'
import t from 'tap'
import type { SessionLedger } from '../../src/domain/completion.js'
import { ledgerOf } from '../support/ledger-fixtures.js'
import { callsOf, checkSession, merge, sameTraces } from '../support/ledger-invariants.js'
import { generateCalls } from '../support/session-generator.js'

const runs = Number(process.env['SEXTANT_LEDGER_RUNS'] ?? 2000)
const seed = Number(process.env['SEXTANT_LEDGER_SEED'] ?? Date.now() % 1_000_000)
t.comment(`seed ${seed}, ${runs} sessions`)

const session = fc.record({
  seed: fc.integer(),
  turns: fc.integer({ min: 0, max: 14 }),
  trouble: fc.constantFrom(0, 0.2, 0.5, 0.9),
})

const settings = fc.record({
  join: fc.constantFrom('faithful' as const, 'lenient' as const, 'prompt_prefix' as const),
  train_side_calls: fc.boolean(),
  keep_retries: fc.boolean(),
  max_tokens: fc.option(fc.integer({ min: 5, max: 80 }), { nil: null }),
})

t.test('1-6, 8: the invariants hold in every setting, order of arrival and after every crash', async () => {
  let checked = 0
  await fc.assert(
    fc.asyncProperty(
      session,
      settings,
      fc.integer(),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      async (...input) => {
        await checkSession(...input)
        checked++
      },
    ),
    { seed, numRuns: runs },
  )
  t.comment(`${checked} sessions checked`)
})

t.test('7: sessions built side by side do not mix, and a foreign call is refused', async t => {
  await fc.assert(
    fc.asyncProperty(session, session, async (left, right) => {
      const inputs = [left, right]
      const alone = [await merge(ledgerOf(callsOf(left))), await merge(ledgerOf(callsOf(right)))]
      const together = await Promise.all(inputs.map(input => merge(ledgerOf(callsOf(input)))))
      if (alone.some((one, i) => !together[i] || !sameTraces(one, together[i]))) throw new Error('sessions mix')
    }),
    { seed, numRuns: Math.max(1, Math.round(runs / 20)) },
  )
  const [call] = generateCalls(1, { trouble: 0, turns: 1 })
  if (!call) return t.fail('a call wanted')
  const foreign = { ...ledgerOf([call]), sessionId: 's-other' as SessionLedger['sessionId'] }
  await t.rejects(merge(foreign), { code: 'INTERNAL_BUG' })
  return
})

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

// The audit finds by the tokens alone what the builder says of itself: over generated sessions both count the same.

import fc from 'fast-check'
import t from 'tap'
import { auditSession } from '../../src/audit/audit-session.js'
import { type PlacedCall, placementOf } from '../../src/audit/placement.js'
import { perRequest } from '../../src/builders/per-request.js'
import { prefixMerging } from '../../src/builders/prefix-merging.js'
import type { Trajectory } from '../../src/domain/trajectory.js'
import { insertCall, sessionLog } from '../../src/ledger/session-log.js'
import { hashOf } from '../../src/ledger/token-hash.js'
import { ledgerOf, SESSION } from '../support/ledger-fixtures.js'
import { generateCalls, worldText } from '../support/session-generator.js'

const decode = async (ids: Int32Array) => worldText(ids)
const context = { decode, sessionId: SESSION, taskId: 't', taskMetadata: {} }
const session = fc.record({
  seed: fc.integer(),
  turns: fc.integer({ min: 1, max: 14 }),
  trouble: fc.constantFrom(0, 0.2, 0.5, 0.9),
})

const placed = (calls: ReturnType<typeof generateCalls>): PlacedCall[] =>
  calls.flatMap(({ record: { completionId: id, sampledIds, promptIds } }) =>
    sampledIds?.length
      ? [{ id, sampled: sampledIds, context: promptIds && { length: promptIds.length, hash: hashOf(promptIds) } }]
      : [],
  )

const tokensOf = ({ traces }: Trajectory) =>
  traces.map(({ promptIds, responseIds, lossMask }) => ({ promptIds, responseIds, mask: lossMask }))

t.test('what a builder trains is found again in its traces, once each, behind what the model saw', () =>
  fc.assert(
    fc.asyncProperty(session, fc.constantFrom(prefixMerging, perRequest), async (input, builder) => {
      const calls = generateCalls(input.seed, input)
      const made = await builder.build(ledgerOf(calls), { train_side_calls: true, keep_retries: true }, context)
      const found = placementOf(tokensOf(made), placed(calls))
      const { trained } = made.ledger.tokens
      if (found.trained !== trained) throw new Error(`${found.trained} found, ${trained} trained`)
      if (found.twice !== 0 || found.foreign !== 0) throw new Error(`${found.twice} twice, ${found.foreign} foreign`)
      const isExact = builder === perRequest || made.ledger.joins.retokenised === undefined
      if (isExact && found.unseen !== 0) throw new Error(`${found.unseen} behind another context`)
    }),
    { numRuns: 150 },
  ),
)

t.test('a trace that is sent twice, and a context that is changed, are found', () =>
  fc.assert(
    fc.asyncProperty(session, async input => {
      const calls = generateCalls(input.seed, { ...input, trouble: 0 })
      const [trace, ...others] = tokensOf(await prefixMerging.build(ledgerOf(calls), {}, context))
      if (!trace) throw new Error('a trace wanted')
      const again = placementOf([trace, ...others, trace], placed(calls))
      const ones = trace.mask.reduce((sum, bit) => sum + bit, 0)
      if (again.twice !== ones) throw new Error(`${again.twice} twice, wanted ${ones}`)
      const moved = { ...trace, promptIds: Int32Array.of(7, ...trace.promptIds) }
      const shifted = placementOf([moved, ...others], placed(calls))
      if (shifted.unseen !== ones) throw new Error(`${shifted.unseen} unseen, wanted ${ones}`)
    }),
    { numRuns: 100 },
  ),
)

t.test(
  'a session under every rule: sampled = trained + set aside + lost, and faithful loses and misplaces nothing',
  () =>
    fc.assert(
      fc.asyncProperty(session, async input => {
        const log = sessionLog(SESSION)
        for (const { record } of generateCalls(input.seed, input)) insertCall(log, record)
        const parts = { taskId: 't', sessionId: SESSION, source: 'completions' as const, log, saved: null, notes: [] }
        const { audit } = await auditSession(parts, { decode, endTokenId: null })
        for (const [rule, { trained, setAside, lost, twice }] of Object.entries(audit.rules)) {
          if (trained + setAside + (lost ?? 0) !== audit.sampled) throw new Error(`${rule} does not add up`)
          if (twice !== 0) throw new Error(`${rule} trains ${twice} tokens twice`)
        }
        const { faithful } = audit.rules
        if (faithful?.lost !== 0 || faithful.unseen !== 0)
          throw new Error('the faithful rule loses or misplaces tokens')
      }),
      { numRuns: 150 },
    ),
)

// `per_request`: one trace for every call with ids, mask 0 for what is set aside.

import t from 'tap'
import { perRequest } from '../../../src/builders/per-request.js'
import { builders } from '../../../src/builders/registry.js'
import type { CapturedCall } from '../../../src/domain/completion.js'
import { decoderOf, ledgerOf, recordOf, SESSION, streamOf } from '../../support/ledger-fixtures.js'

const context = { decode: decoderOf(), sessionId: SESSION, taskId: 't', taskMetadata: {} }

const captured: readonly CapturedCall[] = [
  recordOf({ id: 'c1', prompt: [1, 2], sampled: [10, 99], startedAtMs: 1 }),
  recordOf({ id: 'c1b', prompt: [1, 2], sampled: [11, 99], startedAtMs: 2 }),
  recordOf({ id: 'q', prompt: [5], sampled: [30], startedAtMs: 3, over: { sideRule: 'title' } }),
  recordOf({ id: 'c2', prompt: [1, 2, 11, 99, 50], sampled: [20, 99], startedAtMs: 4 }),
  recordOf({ id: 'c3', prompt: [1, 2, 11, 99, 50, 20, 99, 51], sampled: [21, 99], startedAtMs: 5, logprobs: null }),
  recordOf({ id: 'c4', prompt: null, sampled: [22, 99], startedAtMs: 6 }),
].map(record => ({ record, delivered: 'yes' }))

t.test(
  'every call with ids has a trace; retries, side calls and unusable ones have mask 0 under their reason',
  async t => {
    const made = await perRequest.build(ledgerOf(captured), {}, context)
    t.strictSame(made.traces.map(streamOf), [
      { s: [1, 2, 10, 99], m: [0, 0, 0, 0] },
      { s: [1, 2, 11, 99], m: [0, 0, 1, 1] },
      { s: [5, 30], m: [0, 0] },
      { s: [1, 2, 11, 99, 50, 20, 99], m: [0, 0, 0, 0, 0, 1, 1] },
      { s: [1, 2, 11, 99, 50, 20, 99, 51, 21, 99], m: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0] },
    ])
    t.strictSame(
      made.traces.map(trace => trace.calls[0]?.setAside),
      ['abandoned_retry', null, 'side_call', null, 'filtered'],
    )
    t.strictSame(made.ledger.tokens, {
      sampled: 11,
      trained: 4,
      setAside: { abandoned_retry: 2, filtered: 2, no_token_ids: 2, side_call: 1 },
    })
    t.strictSame(made.ledger.perRequest, { traces: 2, trainerTokens: 11 })
    t.equal(made.ledger.alternatives.faithful.traces, 1)
  },
)

t.test('an empty session is the same error as with merging', async t => {
  t.match(await perRequest.build(ledgerOf([]), {}, context), {
    status: 'ERROR',
    error: 'no completions',
    builder: 'per_request',
  })
})

t.test('a joining setting is refused: there is nothing to join', t => {
  t.match(perRequest.check({ join: 'lenient' }), [{ path: 'join' }])
  t.end()
})

t.test('builders are registered under their own names', t => {
  for (const [id, builder] of Object.entries(builders)) t.equal(builder.id, id)
  t.end()
})

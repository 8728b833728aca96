// What `sextant try` says of a report and a session, and the exit code that stands for it.

import t from 'tap'
import { sessionRow } from '../../../src/cli/quickstart/view.js'
import {
  exitCodeOf,
  findingsText,
  type Proof,
  proofText,
  unprovenReason,
  verdictText,
} from '../../../src/cli/try/report.js'
import {
  fault,
  note,
  ok,
  type ProbeFinding,
  UNKNOWN_FACTS,
  verdictOf,
  warning,
} from '../../../src/upstreams/probe/report.js'
import type { ProbeReport } from '../../../src/upstreams/probe.js'

const reportOf = (...findings: readonly ProbeFinding[]): ProbeReport => ({
  urls: ['http://gpu:8000'],
  profile: 'vllm',
  model: 'm',
  ...verdictOf(findings),
  findings,
  facts: UNKNOWN_FACTS,
  calls: 54,
  durationMs: 12_340,
})
const result = (tokens: object, calls = 2) => ({
  session_id: 's-1',
  status: 'COMPLETED',
  trajectory: { traces: [], metadata: { ledger: { calls, tokens, joins: { exact: 1 } } } },
})
const proofOf = (tokens: object, calls?: number): Proof => {
  const row = sessionRow(result(tokens, calls))
  return { harness: 'codex', row, reason: unprovenReason(row) }
}
const good = proofOf({ sampled: 10, trained: 8, set_aside: { side_call: 2 } })

t.test('faults come first, each with what to change', t => {
  const report = reportOf(
    ok('reachable', 'there'),
    note('unknown_fields', 'ignored'),
    warning('joins', 'join_whitespace', 'broken', 'mend the template'),
    fault('sampling', 'sampling_truncated', 'draws as with top_k 20', '--generation-config vllm'),
  )
  t.strictSame(findingsText(report).split('\n'), [
    'Tried http://gpu:8000 (profile vllm, model m): 54 small calls in 12.3 s. What was seen:',
    '  FAULT   sampling        draws as with top_k 20',
    '                          change: --generation-config vllm',
    '  WARNING joins           broken',
    '                          change: mend the template',
    '  ok      reachable       there',
    '  note    unknown_fields  ignored',
  ])
  t.end()
})

t.test('the exit code: 0 trainable, 3 evaluation only, 1 not reached', t => {
  const passed = reportOf(ok('reachable', 'there'))
  t.equal(exitCodeOf(passed, good), 0)
  t.equal(verdictText(passed, good), 'Verdict: TRAINABLE')
  t.equal(exitCodeOf(passed, null), 0)
  t.match(verdictText(passed, null), /no session has proven it/)
  const faulty = reportOf(fault('token_ids', 'no_token_ids', 'none', null))
  t.equal(exitCodeOf(faulty, good), 3)
  t.equal(verdictText(faulty, good), 'Verdict: EVALUATION ONLY (no_token_ids)')
  const away = reportOf(fault('reachable', 'unreachable', 'no', null))
  t.equal(exitCodeOf(away, null), 1)
  t.equal(verdictText(away, null), 'Verdict: NOT REACHED')
  t.end()
})

t.test('a session that trains nothing disproves a probe that passed', t => {
  const passed = reportOf(ok('reachable', 'there'))
  for (const [proof, reason] of [
    [proofOf({ sampled: 10, trained: 0, set_aside: { filtered: 10 } }), /none of its 10 sampled tokens/],
    [proofOf({ sampled: 10, trained: 4, set_aside: {} }), /accounts do not balance/],
    [proofOf({ sampled: 0, trained: 0, set_aside: {} }, 0), /no model call/],
  ] as const) {
    t.match(proof.reason, reason)
    t.equal(exitCodeOf(passed, proof), 3)
    t.match(verdictText(passed, proof), /EVALUATION ONLY/)
    t.match(proofText(proof), reason)
  }
  t.equal(good.reason, null)
  t.match(proofText(good), /10 sampled tokens = 8 trained \+ 2 set aside \(2 side_call\)/)
  t.match(proofText({ harness: 'codex', row: null, reason: 'npm is away' }), /No session of codex: npm is away/)
  t.end()
})

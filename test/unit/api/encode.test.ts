// The wire JSON of a result: contract keys, numbers that come back as they were.

import fc from 'fast-check'
import t from 'tap'
import { ledgerJson, sessionResultJson } from '../../../src/api/encode.js'
import { float32sJson, float32Text } from '../../../src/api/numbers.js'
import { referencesAt } from '../../../src/api/result-routes.js'
import { TIMING_KEYS } from '../../../src/domain/session.js'
import { applyOutcome } from '../../../src/ledger/masking.js'
import { agentResult, evaluation, sessionResult, twoTraces } from '../../support/traces.js'

t.test('a result has the keys of the contract and no others', async t => {
  const wire = JSON.parse(sessionResultJson(sessionResult(await twoTraces())))
  t.strictSame(Object.keys(wire).sort(), [
    'error',
    'metadata',
    'node_id',
    'session_id',
    'status',
    'task_id',
    'timing',
    'trajectory',
  ])
  t.strictSame(Object.keys(wire.trajectory).sort(), ['error', 'metadata', 'status', 'traces'])
  t.strictSame(Object.keys(wire.trajectory.traces[0]).sort(), [
    'finish_reason',
    'loss_mask',
    'metadata',
    'prompt_ids',
    'prompt_messages',
    'response_ids',
    'response_logprobs',
    'response_messages',
    'reward',
    'reward_components',
    'tools',
  ])
  t.strictSame(Object.keys(wire.timing), [...TIMING_KEYS])
  t.equal(wire.timing.run_ms, 1234.568)
  t.equal(wire.timing.init_ms, 0)
  t.match(wire.metadata, {
    schema_version: 1,
    failure_class: null,
    truncated: null,
    sample_index: 0,
    policy_version: 12,
  })
  t.equal('fully_masked' in wire.metadata, false)
})

t.test('readers find what they rely on in trajectory.metadata', async t => {
  const result = sessionResult(await twoTraces(), { evaluation: evaluation({ metadata: { patch_path: 'p' } }) })
  const { metadata } = JSON.parse(sessionResultJson(result)).trajectory
  t.match(metadata, {
    builder: 'prefix_merging',
    task_id: 'task-1',
    record_count: 3,
    trace_count: 2,
    task_metadata: { note: 'x' },
    group_id: 'g-1',
    policy_version: 12,
    api_type: 'openai_chat',
    model_requested: 'm',
    model_used: 'served',
    agent_result: { status: 'completed', return_code: 0, timeout_source: null, timeout_stage: null },
    evaluation: { strategy: 'test_on_output', outcome_reward: 1, trace_rewards: null, patch_path: 'p' },
    reconstruction_stats: {
      chains_total: 2,
      chains_reconstructed_full: 2,
      completions_total: 3,
      completions_merged: 3,
    },
    ledger: {
      calls: 3,
      traces: 2,
      tokens: { sampled: 9, trained: 9, set_aside: {} },
      joins: { exact: 1 },
      side_calls: {},
      alternatives: { faithful: { traces: 2, trainer_tokens: 15 } },
      per_request: { traces: 3, trainer_tokens: 21 },
      reference: { kept_tokens: 9, lost_tokens: 0, misplaced_tokens: 0 },
    },
  })
})

t.test('ids, masks and spans come back as they were built', async t => {
  const trajectory = await twoTraces()
  const wire = JSON.parse(sessionResultJson(sessionResult(trajectory)))
  for (const [i, trace] of trajectory.traces.entries()) {
    const read = wire.trajectory.traces[i]
    t.strictSame(read.prompt_ids, [...trace.promptIds])
    t.strictSame(read.response_ids, [...trace.responseIds])
    t.strictSame(read.loss_mask, [...trace.lossMask])
    t.strictSame(read.response_logprobs.map(Math.fround), [...trace.responseLogprobs])
    t.strictSame(
      read.metadata.completion_metadata.map((call: { start: number; end: number }) => [call.start, call.end]),
      trace.calls.map(call => [call.start, call.end]),
    )
  }
})

t.test('a masked session keeps what it discarded and says so', async t => {
  const trajectory = applyOutcome({
    trajectory: await twoTraces(),
    status: 'ERROR',
    agentResult: agentResult({ status: 'failed', returnCode: 1 }),
    evaluation: evaluation(),
    evaluationTimedOut: false,
    truncated: null,
    containmentProven: true,
  })
  const wire = JSON.parse(
    sessionResultJson(sessionResult(trajectory, { status: 'ERROR', error: 'agent exited with code 1' })),
  )
  const [first] = wire.trajectory.traces
  t.equal(wire.metadata.fully_masked, true)
  t.notOk(first.loss_mask.includes(1))
  t.ok(first.metadata.discarded_loss_mask.includes(1))
  t.equal(first.reward, 0)
  t.match(first.metadata.training_filter, { reason: 'session_error', original_reward: 1 })
  t.strictSame(wire.trajectory.metadata.ledger.tokens, { sampled: 9, trained: 0, set_aside: { session_error: 9 } })
})

t.test('every float32 is written as a decimal that rounds to it, in at most nine digits', t => {
  fc.assert(
    fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), value => {
      const text = float32Text(value)
      const digits = text.replace(/e.*$/, '').replace(/[-.]/g, '').replace(/^0+/, '').replace(/0+$/, '')
      return Math.fround(Number(text)) === (value === 0 ? 0 : value) && (Number.isInteger(value) || digits.length <= 9)
    }),
    { numRuns: 2000 },
  )
  t.equal(float32Text(Math.fround(-0.1)), '-0.1')
  t.equal(float32Text(Math.fround(-2.512345)), '-2.512345')
  t.equal(float32sJson(Float32Array.of(0, -0.5, -1e-7)), '[0,-0.5,-1e-7]')
  t.throws(() => float32sJson(Float32Array.of(Number.NaN)), { code: 'INTERNAL_BUG' })
  t.end()
})

t.test('a session without a sampled token has a fraction of 0, not NaN', async t => {
  const { ledger } = await twoTraces()
  const nothing = ledgerJson({ ...ledger, tokens: { sampled: 0, trained: 0, setAside: {} } })
  t.equal(nothing['trained_fraction'], 0)
})

t.test('a reference is the result without its traces, and says where they are', async t => {
  const result = sessionResult(await twoTraces())
  const at = (base: string | null) => JSON.parse(referencesAt(() => base)(result, 2))
  const { result_ref: ref, ...rest } = at('http://10.0.0.1:8080')
  const whole = JSON.parse(sessionResultJson(result))
  t.strictSame(rest, { ...whole, trajectory: { ...whole.trajectory, traces: [] } })
  const path = `/rollout/task/task-1/sessions/${result.sessionId}?generation=2`
  t.strictSame(ref, {
    url: `http://10.0.0.1:8080${path}`,
    path,
    media_types: ['application/json', 'application/vnd.sextant.result'],
    traces: 2,
    trainer_tokens: 15,
    trained_tokens: 9,
  })
  t.equal(at(null).result_ref.url, null)
})

// The masking table of the contract (5.2), one row a case.

import t from 'tap'
import { unaccountedTokens } from '../../../src/ledger/counts.js'
import { applyOutcome, type OutcomeInput } from '../../../src/ledger/masking.js'
import { agentResult, evaluation, twoTraces } from '../../support/traces.js'

const outcome = async (changes: Partial<OutcomeInput> = {}) =>
  applyOutcome({
    trajectory: await twoTraces(),
    status: 'COMPLETED',
    agentResult: agentResult(),
    evaluation: evaluation(),
    evaluationTimedOut: false,
    truncated: null,
    containmentProven: true,
    ...changes,
  })

const agentTimeout = agentResult({ status: 'timeout', returnCode: -1, timeoutSource: 'agent', timeoutStage: 'exec' })

const ROWS: readonly {
  readonly title: string
  readonly changes: Partial<OutcomeInput>
  readonly status: string
  readonly rewards: readonly (number | null)[]
  readonly filter: readonly [reason: string, masked: boolean] | null
  readonly setAside: Record<string, number>
}[] = [
  {
    title: 'a good session keeps its masks',
    changes: {},
    status: 'COMPLETED',
    rewards: [1, 1],
    filter: null,
    setAside: {},
  },
  {
    title: 'without an evaluator there is no reward',
    changes: { evaluation: null },
    status: 'COMPLETED',
    rewards: [null, null],
    filter: null,
    setAside: {},
  },
  {
    title: 'trace rewards go to their traces',
    changes: { evaluation: evaluation({ traceRewards: [0.25, null] }) },
    status: 'COMPLETED',
    rewards: [0.25, null],
    filter: null,
    setAside: {},
  },
  {
    title: 'a session error masks everything',
    changes: { status: 'ERROR' },
    status: 'ERROR',
    rewards: [0, 0],
    filter: ['session_error', true],
    setAside: { session_error: 9 },
  },
  {
    title: 'a session error without an evaluator has no reward',
    changes: { status: 'ERROR', evaluation: null },
    status: 'ERROR',
    rewards: [null, null],
    filter: ['session_error', true],
    setAside: { session_error: 9 },
  },
  {
    title: 'a session time-out masks everything',
    changes: { status: 'TIMEOUT', agentResult: agentResult({ ...agentTimeout, timeoutSource: 'session' }) },
    status: 'TIMEOUT',
    rewards: [0, 0],
    filter: ['session_timeout', true],
    setAside: { session_timeout: 9 },
  },
  {
    title: 'an agent time-out in setup masks everything',
    changes: { status: 'TIMEOUT', agentResult: agentResult({ ...agentTimeout, timeoutStage: 'setup' }) },
    status: 'TIMEOUT',
    rewards: [0, 0],
    filter: ['session_timeout', true],
    setAside: { session_timeout: 9 },
  },
  {
    title: 'an agent time-out in exec stays trainable with reward 0',
    changes: { status: 'TIMEOUT', agentResult: agentTimeout },
    status: 'TIMEOUT',
    rewards: [0, 0],
    filter: ['agent_timeout', false],
    setAside: {},
  },
  {
    title: 'a verifier time-out masks everything, also after an agent time-out',
    changes: { status: 'TIMEOUT', agentResult: agentTimeout, evaluation: null, evaluationTimedOut: true },
    status: 'TIMEOUT',
    rewards: [0, 0],
    filter: ['session_timeout', true],
    setAside: { session_timeout: 9 },
  },
  {
    title: 'a verifier time-out makes a good session a time-out',
    changes: { evaluation: null, evaluationTimedOut: true },
    status: 'TIMEOUT',
    rewards: [0, 0],
    filter: ['session_timeout', true],
    setAside: { session_timeout: 9 },
  },
  {
    title: 'a runtime not proven dead masks everything',
    changes: { containmentProven: false },
    status: 'COMPLETED',
    rewards: [0, 0],
    filter: ['runtime_containment_unproven', true],
    setAside: { containment_unproven: 9 },
  },
  {
    title: 'a session that a limit ended stays trainable',
    changes: { truncated: 'max_turns' },
    status: 'COMPLETED',
    rewards: [1, 1],
    filter: null,
    setAside: {},
  },
]

for (const { title, changes, status, rewards, filter, setAside } of ROWS)
  t.test(title, async t => {
    const made = await outcome(changes)
    t.equal(made.status, status)
    t.strictSame(
      made.traces.map(trace => trace.reward),
      rewards,
    )
    t.strictSame(made.ledger.tokens.setAside, setAside)
    t.equal(unaccountedTokens(made.ledger), 0)
    const masked = filter?.[1] ?? false
    for (const trace of made.traces) {
      const found = trace.metadata['training_filter']
      if (!filter) t.equal(found, undefined)
      else t.match(found, { reason: filter[0], masked, trainable: !masked })
      t.equal(
        trace.lossMask.some(one => one === 1),
        !masked,
      )
      t.equal(trace.discardedLossMask?.some(one => one === 1) ?? false, masked)
      t.equal(
        trace.calls.some(call => call.trained),
        !masked,
      )
    }
  })

t.test('an agent time-out with a logprob that is no number is masked as unaligned', async t => {
  const trajectory = await twoTraces()
  trajectory.traces[0]?.responseLogprobs.fill(Number.NaN, 0, 1)
  const made = await outcome({ trajectory, status: 'TIMEOUT', agentResult: agentTimeout })
  t.strictSame(made.ledger.tokens.setAside, { agent_timeout_unaligned: 9 })
  t.match(made.metadata, { training_filter: { reason: 'agent_timeout_unaligned', masked: true, original_reward: 1 } })
})

t.test('an invalid tool call zeroes the reward of its own trace only', async t => {
  const trajectory = await twoTraces()
  const [first, second] = trajectory.traces
  if (!first || !second) return t.fail('two traces wanted')
  const filter = {
    masked: false,
    trainable: true,
    reason: 'parser_invalid_tool_call',
    detail: 'x',
    original_reward: null,
  }
  const flagged = { ...trajectory, traces: [{ ...first, metadata: { training_filter: filter } }, second] }
  const made = await outcome({ trajectory: flagged })
  t.strictSame(
    made.traces.map(trace => trace.reward),
    [0, 1],
  )
  t.match(made.traces[0]?.metadata, { training_filter: { reason: 'parser_invalid_tool_call', original_reward: 1 } })
  t.equal(
    made.traces[0]?.lossMask.some(one => one === 1),
    true,
  )
  return
})

t.test('trace rewards of another number make the session an error that says both numbers', async t => {
  const made = await outcome({ evaluation: evaluation({ traceRewards: [1] }) })
  t.equal(made.status, 'ERROR')
  t.equal(made.error, 'trace_rewards has 1 entries, wanted one for each of 2 traces')
  t.strictSame(made.ledger.tokens.setAside, { session_error: 9 })
})

t.test('a reward that is no finite number makes the session an error', async t => {
  const made = await outcome({ evaluation: evaluation({ outcomeReward: Number.NaN }) })
  t.equal(made.status, 'ERROR')
  t.match(made.error, /finite number/)
})

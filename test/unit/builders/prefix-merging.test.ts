// Settings and details of `prefix_merging` that the token cases do not show: what other settings join, what a trace carries.

import t from 'tap'
import { prefixMerging } from '../../../src/builders/prefix-merging.js'
import type { CapturedCall, FailedCall } from '../../../src/domain/completion.js'
import type { JsonObject } from '../../../src/domain/json.js'
import { unaccountedTokens } from '../../../src/ledger/counts.js'
import { decoderOf, ledgerOf, type RecordInput, recordOf, SESSION, streamOf } from '../../support/ledger-fixtures.js'
import { failedCall } from '../../support/records.js'

const SPACES = { 10: 'a', 11: ' b', 12: 'b', 98: '<end>' }

const context = (text: Record<string, string> = {}, taskMetadata: JsonObject = {}) => ({
  decode: decoderOf(text),
  sessionId: SESSION,
  taskId: 'task-1',
  taskMetadata,
})

const calls = (...inputs: RecordInput[]): CapturedCall[] =>
  inputs.map((input, i) => ({ record: recordOf({ startedAtMs: i + 1, ...input }), delivered: 'yes' }))

const build = (
  captured: readonly CapturedCall[],
  config: JsonObject = {},
  text: Record<string, string> = {},
  failed: readonly FailedCall[] = [],
) => prefixMerging.build(ledgerOf(captured, failed), config, context(text))

const streams = async (captured: readonly CapturedCall[], config: JsonObject = {}, text = {}) =>
  (await build(captured, config, text)).traces.map(streamOf)

t.test('an empty session is an error that says so, with what failed counted', async t => {
  const made = await build([], {}, {}, [failedCall({ sessionId: SESSION, abortedTokens: 3 })])
  t.match(made, { status: 'ERROR', error: 'no completions', traces: [], recordCount: 0 })
  t.match(made.ledger, { calls: 0, failedCalls: 1, tokens: { sampled: 3, trained: 0, setAside: { aborted: 3 } } })
})

t.test('calls without ids make an incomplete result, not a wrong one', async t => {
  const made = await build(calls({ id: 'c1', prompt: null, sampled: null, over: { completionTokens: 5 } }))
  t.match(made, { status: 'COMPLETED', traces: [], metadata: { incomplete: { reason: 'no_token_ids', tokens: 5 } } })
})

t.test('lenient joins answers that differ in white space only, and says how many context ids differ', async t => {
  const captured = calls(
    { id: 'c1', prompt: [1, 2], sampled: [10, 11, 98] },
    { id: 'c2', prompt: [1, 2, 10, 12, 98, 50], sampled: [20] },
  )
  t.equal((await streams(captured, {}, SPACES)).length, 2)
  const made = await build(captured, { join: 'lenient' }, SPACES)
  t.strictSame(made.traces.map(streamOf), [{ s: [1, 2, 10, 11, 98, 50, 20], m: [0, 0, 1, 1, 1, 0, 1] }])
  t.equal(made.traces[0]?.calls[1]?.join, 'rewritten')
  t.strictSame(made.ledger.breaks, {})
  t.match(made.ledger.alternatives, {
    faithful: { traces: 2, contextIdsDiffering: 0 },
    lenient: { traces: 1, trainerTokens: 7, contextIdsDiffering: 1 },
  })
})

t.test('prompt_prefix joins whatever the answer says, at the end token', async t => {
  const captured = calls(
    { id: 'c1', prompt: [1, 2], sampled: [10, 11, 99] },
    { id: 'c2', prompt: [1, 2, 40, 99, 50], sampled: [20, 99] },
  )
  t.equal((await streams(captured)).length, 2)
  t.equal((await streams(captured, { join: 'lenient' })).length, 2)
  t.strictSame(await streams(captured, { join: 'prompt_prefix' }), [
    { s: [1, 2, 10, 11, 99, 50, 20, 99], m: [0, 0, 1, 1, 1, 0, 1, 1] },
  ])
  t.strictSame(await streams(captured, { join: 'prompt_prefix', end_of_turn_token_id: 50 }), [
    { s: [1, 2, 10, 11, 99, 50, 20, 99], m: [0, 0, 1, 1, 1, 0, 1, 1] },
  ])
  const made = await build(captured, { join: 'prompt_prefix', end_of_turn_token_id: 77 })
  t.equal(made.traces.length, 2, 'without an end token in the tail it breaks, and loses nothing')
  t.equal(unaccountedTokens(made.ledger), 0)
})

t.test('side calls and retries are traces of their own when asked for', async t => {
  const captured = calls(
    { id: 'c1', prompt: [1, 2], sampled: [10, 99] },
    { id: 'c1b', prompt: [1, 2], sampled: [11, 99], over: { retryCount: 1 } },
    { id: 'q', prompt: [1, 2, 11, 99, 55], sampled: [30, 99], over: { sideRule: 'title' } },
    { id: 'c2', prompt: [1, 2, 11, 99, 50], sampled: [20, 99] },
  )
  const plain = await build(captured)
  t.strictSame(plain.ledger.tokens.setAside, { abandoned_retry: 2, side_call: 2 })
  t.strictSame(plain.ledger.sideCalls, { title: 1 }, 'no trace holds them: the account names them')
  const all = await build(captured, { train_side_calls: true, keep_retries: true })
  t.strictSame(all.ledger.tokens, { sampled: 8, trained: 8, setAside: {} })
  t.strictSame(all.traces.map(trace => trace.agent).sort(), ['main', 'main', 'side'])
  t.ok(all.traces.some(trace => JSON.stringify(streamOf(trace)) === JSON.stringify(plain.traces.map(streamOf)[0])))
})

t.test('two sub-agents with one prompt are two agents, not a retry', async t => {
  const made = await build(
    calls(
      { id: 'a1', prompt: [1, 2], sampled: [10, 99], over: { agentId: 'a' } },
      { id: 'b1', prompt: [1, 2], sampled: [11, 99], over: { agentId: 'b' } },
      { id: 'a2', prompt: [1, 2, 10, 99, 50], sampled: [20, 99], over: { agentId: 'a' } },
    ),
  )
  t.strictSame(made.ledger.tokens.setAside, {})
  t.strictSame(
    made.traces.map(trace => [trace.agent, trace.agentId]),
    [
      ['sub', 'a'],
      ['sub', 'b'],
    ],
  )
})

t.test('a trace over max_tokens keeps its prompt and a causal prefix; the rest is counted', async t => {
  const captured = calls(
    { id: 'c1', prompt: [1, 2], sampled: [10, 99] },
    { id: 'c2', prompt: [1, 2, 10, 99, 50], sampled: [20, 21, 99] },
  )
  const cut = await build(captured, { max_tokens: 6 })
  t.strictSame(cut.traces.map(streamOf), [{ s: [1, 2, 10, 99, 50, 20], m: [0, 0, 1, 1, 0, 1] }])
  t.match(cut.traces[0], { finishReason: 'length', metadata: { clipped: { max_tokens: 6, cut_tokens: 2 } } })
  t.strictSame(cut.ledger.tokens, { sampled: 5, trained: 3, setAside: { over_length: 2 } })
  t.strictSame((await build(captured, { max_tokens: 5 })).traces.map(streamOf), [
    { s: [1, 2, 10, 99], m: [0, 0, 1, 1] },
  ])
  const none = await build(captured, { max_tokens: 2 })
  t.match(none, { traces: [], ledger: { tokens: { trained: 0, setAside: { over_length: 5 } } } })
})

t.test(
  'messages are put together by content: answers as sampled, what came between them, tools of the first call',
  async t => {
    const user = { role: 'user', content: 'fix it' }
    const tools = [{ type: 'function', function: { name: 'bash' } }]
    const call = (id: string) => [{ id, type: 'function', function: { name: 'bash', arguments: '{"a":1}' } }]
    const answer = { role: 'assistant', content: null, reasoning_content: 'hm', tool_calls: call('x') }
    const replay = { role: 'assistant', content: '', tool_calls: call('y') }
    const tool = { role: 'tool', tool_call_id: 'y', content: 'ok' }
    const end = { role: 'assistant', content: 'done' }
    const made = await build(
      calls(
        {
          id: 'c1',
          prompt: [1, 2],
          sampled: [10, 99],
          over: { request: { messages: [user], tools }, response: { choices: [{ message: answer }] } },
        },
        {
          id: 'c2',
          prompt: [1, 2, 10, 99, 50],
          sampled: [20, 99],
          over: { request: { messages: [user, replay, tool], tools: [] }, response: { choices: [{ message: end }] } },
        },
      ),
    )
    t.match(made.traces, [
      { promptMessages: [user], responseMessages: [answer, tool, end], tools, finishReason: 'stop' },
    ])
    t.strictSame(
      made.traces[0]?.calls.map(one => one.messageIndex),
      [0, 2],
    )
  },
)

t.test('differing policy versions are flagged', async t => {
  const over = (start: string | null, end: string | null) => ({ policyVersionStart: start, policyVersionEnd: end })
  const made = await build(
    calls(
      { id: 'c1', prompt: [1, 2], sampled: [10, 99], over: over('7', '7') },
      { id: 'c2', prompt: [1, 2, 10, 99, 50], sampled: [20, 99], over: over('7', '8') },
      { id: 'd1', prompt: [4], sampled: [20, 99], over: over('7', '7') },
    ),
  )
  t.match(made.traces[0]?.metadata, { policy_versions: ['7', '8'], mixed_policy_versions: true })
  t.match(made.traces[1]?.metadata, { policy_versions: ['7'], mixed_policy_versions: false })
})

const REFERENCE: readonly [title: string, calls: RecordInput[], expected: JsonObject][] = [
  [
    'two turns',
    [
      { id: '1', prompt: [1, 2], sampled: [10, 99] },
      { id: '2', prompt: [1, 2, 10, 99, 5], sampled: [20, 99] },
    ],
    { traces: 1, keptTokens: 4, lostTokens: 0, misplacedTokens: 0 },
  ],
  [
    're-tokenised',
    [
      { id: '1', prompt: [1, 2], sampled: [7, 8, 99] },
      { id: '2', prompt: [1, 2, 78, 99, 5], sampled: [20, 99] },
    ],
    { traces: 1, keptTokens: 5, lostTokens: 0, misplacedTokens: 2 },
  ],
  [
    'every call ends by length',
    [
      { id: '1', prompt: [1], sampled: [10], over: { finish: 'length' } },
      { id: '2', prompt: [1, 10, 99, 5], sampled: [20], over: { finish: 'length' } },
    ],
    { traces: 1, keptTokens: 1, lostTokens: 1, misplacedTokens: 0 },
  ],
  [
    'a retry, the second continues',
    [
      { id: '1', prompt: [1, 2], sampled: [10, 99] },
      { id: '2', prompt: [1, 2], sampled: [11, 99] },
      { id: '3', prompt: [1, 2, 11, 99, 5], sampled: [20, 99] },
    ],
    { traces: 1, keptTokens: 2, lostTokens: 4, misplacedTokens: 0 },
  ],
  [
    'a break at step 2',
    [
      { id: '1', prompt: [1, 2], sampled: [10, 99] },
      { id: '2', prompt: [1, 2, 40, 50], sampled: [20, 99] },
      { id: '3', prompt: [1, 2, 40, 50, 20, 99, 5], sampled: [21, 99] },
    ],
    { traces: 1, keptTokens: 2, lostTokens: 4, misplacedTokens: 0 },
  ],
  [
    'compaction',
    [
      { id: '1', prompt: [1, 2], sampled: [10, 99] },
      { id: '2', prompt: [1, 60], sampled: [20, 99] },
    ],
    { traces: 2, keptTokens: 4, lostTokens: 0, misplacedTokens: 0 },
  ],
  [
    'a side call takes the tip',
    [
      { id: '1', prompt: [1, 2], sampled: [10, 99] },
      { id: '2', prompt: [1, 2, 10, 99, 55], sampled: [30, 99] },
      { id: '3', prompt: [1, 2, 10, 99, 50], sampled: [20, 99] },
    ],
    { traces: 2, keptTokens: 6, lostTokens: 0, misplacedTokens: 0 },
  ],
  [
    'one call without logprobs',
    [
      { id: '1', prompt: [1, 2], sampled: [10, 99] },
      { id: '2', prompt: [1, 2, 10, 99, 5], sampled: [20, 99], logprobs: null },
    ],
    { traces: 1, keptTokens: 0, lostTokens: 4, misplacedTokens: 0 },
  ],
  [
    'no prompt ids',
    [{ id: '1', prompt: null, sampled: [10, 99] }],
    { traces: 1, keptTokens: 0, lostTokens: 2, misplacedTokens: 0 },
  ],
]
for (const [title, captured, expected] of REFERENCE)
  t.test(`the reference's rule: ${title}`, async t => {
    t.strictSame((await build(calls(...captured))).ledger.reference, expected)
  })

t.test('settings are checked with their path', t => {
  t.strictSame(prefixMerging.check({ join: 'faithful', max_tokens: 10, end_of_turn_token_id: 99 }), [])
  t.match(prefixMerging.check({ join: 'loose', max_tokens: 0, jion: 'x' }), [
    { path: 'join' },
    { path: 'max_tokens' },
    { path: 'jion', message: /known are join, train_side_calls, keep_retries, end_of_turn_token_id, max_tokens/ },
  ])
  t.rejects(build([], { join: 'loose' }), { code: 'TASK_INVALID', message: /builder\.config\.join/ })
  t.end()
})

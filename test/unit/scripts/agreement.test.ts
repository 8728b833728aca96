// The checker of `npm run e2e:harnesses` reads four APIs' histories by their own rules, and finds what does not agree.

import t from 'tap'
import { agreement } from '../../../scripts/harnesses/check.js'
import { readHistory } from '../../../scripts/harnesses/history.js'
import type { Exchange } from '../../../scripts/harnesses/wire.js'

const turns = [{ text: 'I look.', calls: [{ name: 'run', args: '{"a":1,"b":"x"}' }] }]

t.test('the same turn is read from all four APIs', async t => {
  const bodies = [
    {
      messages: [
        { role: 'user', content: 'go' },
        {
          role: 'assistant',
          content: 'I look.',
          tool_calls: [{ id: 'c', function: { name: 'run', arguments: '{"b":"x","a":1}' } }],
        },
      ],
    },
    {
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'go' }] },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm' },
            { type: 'text', text: 'I look.' },
            { type: 'tool_use', id: 'c', name: 'run', input: { b: 'x', a: 1 } },
          ],
        },
      ],
    },
    {
      input: [
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'go' }] },
        { type: 'reasoning', summary: [] },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
        { type: 'function_call', name: 'run', arguments: '{"a": 1, "b": "x"}', call_id: 'c' },
        { type: 'function_call_output', call_id: 'c', output: 'ok' },
      ],
    },
    {
      contents: [
        { role: 'user', parts: [{ text: 'go' }] },
        {
          role: 'model',
          parts: [
            { text: 'hm', thought: true },
            { text: 'I look.' },
            { functionCall: { name: 'run', args: { b: 'x', a: 1 } } },
          ],
        },
      ],
    },
  ]
  for (const body of bodies) t.match(readHistory(JSON.stringify(body)), { opening: 'go', turns, hasTools: false })
})

const exchange = (path: string, body: unknown, answer: unknown): Exchange => ({
  path,
  headers: {},
  body: JSON.stringify(body),
  startedAtMs: 0,
  status: 200,
  answer: JSON.stringify(answer),
  complete: true,
  spoiled: null,
})

/** A session of two calls in all three views, as `over` changes it. */
function session(
  over: {
    readonly echo?: string
    readonly printed?: string
    readonly logprob?: number
    readonly third?: boolean
    readonly calls?: number
    readonly side?: Readonly<Record<string, number>>
  } = {},
) {
  const user = { role: 'user', content: 'go' }
  const tools = [{ type: 'function', function: { name: 'run' } }]
  const call = (id: string, start: number, end: number, index: number, join: string | null) => ({
    completion_id: `msg_${id}`,
    join,
    start,
    end,
    trained: true,
    set_aside: null,
    finish_reason: 'stop',
    side_rule: null,
    message_index: index,
    started_at_ms: start,
  })
  const result = {
    trajectory: {
      metadata: { ledger: { calls: over.calls ?? 2, tokens: { sampled: 4 }, side_calls: over.side ?? {} } },
      traces: [
        {
          prompt_ids: [1, 2],
          response_ids: [10, 11, 3, 12, 13],
          response_logprobs: [-0.5, -0.25, 0, -0.5, -0.5],
          response_messages: [
            { role: 'assistant', content: 'first' },
            { role: 'user', content: 'more' },
            { role: 'assistant', content: 'last' },
          ],
          metadata: { agent: 'main', completion_metadata: [call('aa', 0, 2, 0, null), call('bb', 3, 5, 2, 'exact')] },
        },
      ],
    },
  }
  const echoed = [user, { role: 'assistant', content: over.echo ?? 'first' }, { role: 'user', content: 'more' }]
  const harness = [
    exchange('/v1/chat/completions', { messages: [user], tools }, { id: 'chatcmpl-aa' }),
    exchange('/v1/chat/completions', { messages: echoed, tools }, { id: 'chatcmpl-bb' }),
    ...(over.third ? [exchange('/v1/chat/completions', { messages: [user], tools }, { id: 'chatcmpl-cc' })] : []),
  ]
  const engineAnswer = (prompt: number[], ids: number[], logprobs: number[]) => ({
    prompt_token_ids: prompt,
    choices: [{ token_ids: ids, logprobs: { content: logprobs.map(logprob => ({ logprob })) } }],
  })
  const engine = [
    exchange('/v1/chat/completions', {}, engineAnswer([1, 2], [10, 11], [-0.5, over.logprob ?? -0.25])),
    exchange('/v1/chat/completions', {}, engineAnswer([1, 2, 10, 11, 3], [12, 13], [-0.5, -0.5])),
  ]
  return agreement(result, harness, engine, JSON.stringify({ type: 'result', result: over.printed ?? 'last' }))
}

t.test('three views that agree match call for call', async t => {
  t.strictSame(session(), {
    matched: 2,
    total: 2,
    ways: { 'next request': 1, 'final output': 1 },
    problems: [],
  })
})

t.test('each disagreement is found', async t => {
  t.match(session({ echo: 'something else' }), { matched: 1, problems: [/msg_aa .* shows it nowhere again/] })
  t.match(session({ printed: 'other words' }), { matched: 1, problems: [/msg_bb .* shows it nowhere again/] })
  t.match(session({ logprob: -0.75 }), { problems: [/msg_aa: context or logprobs are not the engine's/] })
  t.match(session({ third: true }), { total: 2, problems: [/in no trace; 0 side calls/, /the service counts 2 calls/] })
  t.match(session({ third: true, calls: 3, side: { compaction: 1 } }), { matched: 2, total: 2, problems: [] })
  t.match(session({ calls: 3, side: { compaction: 1 } }), { problems: [/in no trace; 1 side calls/, /counts 3 calls/] })
})

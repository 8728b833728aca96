// The case book's group anthropic-request, at the canonical form.

import t, { type Test } from 'tap'
import type { CanonicalMessage } from '../../../src/domain/conversation.js'
import { decode, PNG } from '../../support/dialects.js'

const anthropic = (body: unknown) => decode('anthropic_messages', body)
const use = (id: string, name: string, input: unknown = {}) => ({ type: 'tool_use', id, name, input })
const result = (id: string, content: unknown, rest: object = {}) => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
  ...rest,
})
const png = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }
const pngPart = { type: 'image', url: `data:image/png;base64,${PNG}` }
const call = (id: string, name: string, text = '{}') => ({ id, name, arguments: text })

/** go, one turn with the given blocks, then the given user blocks. */
const loop = (assistant: readonly unknown[], user: readonly unknown[]) => ({
  messages: [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: assistant },
    { role: 'user', content: user },
  ],
})
const isPrefix = (t: Test, short: readonly CanonicalMessage[], long: readonly CanonicalMessage[]) => {
  t.strictSame(long.slice(0, short.length), short)
  t.ok(long.length > short.length)
}

t.test('anthropic-request-1: an image in a result is kept once and labelled with its call', async t => {
  const one = anthropic(loop([use('t1', 'shot')], [result('t1', [png, { type: 'text', text: 'ok' }])]))
  t.strictSame(one.messages.slice(2), [
    { role: 'tool', toolCallId: 't1', content: 'ok' },
    { role: 'user', content: [{ type: 'text', text: 'Image from tool call t1 (shot):' }, pngPart] },
  ])
  t.strictSame(one.rules, ['result_images_moved'])
  const two = anthropic(loop([use('t1', 'shot'), use('t2', 'shot')], [result('t1', [png]), result('t2', [png])]))
  t.strictSame(
    two.messages.map(({ role }) => role),
    ['user', 'assistant', 'tool', 'tool', 'user'],
  )
  t.strictSame(two.messages.at(-1)?.content, [
    { type: 'text', text: 'Image from tool call t1 (shot):' },
    pngPart,
    { type: 'text', text: 'Image from tool call t2 (shot):' },
    pngPart,
  ])
})

t.test('anthropic-request-2: an image named by its path stays text', async t => {
  const { messages } = anthropic(loop([use('t1', 'shot')], [result('t1', 'saved to /tmp/shot.png')]))
  t.strictSame(messages.at(-1), { role: 'tool', toolCallId: 't1', content: 'saved to /tmp/shot.png' })
})

t.test('anthropic-request-3: system blocks become one message, cache_control changes nothing', async t => {
  const body = (cache: object) => ({
    system: [
      { type: 'text', text: 'A', ...cache },
      { type: 'text', text: 'B' },
    ],
    tools: [{ name: 'ls', input_schema: { type: 'object' }, ...cache }],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', ...cache }] }],
  })
  const plain = anthropic(body({}))
  t.strictSame(plain.messages, [
    { role: 'system', content: 'A\n\nB' },
    { role: 'user', content: 'hi' },
  ])
  t.strictSame(anthropic(body({ cache_control: { type: 'ephemeral' } })), plain)
  const asText = anthropic({ ...body({}), messages: [{ role: 'user', content: 'hi' }] })
  t.strictSame(asText, plain, 'a one-text array is the text')
})

t.test('anthropic-request-4: the billing line goes wherever it stands in the system text', async t => {
  const line = (cch: string) => `x-anthropic-billing-header: cc_version=2.1.37; cc_entrypoint=cli; cch=${cch};`
  const systems = (cch: string) => [
    [
      { type: 'text', text: line(cch) },
      { type: 'text', text: 'You are an agent.' },
    ],
    `${line(cch)}\nYou are an agent.`,
    [
      { type: 'text', text: 'You are an agent.' },
      { type: 'text', text: line(cch) },
    ],
    `You are an agent.\n${line(cch)}`,
  ]
  for (const [index, system] of systems('36ee5').entries()) {
    const messages = [{ role: 'user', content: line('kept') }]
    const got = anthropic({ system, messages })
    t.strictSame(got, anthropic({ system: systems('0aaa9')[index], messages }))
    t.match(got.messages[0]?.content, /^You are an agent\.\n?$/)
    t.equal(got.messages[1]?.content, line('kept'))
    t.strictSame(got.rules, ['billing_line_stripped'])
  }
  t.strictSame(
    anthropic({ system: line('a'), messages: [{ role: 'user', content: 'hi' }] }).messages.length,
    1,
    'nothing else in it: no system message',
  )
})

t.test('anthropic-request-5: a notice keeps its place and the prefix holds', async t => {
  const messages = [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: [use('t1', 'ls')] },
    { role: 'user', content: [result('t1', 'a.py')] },
    { role: 'system', content: 'Token usage: 12000/200000; 188000 remaining' },
  ]
  const next = [
    ...messages,
    { role: 'assistant', content: [use('t2', 'ls')] },
    { role: 'user', content: [result('t2', 'b.py')] },
  ]
  const got = anthropic({ system: 'S', messages })
  t.strictSame(got.messages, [
    { role: 'system', content: 'S' },
    { role: 'user', content: 'go' },
    { role: 'assistant', content: null, toolCalls: [call('t1', 'ls')] },
    { role: 'tool', toolCallId: 't1', content: 'a.py\n\nToken usage: 12000/200000; 188000 remaining' },
  ])
  t.strictSame(got.rules, ['notice_folded_into_tool_result'])
  isPrefix(t, got.messages, anthropic({ system: 'S', messages: next }).messages)
})

t.test('the environment that Claude Code sends after the first prompt keeps its place', async t => {
  const first = [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'reminder' },
        { type: 'text', text: 'prompt' },
      ],
    },
    { role: 'system', content: 'environment', output_config: { effort: 'medium' } },
  ]
  const got = anthropic({ system: 'S', messages: first })
  t.strictSame(got.messages.slice(1), [
    { role: 'user', content: 'reminder\nprompt' },
    { role: 'user', content: 'environment' },
  ])
  t.strictSame(got.rules, ['notice_as_user_message'])
  const next = anthropic({
    system: 'S',
    messages: [...first, { role: 'assistant', content: 'ok' }, { role: 'user', content: 'more' }],
  })
  isPrefix(t, got.messages, next.messages)
  const empty = anthropic({ messages: [...first, { role: 'system', content: [] }] })
  t.equal(empty.messages.length, 2, 'an empty notice is no message')
})

t.test('anthropic-request-6: thinking in history is kept, with any signature', async t => {
  const turn = [{ type: 'thinking', thinking: 'plan', signature: '' }, { type: 'text', text: 'Ok.' }, use('t1', 'ls')]
  const { messages, rules } = anthropic(loop(turn, [result('t1', 'a.py')]))
  t.strictSame(messages[1], { role: 'assistant', content: 'Ok.', reasoning: 'plan', toolCalls: [call('t1', 'ls')] })
  t.strictSame(rules, [])
})

t.test('anthropic-request-7: interleaved thinking is joined in order, and the record says so', async t => {
  const think = (thinking: string) => ({ type: 'thinking', thinking, signature: 'x' })
  const { messages, rules } = anthropic(
    loop([think('R1'), use('t1', 'f'), think('R2'), use('t2', 'f')], [result('t1', '1'), result('t2', '2')]),
  )
  t.strictSame(messages[1], {
    role: 'assistant',
    content: null,
    reasoning: 'R1\n\nR2',
    toolCalls: [call('t1', 'f'), call('t2', 'f')],
  })
  t.strictSame(rules, ['thinking_order_flattened'])
})

t.test('anthropic-request-8: a failed tool is marked, with and without text', async t => {
  const failed = (content: unknown) => anthropic(loop([use('t1', 'rm')], [result('t1', content, { is_error: true })]))
  t.equal(failed('').messages[2]?.content, '[Tool Error]')
  t.equal(failed(undefined).messages[2]?.content, '[Tool Error]')
  t.equal(failed('no such file').messages[2]?.content, '[Tool Error] no such file')
  t.strictSame(failed('').rules, ['tool_error_marked'])
})

t.test('anthropic-request-9: text before a result comes after it', async t => {
  const { messages, rules } = anthropic(loop([use('t1', 'ls')], [{ type: 'text', text: 'note' }, result('t1', 'a.py')]))
  t.strictSame(messages, [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: null, toolCalls: [call('t1', 'ls')] },
    { role: 'tool', toolCallId: 't1', content: 'a.py' },
    { role: 'user', content: 'note' },
  ])
  t.strictSame(rules, ['results_before_text'])
})

t.test('anthropic-request-10: a tool choice without tools is dropped', async t => {
  const got = anthropic({ tools: [], tool_choice: { type: 'auto' }, messages: [{ role: 'user', content: 'Sum up.' }] })
  t.strictSame(got.tools, [])
  t.notOk('toolChoice' in got)
})

t.test('anthropic-request-11: server tools are left out and recorded', async t => {
  const search = { type: 'web_search_20250305', name: 'web_search' }
  const messages = [{ role: 'user', content: 'hi' }]
  const ls = { name: 'ls', input_schema: { type: 'object' } }
  const got = anthropic({ tools: [search, ls], messages })
  t.strictSame(got.tools, [{ name: 'ls', parameters: { type: 'object' } }])
  t.strictSame(got.losses, [
    { path: 'tools[0]', reason: 'server tool web_search_20250305 has no counterpart in the engine' },
  ])
  const none = anthropic({ tools: [search], tool_choice: { type: 'auto' }, messages })
  t.strictSame([none.tools, 'toolChoice' in none], [[], false])
})

t.test('anthropic-request-12: thinking is switched off, on, or left to the template', async t => {
  const thinking = (value: unknown) =>
    anthropic({ messages: [{ role: 'user', content: 'hi' }], ...(value === undefined ? {} : { thinking: value }) })
  t.equal(thinking({ type: 'disabled' }).enableThinking, false)
  t.equal(thinking({ type: 'enabled', budget_tokens: 1024 }).enableThinking, true)
  t.equal(thinking({ type: 'adaptive' }).enableThinking, true)
  t.notOk('enableThinking' in thinking(undefined))
})

t.test('anthropic-request-13, anthropic-request-14: arguments keep key order and characters', async t => {
  const { messages } = anthropic(
    loop([use('t1', 'f', { b: 1, a: 2 }), use('t2', 'f', { s: 'é' })], [result('t1', 'ok')]),
  )
  t.match(messages[1], { toolCalls: [call('t1', 'f', '{"b": 1, "a": 2}'), call('t2', 'f', '{"s": "é"}')] })
})

t.test('anthropic-request-15: a count is read like a call, and is no call', async t => {
  const body = { system: 'S', messages: [{ role: 'user', content: 'hi' }] }
  t.strictSame(
    decode('anthropic_messages', body, '/v1/messages/count_tokens?beta=true').messages,
    anthropic(body).messages,
  )
})

t.test('deferred tools appear where a result refers to them, not in the tool list', async t => {
  const tool = { name: 'late', description: 'd', input_schema: { type: 'object' }, defer_loading: true }
  const ls = { name: 'ls', input_schema: { type: 'object' } }
  const found = [{ type: 'tool_reference', tool_name: 'late' }]
  const got = anthropic({ tools: [ls, tool], ...loop([use('t1', 'ToolSearch')], [result('t1', found)]) })
  t.strictSame(
    got.tools.map(({ name }) => name),
    ['ls'],
  )
  t.equal(
    got.messages[2]?.content,
    '{"type": "function", "function": {"name": "late", "description": "d", "parameters": {"type": "object"}}}',
  )
  t.strictSame(got.rules, ['deferred_tools_inlined'])
})

t.test('a whole Claude Code body is read, and what is not carried is named', async t => {
  const got = anthropic({
    stream: true,
    max_tokens: 128000,
    thinking: { type: 'adaptive', display: 'omitted' },
    output_config: { effort: 'medium' },
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    metadata: { user_id: '{}' },
    tools: [{ name: 'Bash', description: 'd', input_schema: { $schema: 's', type: 'object' } }],
    tool_choice: { type: 'any', disable_parallel_tool_use: true },
    stop_sequences: ['###'],
    temperature: 0.5,
    top_p: 0.9,
    top_k: 5,
    ...loop(
      [{ type: 'text', text: 'x' }],
      [{ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AA==' } }],
    ),
  })
  t.match(got, {
    stream: true,
    reasoningEffort: 'medium',
    enableThinking: true,
    toolChoice: { type: 'required' },
    parallelToolCalls: false,
    sampling: { maxTokens: 128000, temperature: 0.5, topP: 0.9, topK: 5, stop: ['###'] },
    rules: ['content_omitted'],
  })
  t.strictSame(got.losses, [
    { path: 'messages[2].content[0]', reason: 'a document given as base64 is not carried to the engine' },
    { path: 'thinking.display', reason: 'not carried to the engine' },
    { path: 'context_management', reason: 'not carried to the engine' },
  ])
  t.equal(got.messages[2]?.content, '[document omitted: application/pdf]')
})

t.test('bad fields are refused by path', async t => {
  const refusal = (body: unknown) => {
    try {
      anthropic(body)
      return 'accepted'
    } catch (cause) {
      return (cause as Error).message
    }
  }
  const user = { role: 'user', content: 'hi' }
  t.equal(
    refusal({ messages: [user, { role: 'assistant', content: [{ type: 'nope' }] }] }),
    'messages[1].content[0].type: wanted one of "text", "thinking", "redacted_thinking", "tool_use", got "nope"',
  )
  t.equal(refusal({ messages: [] }), 'messages: wanted a non-empty array, got an empty array')
  t.equal(refusal({ messages: [7] }), 'messages[0]: wanted an object, got 7')
  t.equal(
    refusal({ messages: [{ role: 'tool' }] }),
    'messages[0].role: wanted one of "user", "assistant", "system", got "tool"',
  )
  t.equal(refusal({ messages: [user], max_tokens: 'x' }), 'max_tokens: wanted an integer, got "x"')
  t.equal(refusal({ messages: [user], tools: [{ name: 7 }] }), 'tools[0].name: wanted a non-empty string, got 7')
  t.equal(
    refusal({ messages: [user], thinking: { type: 'x' } }),
    'thinking.type: wanted one of "enabled", "adaptive", "between_tools", "disabled", got "x"',
  )
  t.equal(
    refusal({ messages: [{ role: 'user', content: [result(7 as unknown as string, 'x')] }] }),
    'messages[0].content[0].tool_use_id: wanted a non-empty string, got 7',
  )
})

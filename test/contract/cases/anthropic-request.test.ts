// Case book, group anthropic-request, over real HTTP.

import t from 'tap'
import { bytes, type Case, caseWorld, lengthOf, runCases } from '../../support/cases.js'
import { PNG } from '../../support/dialects.js'

const dialect = 'anthropic_messages'
const go = { role: 'user', content: 'go' }
const hi = [{ role: 'user', content: 'hi' }]
const use = (id: string, name: string, input: unknown = {}) => ({ type: 'tool_use', id, name, input })
const result = (id: string, content: unknown, rest: object = {}) => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
  ...rest,
})
const loop = (assistant: readonly unknown[], user: readonly unknown[]) => ({
  messages: [go, { role: 'assistant', content: assistant }, { role: 'user', content: user }],
})
const png = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }
const url = `data:image/png;base64,${PNG}`
const count = (text: string, part: string) => text.split(part).length - 1
const billing = (hash: string) => `x-anthropic-billing-header: cc_version=2.1.37; cc_entrypoint=cli; cch=${hash};`

const cases: Case[] = [
  {
    name: 'anthropic-request-1: an image in a tool result reaches the engine once, tied to its call',
    dialect,
    body: loop(
      [use('t1', 'shot'), use('t2', 'shot')],
      [result('t1', [png, { type: 'text', text: 'ok' }]), result('t2', [png])],
    ),
    check(t, { engine }) {
      t.equal(count(bytes(engine), PNG), 2, 'each image once')
      t.match(engine['messages'], [
        {},
        { tool_calls: [{ id: 't1' }, { id: 't2' }] },
        { role: 'tool', tool_call_id: 't1', content: 'ok' },
        { role: 'tool', tool_call_id: 't2' },
        {
          role: 'user',
          content: [
            { type: 'text', text: /t1/ },
            { type: 'image_url', image_url: { url } },
            { type: 'text', text: /t2/ },
            { type: 'image_url', image_url: { url } },
          ],
        },
      ])
    },
  },
  {
    name: 'anthropic-request-2: an image named by its path stays text',
    dialect,
    body: loop([use('t1', 'shot')], [result('t1', 'saved to /tmp/shot.png')]),
    check(t, { engine }) {
      t.strictSame(engine['messages']?.[2], { role: 'tool', tool_call_id: 't1', content: 'saved to /tmp/shot.png' })
      t.notMatch(bytes(engine), /image/)
    },
  },
  {
    name: 'anthropic-request-6: thinking in history is kept, with an empty signature',
    dialect,
    body: loop(
      [{ type: 'thinking', thinking: 'plan', signature: '' }, { type: 'text', text: 'Ok.' }, use('t1', 'ls')],
      [result('t1', 'a.py')],
    ),
    check(t, { engine }) {
      t.match(engine['messages']?.[1], { reasoning_content: 'plan', content: 'Ok.', tool_calls: [{ id: 't1' }] })
      t.equal(lengthOf(engine['messages']), 3)
    },
  },
  {
    name: 'anthropic-request-7: interleaved thinking reaches the engine in order, and the record says that it was flattened',
    dialect,
    body: loop(
      [
        { type: 'thinking', thinking: 'R1', signature: 'x' },
        use('t1', 'f'),
        { type: 'thinking', thinking: 'R2', signature: 'y' },
        use('t2', 'f'),
      ],
      [result('t1', '1'), result('t2', '2')],
    ),
    check(t, { engine, record }) {
      t.match(engine['messages']?.[1], { reasoning_content: /R1\s+R2/, tool_calls: [{ id: 't1' }, { id: 't2' }] })
      t.strictSame(record.rulesApplied, ['thinking_order_flattened'])
    },
  },
  {
    name: 'anthropic-request-8: a failed tool without text is marked, and the record says so',
    dialect,
    body: loop([use('t1', 'rm')], [result('t1', '', { is_error: true })]),
    check(t, { engine, record }) {
      t.match(engine['messages']?.[2], { role: 'tool', content: '[Tool Error]' })
      t.strictSame(record.rulesApplied, ['tool_error_marked'])
    },
  },
  {
    name: 'anthropic-request-9: text before a result comes after it',
    dialect,
    body: loop([use('t1', 'ls')], [{ type: 'text', text: 'note' }, result('t1', 'a.py')]),
    check(t, { engine }) {
      t.match(engine['messages'], [
        { role: 'user', content: 'go' },
        { role: 'assistant', tool_calls: [{ id: 't1' }] },
        { role: 'tool', tool_call_id: 't1', content: 'a.py' },
        { role: 'user', content: 'note' },
      ])
    },
  },
  {
    name: 'anthropic-request-10: a tool choice without tools reaches no engine',
    dialect,
    body: { tools: [], tool_choice: { type: 'auto' }, messages: [{ role: 'user', content: 'Summarise.' }] },
    check: (t, { engine }) => t.strictSame([engine['tools'], engine['tool_choice']], [undefined, undefined]),
  },
  {
    name: 'anthropic-request-10: nor on Chat Completions',
    dialect: 'openai_chat',
    body: { tools: [], tool_choice: 'auto', messages: hi },
    check: (t, { engine }) => t.strictSame([engine['tools'], engine['tool_choice']], [undefined, undefined]),
  },
  {
    name: 'anthropic-request-10: nor on Responses',
    dialect: 'openai_responses',
    body: { tools: [], tool_choice: 'auto', input: 'Summarise.' },
    check: (t, { engine }) => t.strictSame([engine['tools'], engine['tool_choice']], [undefined, undefined]),
  },
  {
    name: 'anthropic-request-11: server tools are left out, and the record says so',
    dialect,
    body: {
      tools: [
        { type: 'web_search_20250305', name: 'web_search' },
        { name: 'ls', input_schema: { type: 'object' } },
      ],
      messages: hi,
    },
    check(t, { engine, record }) {
      t.match(engine['tools'], [{ type: 'function', function: { name: 'ls', parameters: { type: 'object' } } }])
      t.equal(lengthOf(engine['tools']), 1)
      t.match(record.losses, [{ path: 'tools[0]' }])
    },
  },
  {
    name: 'anthropic-request-11: without any tool left there is no choice either',
    dialect,
    body: {
      tools: [{ type: 'web_search_20250305', name: 'web_search' }],
      tool_choice: { type: 'any' },
      messages: hi,
    },
    check: (t, { engine }) => t.strictSame([engine['tools'], engine['tool_choice']], [undefined, undefined]),
  },
  ...(
    [
      [{ type: 'disabled' }, false],
      [{ type: 'enabled', budget_tokens: 1024 }, true],
      [{ type: 'adaptive' }, true],
      [undefined, undefined],
    ] as const
  ).map(
    ([thinking, wanted]): Case => ({
      name: `anthropic-request-12: thinking ${thinking?.type ?? 'not named'}`,
      dialect,
      body: { thinking, messages: hi },
      check: (t, { engine }) => t.equal(engine['chat_template_kwargs']?.['enable_thinking'], wanted),
    }),
  ),
  {
    name: 'anthropic-request-13, anthropic-request-14: foreign arguments keep key order and characters',
    dialect,
    body: loop([use('t1', 'f', { b: 1, a: 'é' })], [result('t1', 'ok')]),
    check: (t, { engine }) =>
      t.equal(engine['messages']?.[1]?.['tool_calls']?.[0]?.['function']?.['arguments'], '{"b": 1, "a": "é"}'),
  },
]

t.test('one request each', t => runCases(t, cases))

t.test('requests that are compared', async t => {
  const world = await caseWorld(t)
  const session = await world.pair.session('s-a')
  const asked = async (body: object) => bytes((await world.call(session, { dialect, body }, false)).engine)

  await t.test('anthropic-request-3: system blocks are one message, and cache_control changes no byte', async t => {
    const body = (cache: object) => ({
      system: [
        { type: 'text', text: 'A', ...cache },
        { type: 'text', text: 'B' },
      ],
      tools: [{ name: 'ls', input_schema: { type: 'object' }, ...cache }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', ...cache }] }],
    })
    const plain = await asked(body({}))
    t.match(JSON.parse(plain), { messages: [{ role: 'system', content: 'A\n\nB' }, { role: 'user' }] })
    t.equal(await asked(body({ cache_control: { type: 'ephemeral' } })), plain)
  })

  await t.test('anthropic-request-4: requests that differ in the billing hash alone give the same bytes', async t => {
    const systems = (hash: string) => [
      [
        { type: 'text', text: billing(hash) },
        { type: 'text', text: 'You are an agent.' },
      ],
      `${billing(hash)}\nYou are an agent.`,
      `You are an agent.\n${billing(hash)}`,
    ]
    for (const [index, system] of systems('36ee5').entries()) {
      const messages = [{ role: 'user', content: billing('kept') }]
      const first = await asked({ system, messages })
      t.equal(await asked({ system: systems('0aaa9')[index], messages }), first)
      t.notMatch(first, /cch=36ee5/)
      t.match(first, /cch=kept/, 'in a user message the words are left alone')
    }
  })

  await t.test('anthropic-request-5: a notice keeps its place, and prompts stay prefixes', async t => {
    const messages = [
      go,
      { role: 'assistant', content: [use('t1', 'ls')] },
      { role: 'user', content: [result('t1', 'a.py')] },
      { role: 'system', content: 'Token usage: 12000/200000; 188000 remaining' },
    ]
    const more = [
      ...messages,
      { role: 'assistant', content: [use('t2', 'ls')] },
      { role: 'user', content: [result('t2', 'b.py')] },
    ]
    const short = JSON.parse(await asked({ system: 'S', messages })).messages
    const long = JSON.parse(await asked({ system: 'S', messages: more })).messages
    t.strictSame(short[0], { role: 'system', content: 'S' })
    t.match(JSON.stringify(short.slice(1)), /188000 remaining/)
    t.strictSame(long.slice(0, short.length), short)
  })

  await t.test('anthropic-request-13, anthropic-request-14: arguments sampled here go back byte for byte', async t => {
    const text = '{ "s":"é",  "b":1, "a":2 }'
    const seen = await world.call(
      session,
      { dialect, body: { messages: [go] }, engine: { toolCalls: [{ name: 'f', arguments: text }] } },
      true,
    )
    const block = seen.answer['content']?.[0]
    t.strictSame(block?.['input'], { s: 'é', b: 1, a: 2 })
    const next = await asked(loop([block], [result(String(block?.['id']), 'ok')]))
    t.equal(JSON.parse(next).messages[1].tool_calls[0].function.arguments, text)
  })
})

const COUNTED = {
  model: 'm',
  system: 'You are an agent.',
  tools: [
    {
      name: 'ls',
      description: 'list files',
      input_schema: { type: 'object', properties: { path: { type: 'string' } } },
    },
  ],
  messages: hi,
}

t.test('anthropic-request-15: a count is of the very prompt that a call would have, and leaves nothing', async t => {
  const { engine, pair } = await caseWorld(t)
  const session = await pair.session('s-a')
  const counted = await pair.post('/v1/messages/count_tokens?beta=true', COUNTED, { key: session.key })
  t.equal(counted.status, 200)
  const [tokenization] = engine.tokenizations
  t.strictSame(await counted.json(), { input_tokens: 10 }, 'four ids a message of the scripted template, two to speak')
  await (await pair.post('/v1/messages', { ...COUNTED, max_tokens: 64 }, { key: session.key })).text()
  const { messages, tools } = engine.generations[0]?.body ?? {}
  t.match(tokenization?.body, { messages, tools, model: 'served' })
  t.match(messages, [{ role: 'system', content: 'You are an agent.' }, { role: 'user' }])
  t.equal((await pair.ledger(session)).calls.length, 1, 'the call alone')
})

t.test('anthropic-request-16: a flood of counts is one count, and stands in no call’s way', async t => {
  const { engine, pair } = await caseWorld(t)
  const session = await pair.session('s-a')
  const counts = Array.from({ length: 50 }, () =>
    pair.post('/v1/messages/count_tokens', COUNTED, { key: session.key }).then(response => response.json()),
  )
  const call = pair.post('/v1/messages', { ...COUNTED, max_tokens: 64 }, { key: session.key })
  t.equal((await call).status, 200)
  for (const count of await Promise.all(counts)) t.strictSame(count, { input_tokens: 10 })
  t.equal(engine.generations.length, 1)
  const same = engine.tokenizations.filter(({ body }) => body['tools'] !== undefined && bytes(body).includes('"hi"'))
  t.ok(same.length <= 2, `${same.length} tokenizations for 50 counts and a call`)
})

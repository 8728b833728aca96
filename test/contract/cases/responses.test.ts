// Case book, groups responses-request and responses-response, over real HTTP. Continued conversations and compressed bodies have files of
// their own.

import { once } from 'node:events'
import { request as rawRequest } from 'node:http'
import t from 'tap'
import { bytes, type Case, caseWorld, lengthOf, runCases } from '../../support/cases.js'
import { PNG } from '../../support/dialects.js'
import type { ScriptedAnswer } from '../../support/scripted-engine.js'

const dialect = 'openai_responses'
const user = (content: unknown) => ({ role: 'user', content })
const fnCall = (id: string, name: string, text = '{}') => ({
  type: 'function_call',
  call_id: id,
  name,
  arguments: text,
})
const output = (id: string, text: string) => ({ type: 'function_call_output', call_id: id, output: text })
const developer = (text: string) => ({
  type: 'message',
  role: 'developer',
  content: [{ type: 'input_text', text }],
})
const patch = {
  type: 'custom',
  name: 'apply_patch',
  description: 'Edit files',
  format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
}
const status = { type: 'function', name: 'status', parameters: { type: 'object', properties: {} } }
const url = `data:image/png;base64,${PNG}`
const called = (name: string, text: string): ScriptedAnswer => ({ toolCalls: [{ id: 'c1', name, arguments: text }] })
const format = { type: 'json_schema', name: 'r', schema: { type: 'object' }, strict: true }

const requests: Case[] = [
  {
    name: 'responses-request-1: parallel calls are one assistant message',
    dialect,
    body: {
      input: [user('go'), fnCall('a', 'f', '{"x":1}'), fnCall('b', 'f', '{"x":2}'), output('a', '1'), output('b', '2')],
    },
    check(t, { engine }) {
      t.match(engine['messages'], [
        { role: 'user', content: 'go' },
        { role: 'assistant', tool_calls: [{ id: 'a', function: { arguments: '{"x":1}' } }, { id: 'b' }] },
        { role: 'tool', tool_call_id: 'a', content: '1' },
        { role: 'tool', tool_call_id: 'b', content: '2' },
      ])
    },
  },
  {
    name: 'responses-request-2: text and call of one turn are one message',
    dialect,
    body: {
      input: [
        user('go'),
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I will look.' }] },
        fnCall('a', 'ls'),
        output('a', 'a.py'),
      ],
    },
    check(t, { engine }) {
      t.equal(lengthOf(engine['messages']), 3)
      t.match(engine['messages']?.[1], { role: 'assistant', content: 'I will look.', tool_calls: [{ id: 'a' }] })
    },
  },
  ...[
    { summary: [{ type: 'summary_text', text: 'plan' }] },
    { summary: [], content: [{ type: 'reasoning_text', text: 'plan' }] },
  ].map(
    (reasoning): Case => ({
      name: `responses-request-3: reasoning (in ${Object.keys(reasoning).at(-1)}) and call of one turn are one message`,
      dialect,
      body: {
        input: [user('go'), { type: 'reasoning', id: 'rs_1', ...reasoning }, fnCall('a', 'ls'), output('a', 'a.py')],
      },
      check(t, { engine }) {
        t.equal(lengthOf(engine['messages']), 3)
        t.match(engine['messages']?.[1], { role: 'assistant', reasoning_content: 'plan', tool_calls: [{ id: 'a' }] })
      },
    }),
  ),
  {
    name: 'responses-request-4: instructions and a leading developer message are one system message',
    dialect,
    body: { instructions: 'You are an agent.', input: [developer('Be brief.'), user('hi')] },
    check(t, { engine }) {
      t.strictSame(engine['messages'], [
        { role: 'system', content: 'You are an agent.\n\nBe brief.' },
        { role: 'user', content: 'hi' },
      ])
    },
  },
  {
    name: 'responses-request-6: a custom tool is a function of one string, and its call comes back raw',
    dialect,
    body: { tools: [patch], input: 'edit' },
    engine: called('apply_patch', '{"input":"*** Begin Patch"}'),
    check(t, { engine, answer }) {
      t.match(engine['tools'], [
        {
          function: {
            name: 'apply_patch',
            description: /start: "x"/,
            parameters: { properties: { input: { type: 'string' } }, required: ['input'] },
          },
        },
      ])
      t.match(answer['output'], [{ type: 'custom_tool_call', name: 'apply_patch', input: '*** Begin Patch' }])
    },
  },
  {
    name: 'responses-request-7: a custom call in history is a call with its text',
    dialect,
    body: {
      tools: [patch],
      input: [
        user('edit'),
        { type: 'custom_tool_call', call_id: 'a', name: 'apply_patch', input: '*** Begin Patch' },
        { type: 'custom_tool_call_output', call_id: 'a', output: 'Done' },
      ],
    },
    check(t, { engine }) {
      t.match(engine['messages'], [
        {},
        { role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'apply_patch', arguments: /Begin Patch/ } }] },
        { role: 'tool', tool_call_id: 'a', content: 'Done' },
      ])
    },
  },
  {
    name: 'responses-request-8: a namespaced tool is flat for the engine and namespaced for the client',
    dialect,
    body: {
      tools: [{ type: 'namespace', name: 'mcp__x__', description: 'x server', tools: [status] }],
      input: 'status?',
    },
    engine: called('mcp__x__status', '{}'),
    check(t, { engine, answer }) {
      t.match(engine['tools'], [{ function: { name: 'mcp__x__status' } }])
      t.match(answer['output'], [{ type: 'function_call', namespace: 'mcp__x__', name: 'status' }])
    },
  },
  {
    name: 'responses-request-8: so are the tools of an additional_tools item',
    dialect,
    body: {
      input: [
        { type: 'additional_tools', tools: [{ type: 'namespace', name: 'mcp__x__', tools: [status] }] },
        user('s'),
      ],
    },
    engine: called('mcp__x__status', '{}'),
    check(t, { engine, answer }) {
      t.match(engine['tools'], [{ function: { name: 'mcp__x__status' } }])
      t.strictSame(engine['messages'], [user('s')])
      t.match(answer['output'], [{ type: 'function_call', namespace: 'mcp__x__', name: 'status' }])
    },
  },
  {
    name: 'responses-request-9: hosted tools and their items are left out, and the record says so',
    dialect,
    body: {
      tools: [{ type: 'web_search' }, { type: 'file_search', vector_store_ids: ['v'] }, { ...status, name: 'ls' }],
      input: [user('go'), { type: 'web_search_call', id: 'ws_1', status: 'completed' }, user('go on')],
    },
    check(t, { engine, record }) {
      t.equal(lengthOf(engine['tools']), 1)
      t.match(engine['tools'], [{ function: { name: 'ls' } }])
      t.strictSame(engine['messages'], [user('go'), user('go on')])
      t.strictSame(
        record.losses?.map(({ path }) => path),
        ['tools[0]', 'tools[1]', 'input[1]'],
      )
    },
  },
  {
    name: 'responses-request-10: an image in a user message keeps its place',
    dialect,
    body: {
      input: [
        user([
          { type: 'input_text', text: 'what is this?' },
          { type: 'input_image', image_url: url },
        ]),
      ],
    },
    check(t, { engine }) {
      t.strictSame(engine['messages']?.[0]?.['content'], [
        { type: 'text', text: 'what is this?' },
        { type: 'image_url', image_url: { url } },
      ])
    },
  },
  {
    name: 'responses-request-12: effort, output limit and format go in and come back',
    dialect,
    body: { reasoning: { effort: 'low' }, max_output_tokens: 77, text: { format }, input: 'hi' },
    check(t, { engine, answer }) {
      t.match(engine, {
        reasoning_effort: 'low',
        chat_template_kwargs: { enable_thinking: true },
        max_tokens: 77,
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'r', schema: { type: 'object' }, strict: true },
        },
      })
      t.match(answer, { reasoning: { effort: 'low' }, max_output_tokens: 77, text: { format } })
    },
  },
  {
    name: 'responses-request-12: effort none switches thinking off',
    dialect,
    body: { reasoning: { effort: 'none' }, input: 'hi' },
    check(t, { engine }) {
      t.equal(engine['chat_template_kwargs']?.['enable_thinking'], false)
      t.equal(engine['reasoning_effort'], undefined)
    },
  },
]

const responses: Case[] = [
  {
    name: 'responses-response-1: a cut answer is incomplete',
    dialect,
    body: { input: 'hi' },
    engine: { pieces: ['half an ans'], finish: 'length' },
    check(t, { stream, answer, events }) {
      t.match(answer, {
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
        output: [{ content: [{ text: 'half an ans' }] }],
      })
      if (!stream) return
      t.equal(events.at(-1)?.['type'], 'response.incomplete')
      t.notOk(events.some(event => event['type'] === ('response.completed' as never)))
    },
  },
  {
    name: 'responses-response-2: thinking alone is one reasoning item',
    dialect,
    body: { input: 'hi' },
    engine: { reasoning: 'hm', pieces: [], ids: [10, 99] },
    check(t, { answer }) {
      t.equal(lengthOf(answer['output']), 1)
      t.match(answer, { status: 'completed', output: [{ type: 'reasoning', summary: [{ text: 'hm' }] }] })
    },
  },
  ...([['function', 'function_call'] as const, ['local_shell', 'local_shell_call'] as const] as const).map(
    ([type, wanted]): Case => ({
      name: `responses-response-3: a call of shell, declared ${type}, is a ${wanted}`,
      dialect,
      body: { tools: [type === 'function' ? { type, name: 'shell' } : { type }], input: 'go' },
      engine: called('shell', '{"cmd":"ls"}'),
      check: (t, { answer }) => t.match(answer['output'], [{ type: wanted, call_id: /./ }]),
    }),
  ),
  ...[{ cutAfter: 1 }, { errorAfter: 1 }].map(
    (fault): Case => ({
      name: `responses-response-4: an engine that fails in mid-stream (${Object.keys(fault)[0]}) ends in response.failed`,
      dialect,
      body: { input: 'hi' },
      modes: [true],
      engine: { pieces: ['half', ' an answer'], ...fault },
      check(t, { events, record, failed }) {
        t.match(events.at(-1), {
          type: 'response.failed',
          response: { status: 'failed', error: { code: 'server_error', message: /./ } },
        })
        t.notOk(record.completionId)
        t.equal(failed?.abortedTokens, 1)
      },
    }),
  ),
  {
    name: 'responses-response-5: an over-long prompt has its code, streaming or not',
    dialect,
    body: { input: 'hi' },
    status: 400,
    engine: {
      status: 400,
      error: { error: { message: "This model's maximum context length is 32768 tokens. However ...", code: 400 } },
    },
    check(t, { answer, failed }) {
      t.match(answer, { error: { type: 'invalid_request_error', code: 'context_length_exceeded' } })
      t.equal(failed?.status, 400)
    },
  },
]

t.test('one request each', t => runCases(t, requests))
t.test('one answer each', t => runCases(t, responses))

t.test('requests that are compared', async t => {
  const world = await caseWorld(t)
  const session = await world.pair.session('s-a')
  const asked = async (body: object) => (await world.call(session, { dialect, body }, true)).engine

  await t.test('responses-request-5: a developer message in the middle keeps its place', async t => {
    const short = await asked({ input: [user('one')] })
    const long = await asked({ input: [user('one'), developer('Now be brief.'), user('two')] })
    const [first, ...rest] = long['messages'] as unknown as readonly object[]
    t.strictSame([first], short['messages'])
    t.match(bytes(rest as never), /Now be brief\..*two/)
    t.notOk(
      rest.some(message => (message as { role: string }).role === 'system'),
      'in a role that the template takes',
    )
  })

  await t.test('responses-request-14: null is absent', async t => {
    t.strictSame(await asked({ tools: null, tool_choice: null, input: 'hi' }), await asked({ input: 'hi' }))
  })
})

t.test('the WebSocket that Codex tries first is answered 426 at once', async t => {
  const { pair, engine } = await caseWorld(t)
  const session = await pair.session('s-a')
  const request = rawRequest(`${pair.url}/v1/responses`, {
    headers: {
      connection: 'upgrade',
      upgrade: 'websocket',
      'openai-beta': 'responses_websockets=2026-02-06',
      authorization: `Bearer ${session.key}`,
    },
  })
  request.end()
  const [response] = (await once(request, 'response')) as [import('node:http').IncomingMessage]
  response.resume()
  t.equal(response.statusCode, 426)
  t.equal(engine.generations.length, 0)
})

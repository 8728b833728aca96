// The case book's groups responses-request and responses-response, at the canonical form.

import t from 'tap'
import { dialects } from '../../../src/dialects/registry.js'
import type { CanonicalResponse } from '../../../src/domain/conversation.js'
import { answer, dataOf, decode, eventsOf, framesOf, PNG } from '../../support/dialects.js'
import { accumulate } from '../../support/stream-clients.js'

const dialect = dialects.openai_responses
const read = (body: unknown) => decode('openai_responses', body)
const output = (response: CanonicalResponse, body: object) =>
  dialect.encodeResponse(response, read({ input: 'go', ...body }))
const stream = (response: CanonicalResponse, body: object) =>
  framesOf(dialect.streamEncoder(read({ input: 'go', ...body })), eventsOf(response))
/** The answer in both modes, which must be the same. */
const both = (t: { strictSame(a: unknown, b: unknown): unknown }, response: CanonicalResponse, body: object) => {
  const whole = JSON.parse(JSON.stringify(output(response, body)))
  t.strictSame(accumulate('openai_responses', stream(response, body)), whole)
  return whole
}
const user = (content: unknown) => ({ role: 'user', content })
const fnCall = (id: string, name: string, text = '{}') => ({
  type: 'function_call',
  call_id: id,
  name,
  arguments: text,
})
const fnOutput = (id: string, text: unknown) => ({ type: 'function_call_output', call_id: id, output: text })
const call = (id: string, name: string, text = '{}') => ({ id, name, arguments: text })
const refusal = (body: unknown) => {
  try {
    read(body)
    return 'accepted'
  } catch (cause) {
    return (cause as Error).message
  }
}

t.test('responses-request-1: parallel calls are one assistant message', async t => {
  const { messages } = read({
    input: [
      user('go'),
      fnCall('a', 'f', '{"x":1}'),
      fnCall('b', 'f', '{"x":2}'),
      fnOutput('a', '1'),
      fnOutput('b', '2'),
    ],
  })
  t.strictSame(messages, [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: null, toolCalls: [call('a', 'f', '{"x":1}'), call('b', 'f', '{"x":2}')] },
    { role: 'tool', toolCallId: 'a', content: '1' },
    { role: 'tool', toolCallId: 'b', content: '2' },
  ])
})

t.test('responses-request-2, responses-request-3: thinking, text and call of one turn are one message', async t => {
  const text = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I will look.' }] }
  const summary = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'plan' }] }
  const content = { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'plan' }] }
  const turn = (...items: unknown[]) =>
    read({ input: [user('go'), ...items, fnCall('a', 'ls'), fnOutput('a', 'a.py')] }).messages
  const toolCalls = [call('a', 'ls')]
  t.strictSame(turn(text)[1], { role: 'assistant', content: 'I will look.', toolCalls })
  t.strictSame(turn(summary)[1], { role: 'assistant', content: null, reasoning: 'plan', toolCalls })
  t.strictSame(turn(content)[1], { role: 'assistant', content: null, reasoning: 'plan', toolCalls })
  t.strictSame(turn(summary, text)[1], { role: 'assistant', content: 'I will look.', reasoning: 'plan', toolCalls })
  t.equal(turn(summary, text).length, 3)
})

t.test('each reasoning item belongs to its own turn', async t => {
  const think = (text: string) => ({ type: 'reasoning', summary: [{ type: 'summary_text', text }] })
  const text = (content: string) => ({ type: 'message', role: 'assistant', content })
  const { messages } = read({
    input: [
      user('go'),
      think('R1'),
      fnCall('a', 'f'),
      fnOutput('a', '1'),
      think('R2'),
      fnCall('b', 'f'),
      fnOutput('b', '2'),
      text('done'),
      think('R3'),
      text('more'),
      text('and more'),
    ],
  })
  t.strictSame(
    messages.flatMap(message => (message.role === 'assistant' ? [[message.reasoning, message.content]] : [])),
    [
      ['R1', null],
      ['R2', null],
      [undefined, 'done'],
      ['R3', 'more'],
      [undefined, 'and more'],
    ],
  )
})

t.test('ids of ours tell two turns apart, and keep one together', async t => {
  const text = (id: string, content: string) => ({ type: 'message', role: 'assistant', id, content })
  const call = (id: string) => ({ ...fnCall('a', 'f'), id })
  const turns = (...items: unknown[]) => read({ input: [user('go'), ...items] }).messages.length - 1
  t.equal(turns(text('msg_0123456789ab_0', 'a'), text('msg_0123456789ab_2', 'b')), 1)
  t.equal(turns(text('msg_0123456789ab_0', 'a'), call('fc_ba9876543210_0')), 2)
})

t.test('responses-request-4: leading developer messages and instructions are one system message', async t => {
  const developer = { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Be brief.' }] }
  t.strictSame(read({ input: [developer, user('hi')] }).messages[0], { role: 'system', content: 'Be brief.' })
  t.strictSame(read({ instructions: 'I', input: [developer, user('hi')] }).messages, [
    { role: 'system', content: 'I\n\nBe brief.' },
    { role: 'user', content: 'hi' },
  ])
})

t.test('responses-request-5: a developer message in the middle keeps its place', async t => {
  const developer = (text: string) => ({ type: 'message', role: 'developer', content: [{ type: 'input_text', text }] })
  const { messages, rules } = read({ input: [user('one'), developer('Now be brief.'), user('two')] })
  t.strictSame(messages, [
    { role: 'user', content: 'one' },
    { role: 'user', content: 'Now be brief.' },
    { role: 'user', content: 'two' },
  ])
  t.strictSame(rules, ['notice_as_user_message'])
  t.strictSame(read({ input: [user('one')] }).messages, messages.slice(0, 1))
  const late = read({
    input: [user('go'), fnCall('a', 'f'), developer('early'), fnOutput('a', '1'), developer('late')],
  })
  t.strictSame(late.messages.at(-1), { role: 'tool', toolCallId: 'a', content: '1\n\nearly\n\nlate' })
})

const PATCH = {
  type: 'custom',
  name: 'apply_patch',
  description: 'Edit files',
  format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
}

t.test('responses-request-6: a custom tool is a function of one string, and its calls come back raw', async t => {
  const { tools } = read({ tools: [PATCH], input: 'edit' })
  t.strictSame(tools, [
    {
      name: 'apply_patch',
      description: 'Edit files\n\nThe input must match this lark grammar:\nstart: "x"',
      parameters: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
    },
  ])
  const sampled = answer({
    toolCalls: [call('c1', 'apply_patch', '{"input":"*** Begin Patch"}')],
    finish: 'tool_calls',
  })
  t.strictSame(both(t, sampled, { tools: [PATCH] }).output, [
    {
      id: 'ctc_0123456789ab_0',
      type: 'custom_tool_call',
      status: 'completed',
      call_id: 'c1',
      name: 'apply_patch',
      input: '*** Begin Patch',
    },
  ])
  const broken = answer({ toolCalls: [call('c1', 'apply_patch', '{"input":"*** Beg')], finish: 'length' })
  t.match(both(t, broken, { tools: [PATCH] }), {
    status: 'incomplete',
    output: [{ type: 'custom_tool_call', status: 'incomplete', input: '{"input":"*** Beg' }],
  })
})

t.test('responses-request-7: a custom call in history is a call with its text', async t => {
  const { messages } = read({
    tools: [PATCH],
    input: [
      user('edit'),
      { type: 'custom_tool_call', call_id: 'a', name: 'apply_patch', input: '*** Begin Patch' },
      { type: 'custom_tool_call_output', call_id: 'a', output: 'Done' },
    ],
  })
  t.strictSame(messages.slice(1), [
    { role: 'assistant', content: null, toolCalls: [call('a', 'apply_patch', '{"input": "*** Begin Patch"}')] },
    { role: 'tool', toolCallId: 'a', content: 'Done' },
  ])
})

t.test('responses-request-8: a namespaced tool is flat for the engine and namespaced for the client', async t => {
  const status = { type: 'function', name: 'status', parameters: { type: 'object', properties: {} } }
  const tools = [{ type: 'namespace', name: 'mcp__x__', description: 'x server', tools: [status] }]
  const item = { ...fnCall('a', 'status'), namespace: 'mcp__x__' }
  const request = read({ tools, input: [user('status?'), item, fnOutput('a', 'up')] })
  t.strictSame(
    request.tools.map(({ name }) => name),
    ['mcp__x__status'],
  )
  t.match(request.messages[1], { toolCalls: [{ name: 'mcp__x__status' }] })
  t.match(read({ tools, input: [user('s'), fnCall('a', 'status')] }).messages[1], {
    toolCalls: [{ name: 'mcp__x__status' }],
  })
  const sampled = answer({ toolCalls: [call('c1', 'mcp__x__status')], finish: 'tool_calls' })
  t.match(both(t, sampled, { tools }).output, [{ type: 'function_call', namespace: 'mcp__x__', name: 'status' }])
})

t.test('the tools of an additional_tools item count, and Codex calls those of "functions" by bare name', async t => {
  const exec = { type: 'custom', name: 'exec' }
  const wait = { type: 'function', name: 'wait', parameters: { type: 'object' } }
  const item = {
    type: 'additional_tools',
    tools: [
      { type: 'namespace', name: 'functions', tools: [exec] },
      { type: 'namespace', name: 'clock', tools: [wait] },
    ],
  }
  const input = [item, user('go'), { type: 'custom_tool_call', call_id: 'a', name: 'exec', input: 'x()' }]
  const request = read({ input })
  t.strictSame(
    request.tools.map(({ name }) => name),
    ['exec', 'clock__wait'],
  )
  const sampled = answer({
    toolCalls: [call('c1', 'exec', '{"input":"y()"}'), call('c2', 'clock__wait')],
    finish: 'tool_calls',
  })
  t.match(both(t, sampled, { input }).output, [
    { type: 'custom_tool_call', name: 'exec', input: 'y()', namespace: undefined },
    { type: 'function_call', name: 'wait', namespace: 'clock' },
  ])
})

t.test('responses-request-9: hosted tools and their items are left out and recorded', async t => {
  const ls = { type: 'function', name: 'ls', parameters: { type: 'object', properties: {} } }
  const { messages, tools, losses } = read({
    tools: [{ type: 'web_search' }, { type: 'file_search', vector_store_ids: ['v'] }, ls],
    input: [user('go'), { type: 'web_search_call', id: 'ws_1', status: 'completed' }, user('go on')],
  })
  t.strictSame(
    tools.map(({ name }) => name),
    ['ls'],
  )
  t.strictSame(messages, [user('go'), user('go on')])
  t.strictSame(
    losses.map(({ path }) => path),
    ['tools[0]', 'tools[1]', 'input[1]'],
  )
})

t.test('responses-request-10: an image in a user message stays where it stands', async t => {
  const url = `data:image/png;base64,${PNG}`
  const { messages } = read({
    input: [
      user([
        { type: 'input_text', text: 'what is this?' },
        { type: 'input_image', image_url: url },
      ]),
    ],
  })
  t.strictSame(messages[0]?.content, [
    { type: 'text', text: 'what is this?' },
    { type: 'image', url },
  ])
})

t.test('responses-request-11: stored state is refused by name', async t => {
  t.match(refusal({ previous_response_id: 'resp_1', input: [user('and now?')] }), /^previous_response_id: /)
  t.match(refusal({ conversation: 'c', input: 'x' }), /^conversation: /)
  t.match(refusal({ background: true, input: 'x' }), /^background: /)
  t.match(refusal({ input: [{ type: 'item_reference', id: 'msg_1' }] }), /^input\[0\]: item_reference/)
})

t.test('responses-request-12: effort, limit and format go in and come back', async t => {
  const format = { type: 'json_schema', name: 'r', schema: { type: 'object' }, strict: true }
  const body = { reasoning: { effort: 'low' }, max_output_tokens: 77, text: { format } }
  t.match(read({ ...body, input: 'hi' }), {
    reasoningEffort: 'low',
    enableThinking: true,
    sampling: { maxTokens: 77 },
    responseFormat: { type: 'json_schema', json_schema: { name: 'r', schema: { type: 'object' }, strict: true } },
  })
  t.match(both(t, answer({ content: 'x' }), body), {
    reasoning: { effort: 'low' },
    max_output_tokens: 77,
    text: { format },
  })
  const off = read({ reasoning: { effort: 'none' }, input: 'hi' })
  t.strictSame([off.enableThinking, 'reasoningEffort' in off], [false, false])
  t.notOk('responseFormat' in read({ text: { format: { type: 'text' } }, input: 'hi' }))
})

t.test('responses-request-14: null is absent', async t => {
  t.strictSame(read({ tools: null, tool_choice: null, input: 'hi' }), read({ input: 'hi' }))
  t.notOk('toolChoice' in read({ tools: [], tool_choice: 'auto', input: 'hi' }))
})

t.test("thinking sealed by us comes back exactly, another server's is recorded", async t => {
  const body = { include: ['reasoning.encrypted_content'] }
  const [item] = both(t, answer({ reasoning: 'größer 🙂', content: 'x' }), body).output
  const restored = read({ input: [user('go'), { ...item, summary: [] }, fnCall('a', 'f')] })
  t.match(restored.messages[1], { reasoning: 'größer 🙂' })
  t.strictSame(restored.rules, ['reasoning_restored'])
  const foreign = read({
    input: [user('go'), { type: 'reasoning', summary: [], encrypted_content: 'opaque' }, fnCall('a', 'f')],
  })
  t.strictSame(foreign.losses, [{ path: 'input[1]', reason: 'reasoning encrypted by another server cannot be read' }])
})

t.test('responses-response-1: a cut answer is incomplete', async t => {
  const cut = answer({ content: 'half an ans', finish: 'length' })
  t.match(both(t, cut, {}), {
    status: 'incomplete',
    incomplete_details: { reason: 'max_output_tokens' },
    output: [{ content: [{ text: 'half an ans' }] }],
  })
  const types = stream(cut, {}).map(({ frame }) => frame.event)
  t.equal(types.at(-1), 'response.incomplete')
  t.notOk(types.includes('response.completed'))
})

t.test('responses-response-2: thinking only is one reasoning item', async t => {
  const response = both(t, answer({ reasoning: 'hm', content: '' }), {})
  t.strictSame(response.output, [
    { id: 'rs_0123456789ab_0', type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] },
  ])
  t.equal(response.status, 'completed')
  t.strictSame(
    stream(answer({ reasoning: 'hm' }), {}).map(({ frame }) => frame.event),
    [
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.reasoning_summary_part.added',
      'response.reasoning_summary_text.delta',
      'response.reasoning_summary_text.done',
      'response.reasoning_summary_part.done',
      'response.output_item.done',
      'response.completed',
    ],
  )
})

t.test('responses-response-3: the kind of a shell call follows the declaration', async t => {
  const shell = answer({ toolCalls: [call('c1', 'shell', '{"cmd":"ls"}')], finish: 'tool_calls' })
  const kind = (tools: unknown) => both(t, shell, { tools }).output[0]
  t.match(kind([{ type: 'function', name: 'shell' }]), {
    type: 'function_call',
    name: 'shell',
    arguments: '{"cmd":"ls"}',
  })
  t.match(kind([{ type: 'local_shell' }]), {
    type: 'local_shell_call',
    call_id: 'c1',
    action: { type: 'exec', command: ['bash', '-lc', 'ls'], env: {} },
  })
  t.match(kind([{ type: 'shell' }]), { type: 'shell_call', action: { commands: ['ls'] } })
  const history = read({
    tools: [{ type: 'local_shell' }],
    input: [
      user('go'),
      { type: 'local_shell_call', call_id: 'a', action: { type: 'exec', command: ['ls', '-l'], env: {} } },
      { type: 'local_shell_call_output', call_id: 'a', output: 'x' },
    ],
  })
  t.match(history.messages.slice(1), [
    { toolCalls: [call('a', 'shell', '{"command": ["ls", "-l"]}')] },
    { role: 'tool', toolCallId: 'a', content: 'x' },
  ])
})

t.test(
  'responses-response-4, responses-response-5: a failure in mid-stream is response.failed, with its code',
  async t => {
    const encoder = dialect.streamEncoder(read({ input: 'go' }))
    const sent = framesOf(encoder, eventsOf(answer({ content: 'half' })).slice(0, 2)).length
    const [frame, ...rest] = encoder.fail(502, 'the engine failed')
    t.strictSame([frame?.event, rest], ['response.failed', []])
    t.match(JSON.parse(frame?.data ?? ''), {
      sequence_number: sent,
      response: { status: 'failed', error: { code: 'server_error', message: 'the engine failed' } },
    })
    const [named] = dialect.streamEncoder(read({ input: 'go' })).fail(502, 'gone', 'upstream_error')
    t.match(JSON.parse(named?.data ?? ''), { response: { error: { code: 'server_error' } } })
    const [tooLong] = dialect.streamEncoder(read({ input: 'go' })).fail(400, 'too long', 'context_length_exceeded')
    t.match(JSON.parse(tooLong?.data ?? ''), { response: { error: { code: 'context_length_exceeded' } } })
    t.match(dialect.errorBody(400, 'too long', 'context_length_exceeded'), {
      error: { type: 'invalid_request_error', code: 'context_length_exceeded', param: 'messages' },
    })
  },
)

t.test('held: the first done item of a call and all after; text items flow', async t => {
  const toolCalls = [call('c1', 'f'), call('c2', 'f')]
  const frames = stream(answer({ reasoning: 'r', content: 'x', toolCalls, finish: 'tool_calls' }), {})
  const held = dataOf(frames.filter(({ hold }) => hold))
  t.match(held[0], { type: 'response.output_item.done', item: { type: 'function_call', call_id: 'c1' } })
  t.match(dataOf(stream(answer({ content: 'x' }), {}).filter(({ hold }) => hold))[0], { type: 'response.completed' })
})

t.test('a whole Codex body is read', async t => {
  const request = read({
    model: 'gpt-5.5',
    stream: true,
    store: false,
    tool_choice: 'auto',
    parallel_tool_calls: true,
    reasoning: { effort: 'medium' },
    include: ['reasoning.encrypted_content'],
    text: { verbosity: 'low' },
    prompt_cache_key: 'uuid',
    client_metadata: {},
    input: [
      { type: 'message', id: 'msg_1', role: 'developer', content: [{ type: 'input_text', text: 'base' }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'environment' }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'prompt' }] },
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [{ type: 'summary_text', text: 't' }],
        content: null,
        encrypted_content: 'opaque',
      },
      { ...fnCall('call_1', 'exec_command', '{"cmd":"c"}'), id: 'fc_1', status: 'completed' },
      { ...fnOutput('call_1', 'text'), id: 'fco_1' },
      { type: 'custom_tool_call', name: 'apply_patch', input: '*** Begin Patch', call_id: 'call_2' },
      { type: 'custom_tool_call_output', call_id: 'call_2', output: [{ type: 'input_text', text: 'ok' }] },
    ],
    tools: [
      { type: 'function', name: 'exec_command', strict: false, parameters: {} },
      PATCH,
      { type: 'web_search' },
      { type: 'tool_search' },
    ],
  })
  t.strictSame(
    request.messages.map(({ role, content }) => [role, content]),
    [
      ['system', 'base'],
      ['user', 'environment'],
      ['user', 'prompt'],
      ['assistant', null],
      ['tool', 'text'],
      ['assistant', null],
      ['tool', 'ok'],
    ],
  )
  t.strictSame(
    request.losses.map(({ path }) => path),
    ['tools[2]', 'tools[3]', 'text.verbosity'],
  )
})

t.test('bad fields are refused by path', async t => {
  t.equal(refusal({}), 'input: wanted a string or a non-empty array, got nothing')
  t.equal(refusal({ input: [7] }), 'input[0]: wanted an object, got 7')
  t.match(refusal({ input: [{ type: 'nope' }] }), /^input\[0\]\.type: wanted one of .*, got "nope"$/)
  t.match(refusal({ input: [user([{ type: 'nope' }])] }), /^input\[0\]\.content\[0\]\.type: wanted one of /)
  t.equal(refusal({ input: 'x', tools: {} }), 'tools: wanted an array, got an object')
  t.equal(refusal({ input: [fnCall('', 'f')] }), 'input[0].call_id: wanted a non-empty string, got ""')
  t.match(refusal({ input: 'x', n: 2 }), /^n: wanted 1, got 2/)
})

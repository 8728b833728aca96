// The case book's groups chat-wire and history, as far as they are the dialect's: bodies in, bodies and chunks out.

import t from 'tap'
import { dialects } from '../../../src/dialects/registry.js'
import type { CanonicalResponse } from '../../../src/domain/conversation.js'
import { answer, dataOf, decode, eventsOf, framesOf, PNG } from '../../support/dialects.js'
import { accumulate } from '../../support/stream-clients.js'

const dialect = dialects.openai_chat
const hi = { messages: [{ role: 'user', content: 'hi' }] }
const read = (body: object) => decode('openai_chat', { ...hi, ...body })
const stream = (response: CanonicalResponse, body: object = {}) =>
  framesOf(dialect.streamEncoder(read(body)), eventsOf(response))
const toolCall = (text: string) => ({ id: 'c1', type: 'function', function: { name: 'f', arguments: text } })
const refusal = (body: object) => {
  try {
    read(body)
    return 'accepted'
  } catch (cause) {
    return (cause as Error).message
  }
}

t.test('chat-wire-1: the usage chunk comes last, and only when asked', async t => {
  const usage = { promptTokens: 3, completionTokens: 2, cachedTokens: 0 }
  const asked = dataOf(
    stream(answer({ content: 'ok', usage }), { stream: true, stream_options: { include_usage: true } }),
  )
  t.strictSame(asked.at(-1), {
    id: 'chatcmpl-0123456789ab',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  })
  t.ok(asked.slice(0, -1).every(chunk => !('usage' in chunk)))
  t.ok(dataOf(stream(answer({ content: 'ok', usage }))).every(chunk => !('usage' in chunk)))
  t.equal(stream(answer({ content: 'ok' })).at(-1)?.frame.data, '[DONE]')
})

t.test('chat-wire-4: the role chunk holds no text, the first piece is not lost', async t => {
  const events = [
    ...eventsOf(answer()).slice(0, 1),
    { type: 'text-delta', text: 'I' } as const,
    { type: 'text-delta', text: "'m happy" } as const,
    ...eventsOf(answer({ content: "I'm happy" })).slice(-1),
  ]
  for (const { id, streamEncoder } of Object.values(dialects)) {
    const body =
      { openai_responses: { input: 'hi' }, google_generate: { contents: [{ parts: [{ text: 'hi' }] }] } }[
        id as string
      ] ?? hi
    const text = JSON.stringify(accumulate(id, framesOf(streamEncoder(decode(id, body)), events)))
    t.match(text, /I'm happy/, id)
  }
  t.match(dataOf(stream(answer({ content: 'I' })))[0], {
    choices: [{ index: 0, delta: { role: 'assistant', content: '' } }],
  })
})

t.test('chat-wire-5: null booleans are false', async t => {
  t.strictSame(read({ stream: null, logprobs: null }), read({}))
  t.equal(read({}).stream, false)
})

t.test("chat-wire-8: fields that belong to the gateway are not the caller's", async t => {
  t.equal(refusal({ n: 2 }), 'n: wanted 1, got 2: one call gives one answer')
  const got = read({ n: 1, logprobs: false, top_logprobs: null, return_token_ids: false, input_ids: [1, 2, 3] })
  t.strictSame(got.losses, [{ path: 'input_ids', reason: 'not carried to the engine' }])
  t.notMatch(JSON.stringify(got.messages), /input_ids/)
  const logprobs = { content: [{ token: 'o', logprob: -0.1, bytes: null, top_logprobs: [] }] }
  const response = answer({ content: 'ok', logprobs })
  const choice = (body: object) => (dialect.encodeResponse(response, read(body))['choices'] as object[])[0]
  t.notOk('logprobs' in (choice({}) ?? {}))
  t.match(choice({ logprobs: true }), { logprobs })
  t.match(dataOf(stream(response, { logprobs: true })).at(-1), { choices: [{ logprobs, finish_reason: 'stop' }] })
  t.notOk(JSON.stringify(dataOf(stream(response))).includes('logprobs'))
})

t.test('history-1: broken arguments in history pass as they are', async t => {
  const { messages } = read({
    messages: [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: null, tool_calls: [toolCall('{"value": ')] },
      { role: 'tool', tool_call_id: 'c1', content: 'error: bad arguments' },
      { role: 'user', content: 'again' },
    ],
  })
  t.strictSame(messages, [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: null, toolCalls: [{ id: 'c1', name: 'f', arguments: '{"value": ' }] },
    { role: 'tool', toolCallId: 'c1', content: 'error: bad arguments' },
    { role: 'user', content: 'again' },
  ])
})

t.test('history-2: an argument text is never quoted once more', async t => {
  const text = '{"q":"a \\"b\\""}'
  const { messages } = read({ messages: [...hi.messages, { role: 'assistant', tool_calls: [toolCall(text)] }] })
  t.match(messages[1], { toolCalls: [{ arguments: text }] })
  const response = answer({ toolCalls: [{ id: 'c1', name: 'f', arguments: text }], finish: 'tool_calls' })
  t.match(dialect.encodeResponse(response, read({})), { choices: [{ message: { tool_calls: [toolCall(text)] } }] })
})

t.test('history-3: leading system messages are one, developer is system, later ones keep their place', async t => {
  const system = (content: string, role = 'system') => ({ role, content })
  t.strictSame(read({ messages: [system('A'), system('B', 'developer'), ...hi.messages] }).messages, [
    { role: 'system', content: 'A\n\nB' },
    { role: 'user', content: 'hi' },
  ])
  const late = read({ messages: [system('A'), ...hi.messages, system('B')] })
  t.strictSame(late.messages.slice(1), [
    { role: 'user', content: 'hi' },
    { role: 'user', content: 'B' },
  ])
})

t.test('a whole Qwen Code body is read: part lists are text, thinking and calls are kept', async t => {
  const got = read({
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: 32000,
    messages: [
      { role: 'system', content: 'S' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'context' },
          { type: 'text', text: 'prompt' },
        ],
      },
      { role: 'assistant', content: '', reasoning_content: 't', tool_calls: [toolCall('{}')] },
      { role: 'tool', tool_call_id: 'c1', content: [{ type: 'text', text: 'out' }] },
    ],
    tools: [{ type: 'function', function: { name: 'n', description: 'd' } }],
  })
  t.strictSame(got.messages, [
    { role: 'system', content: 'S' },
    { role: 'user', content: 'context\nprompt' },
    { role: 'assistant', content: null, reasoning: 't', toolCalls: [{ id: 'c1', name: 'f', arguments: '{}' }] },
    { role: 'tool', toolCallId: 'c1', content: 'out' },
  ])
  t.strictSame(got.tools, [{ name: 'n', description: 'd' }])
  t.strictSame([got.losses, got.rules], [[], []])
})

t.test('calls and results without ids find each other, the same way every time', async t => {
  const body = {
    messages: [
      ...hi.messages,
      {
        role: 'assistant',
        tool_calls: [{ function: { name: 'f', arguments: '{}' } }, { id: '', function: { name: 'g' } }],
      },
      { role: 'tool', content: '1' },
      { role: 'tool', tool_call_id: '', content: '2' },
    ],
  }
  const { messages } = read(body)
  t.strictSame(
    messages.slice(2).map(message => (message.role === 'tool' ? message.toolCallId : '')),
    ['call_1_0', 'call_1_1'],
  )
  t.strictSame(read(body).messages, messages)
})

t.test('images keep their detail; those in results follow the results', async t => {
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}`, detail: 'low' } }
  const part = { type: 'image', url: `data:image/png;base64,${PNG}`, detail: 'low' }
  t.strictSame(read({ messages: [{ role: 'user', content: [image] }] }).messages[0]?.content, [part])
  const { messages } = read({
    messages: [
      ...hi.messages,
      { role: 'assistant', tool_calls: [toolCall('{}')] },
      { role: 'tool', tool_call_id: 'c1', content: [image] },
    ],
  })
  t.strictSame(messages.slice(2), [
    { role: 'tool', toolCallId: 'c1', content: '' },
    { role: 'user', content: [{ type: 'text', text: 'Image from tool call c1 (f):' }, part] },
  ])
})

t.test('sampling, format and tool settings are read', async t => {
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' }, strict: true } }]
  const got = read({
    temperature: 0,
    top_p: 0.9,
    top_k: 20,
    min_p: 0.1,
    presence_penalty: 1,
    frequency_penalty: -1,
    max_tokens: 5,
    max_completion_tokens: 32,
    seed: 7,
    stop: 'x',
    tools,
    tool_choice: { type: 'function', function: { name: 'f' } },
    parallel_tool_calls: false,
    reasoning_effort: 'none',
    chat_template_kwargs: { enable_thinking: true, custom: 1 },
    response_format: { type: 'json_object' },
  })
  t.match(got, {
    sampling: {
      temperature: 0,
      topP: 0.9,
      topK: 20,
      minP: 0.1,
      presencePenalty: 1,
      frequencyPenalty: -1,
      maxTokens: 32,
      seed: 7,
      stop: ['x'],
    },
    tools: [{ name: 'f', parameters: { type: 'object' }, strict: true }],
    toolChoice: { type: 'function', name: 'f' },
    parallelToolCalls: false,
    enableThinking: true,
    responseFormat: { type: 'json_object' },
    losses: [{ path: 'chat_template_kwargs.custom' }],
  })
  t.notOk('toolChoice' in read({ tools: [], tool_choice: 'auto' }), 'anthropic-request-10 holds here too')
  const mixed = read({
    tools: [{ type: 'function', name: 'f', input_schema: { jsonSchema: { type: 'object' } } }, { type: 'web_search' }],
  })
  t.strictSame(mixed.tools, [{ name: 'f', parameters: { type: 'object' } }])
  t.strictSame(
    mixed.losses.map(({ path }) => path),
    ['tools[1]'],
  )
})

t.test('an answer with calls ends tool_calls whatever the engine said', async t => {
  const response = answer({ toolCalls: [{ id: 'c1', name: 'f', arguments: '{}' }], finish: 'stop' })
  t.match(dialect.encodeResponse(response, read({})), {
    choices: [{ finish_reason: 'tool_calls', message: { content: null } }],
  })
  const [held] = stream(response).filter(({ hold }) => hold)
  t.match(JSON.parse(held?.frame.data ?? ''), { choices: [{ delta: {}, finish_reason: 'tool_calls' }] })
})

t.test('a failure in mid-stream is an error object without [DONE]', async t => {
  const frames = dialect.streamEncoder(read({})).fail(502, 'gone')
  t.strictSame(
    frames.map(({ data }) => JSON.parse(data)),
    [{ error: { message: 'gone', type: 'server_error', param: null, code: 'upstream_error' } }],
  )
})

t.test('bad fields are refused by path', async t => {
  t.equal(
    refusal({ messages: [{ role: 'user', content: [{ type: 'nope' }] }] }),
    'messages[0].content[0].type: wanted one of "text", "image_url", "input_audio", "file", "refusal", got "nope"',
  )
  t.match(refusal({ messages: [{ role: 'nobody' }] }), /^messages\[0\]\.role: wanted one of /)
  t.equal(refusal({ messages: null }), 'messages: wanted a non-empty array, got null')
  t.equal(refusal({ temperature: 'hot' }), 'temperature: wanted a number, got "hot"')
  t.equal(refusal({ stop: [1] }), 'stop[0]: wanted a string, got 1')
  t.equal(
    refusal({ tools: [{ type: 'function', function: {} }] }),
    'tools[0].function.name: wanted a non-empty string, got nothing',
  )
  t.equal(
    refusal({ tools: [{ function: { name: 'f' } }], tool_choice: 'any' }),
    'tool_choice: wanted one of "auto", "none", "required", got "any"',
  )
})

// The case book's group gemini, and what Gemini CLI sends and needs.

import t from 'tap'
import { dialects } from '../../../src/dialects/registry.js'
import type { CanonicalResponse } from '../../../src/domain/conversation.js'
import { answer, dataOf, decode, eventsOf, framesOf, PNG } from '../../support/dialects.js'
import { accumulate } from '../../support/stream-clients.js'

const dialect = dialects.google_generate
const hi = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }
const read = (body: object, path?: string) => decode('google_generate', { ...hi, ...body }, path)
const request = read({})
const stream = (response: CanonicalResponse, cut?: (text: string) => readonly string[]) =>
  framesOf(dialect.streamEncoder(request), eventsOf(response, cut))
const refusal = (body: object) => {
  try {
    read(body)
    return 'accepted'
  } catch (cause) {
    return (cause as Error).message
  }
}
const turns = (...contents: [role: string, ...parts: object[]][]) => ({
  contents: contents.map(([role, ...parts]) => ({ role, parts })),
})
const respond = (name: string, response: object, rest: object = {}) => ({
  functionResponse: { name, response, ...rest },
})

t.test('gemini-1: a call without an id gets one from its place, and its response finds it', async t => {
  const body = turns(
    ['user', { text: 'go' }],
    ['model', { functionCall: { name: 'f', args: { x: 1 } } }],
    ['user', respond('f', { ok: true })],
  )
  const { messages } = read(body)
  t.strictSame(messages, [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: null, toolCalls: [{ id: 'call_1_0', name: 'f', arguments: '{"x": 1}' }] },
    { role: 'tool', toolCallId: 'call_1_0', content: '{"ok": true}' },
  ])
  t.strictSame(read(body).messages, messages)
})

t.test('responses find their calls by name and order, and a repeated one is dropped with a loss', async t => {
  const { messages, losses } = read(
    turns(
      ['user', { text: 'go' }],
      [
        'model',
        { functionCall: { name: 'f' } },
        { functionCall: { name: 'g' } },
        { functionCall: { id: 'x', name: 'f' } },
      ],
      [
        'user',
        respond('g', { output: 'G' }),
        respond('f', { output: 'F' }),
        respond('f', { error: 'no' }, { id: 'x' }),
      ],
      ['user', respond('f', { error: 'no' }, { id: 'x' }), { text: 'more' }],
    ),
  )
  t.strictSame(
    messages.slice(2).map(message => [message.role === 'tool' ? message.toolCallId : message.role, message.content]),
    [
      ['call_1_1', 'G'],
      ['call_1_0', 'F'],
      ['x', '[Tool Error] no'],
      ['user', 'more'],
    ],
  )
  t.strictSame(losses, [
    { path: 'contents[3].parts[0].functionResponse', reason: 'a second response to the same call' },
  ])
})

t.test('gemini-2: the last chunk has the finish reason and the usage', async t => {
  const frames = stream(answer({ content: 'Hello' }), () => ['Hel', 'lo'])
  t.match(dataOf(frames).at(-1), {
    candidates: [{ finishReason: 'STOP', index: 0, content: { role: 'model' } }],
    usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 2, totalTokenCount: 102 },
    modelVersion: 'm',
    responseId: '0123456789ab',
  })
  t.match(accumulate('google_generate', frames), { candidates: [{ content: { parts: [{ text: 'Hello' }] } }] })
  t.ok(frames.every(({ frame }) => frame.event === null))
  t.equal(dialect.keepAlive, null)
})

t.test('gemini-3: thoughts only gets one visible text, which the history loses again', async t => {
  const whole = dialect.encodeResponse(answer({ reasoning: 'hm', content: '' }), request)
  const [candidate] = whole['candidates'] as { content: { parts: object[] } }[]
  t.match(candidate, {
    finishReason: 'STOP',
    content: { parts: [{ text: 'hm', thought: true }, { text: '(no visible answer)' }] },
  })
  t.match(accumulate('google_generate', stream(answer({ reasoning: 'hm' }))), whole)
  const kept = candidate?.content.parts.slice(1) ?? []
  const { messages, rules } = read(turns(['user', { text: 'go' }], ['model', ...kept], ['user', { text: 'on' }]))
  t.strictSame(messages[1], { role: 'assistant', content: '', reasoning: 'hm' })
  t.strictSame(rules, ['visible_note_removed', 'reasoning_restored'])
})

t.test('gemini-4: schemas in both forms, types in lower case', async t => {
  const json = { type: 'object', properties: { x: { type: 'string' } } }
  const own = {
    type: 'OBJECT',
    properties: { type: { type: 'STRING', enum: ['A'] }, y: { type: 'ARRAY', items: { type: 'NUMBER' } } },
  }
  const { tools, losses } = read({
    tools: [
      {
        functionDeclarations: [
          { name: 'f', description: 'd', parametersJsonSchema: json },
          { name: 'g', parameters: own },
        ],
      },
      { googleSearch: {} },
    ],
  })
  t.strictSame(tools, [
    { name: 'f', description: 'd', parameters: json },
    {
      name: 'g',
      parameters: {
        type: 'object',
        properties: { type: { type: 'string', enum: ['A'] }, y: { type: 'array', items: { type: 'number' } } },
      },
    },
  ])
  t.strictSame(
    losses.map(({ path }) => path),
    ['tools[1].googleSearch'],
  )
})

t.test('gemini-5: a foreign signature never reaches the engine', async t => {
  const got = read(
    turns(
      ['user', { text: 'go' }],
      ['model', { functionCall: { name: 'f', args: {} }, thoughtSignature: 'c2lnbmF0dXJl' }],
      ['user', respond('f', { ok: true })],
    ),
  )
  t.notMatch(JSON.stringify(got), /c2lnbmF0dXJl/)
  t.match(got.messages[1], { toolCalls: [{ name: 'f', arguments: '{}' }] })
  t.notOk('reasoning' in (got.messages[1] ?? {}))
})

t.test('gemini-6: images inline and in responses are kept once each', async t => {
  const png = { inlineData: { mimeType: 'image/png', data: PNG } }
  const part = { type: 'image', url: `data:image/png;base64,${PNG}` }
  const { messages } = read(
    turns(
      ['user', { text: 'what?' }, png],
      ['model', { functionCall: { name: 'shot', args: {} } }],
      ['user', respond('shot', { ok: true }, { parts: [png] })],
    ),
  )
  t.strictSame(messages[0]?.content, [{ type: 'text', text: 'what?' }, part])
  t.strictSame(messages.slice(2), [
    { role: 'tool', toolCallId: 'call_1_0', content: '{"ok": true}' },
    { role: 'user', content: [{ type: 'text', text: 'Image from tool call call_1_0 (shot):' }, part] },
  ])
})

t.test('a call is one whole part with our id, and carries the thinking that the client drops', async t => {
  const toolCalls = [{ id: 'c1', name: 'run', arguments: '{"command": "ls"}' }]
  const response = answer({ reasoning: 'größer', toolCalls, finish: 'tool_calls' })
  const frames = stream(response, text => [...text])
  const [held] = dataOf(frames.filter(({ hold }) => hold)) as unknown as {
    candidates: { content: { parts: { functionCall: object }[] } }[]
  }[]
  const [part] = held?.candidates[0]?.content.parts ?? []
  t.strictSame(part?.functionCall, { id: 'c1', name: 'run', args: { command: 'ls' } })
  const { messages, rules } = read(
    turns(['user', { text: 'go' }], ['model', part ?? {}], ['user', respond('run', { output: 'a.py' }, { id: 'c1' })]),
  )
  t.strictSame(messages.slice(1), [
    { role: 'assistant', content: null, reasoning: 'größer', toolCalls },
    { role: 'tool', toolCallId: 'c1', content: 'a.py' },
  ])
  t.strictSame(rules, ['reasoning_restored'])
})

t.test('broken or cut arguments are shown as text, never repaired', async t => {
  const cut = answer({ toolCalls: [{ id: 'c1', name: 'w', arguments: '{"path": "a' }], finish: 'length' })
  t.match(dialect.encodeResponse(cut, request), {
    candidates: [
      {
        finishReason: 'MAX_TOKENS',
        content: { parts: [{ text: '<tool_call>\n{"name": "w", "arguments": {"path": "a' }] },
      },
    ],
  })
  t.strictSame(accumulate('google_generate', stream(cut)), dialect.encodeResponse(cut, request))
  const list = answer({ toolCalls: [{ id: 'c1', name: 'w', arguments: '[1]' }], finish: 'tool_calls' })
  t.match(dialect.encodeResponse(list, request), {
    candidates: [{ content: { parts: [{ text: '<tool_call>\n{"name": "w", "arguments": [1]}\n</tool_call>' }] } }],
  })
})

t.test('finish reasons and counts', async t => {
  for (const [finish, reason] of [
    ['stop', 'STOP'],
    ['tool_calls', 'STOP'],
    ['length', 'MAX_TOKENS'],
    ['content_filter', 'SAFETY'],
  ] as const) {
    t.match(dialect.encodeResponse(answer({ content: 'x', finish }), request), {
      candidates: [{ finishReason: reason }],
    })
  }
  const usage = { promptTokens: 10, completionTokens: 2, cachedTokens: 4 }
  t.match(dialect.encodeResponse(answer({ content: 'x', usage }), request), {
    usageMetadata: { promptTokenCount: 10, cachedContentTokenCount: 4, totalTokenCount: 12 },
  })
})

t.test('a whole Gemini CLI body is read, in camel case and in snake case', async t => {
  const got = read(
    {
      systemInstruction: { role: 'user', parts: [{ text: 'S' }] },
      generationConfig: {
        temperature: 1,
        topP: 0.95,
        topK: 64,
        maxOutputTokens: 9,
        stopSequences: ['x'],
        seed: 3,
        thinkingConfig: { includeThoughts: true, thinkingBudget: 8192 },
      },
      toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['n'] } },
      tools: [{ functionDeclarations: [{ name: 'n' }] }],
    },
    '/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse',
  )
  t.match(got, {
    model: 'gemini-2.5-pro',
    stream: true,
    messages: [
      { role: 'system', content: 'S' },
      { role: 'user', content: 'hi' },
    ],
    sampling: { temperature: 1, topP: 0.95, topK: 64, maxTokens: 9, stop: ['x'], seed: 3 },
    enableThinking: true,
    toolChoice: { type: 'function', name: 'n' },
  })
  t.strictSame(
    got.losses.map(({ path }) => path),
    ['generationConfig.thinkingConfig.thinkingBudget'],
  )
  const snake = read({
    system_instruction: { parts: [{ text: 'S' }] },
    generation_config: { max_output_tokens: 9, thinking_config: { thinking_budget: 0 } },
    tools: [{ function_declarations: [{ name: 'n', parameters_json_schema: { type: 'object' } }] }],
    tool_config: { function_calling_config: { mode: 'none' } },
  })
  t.match(snake, {
    messages: [{ role: 'system', content: 'S' }, {}],
    sampling: { maxTokens: 9 },
    enableThinking: false,
    tools: [{ name: 'n', parameters: { type: 'object' } }],
    toolChoice: { type: 'none' },
  })
})

t.test('a JSON answer is asked for by type and schema', async t => {
  const format = (config: object) =>
    read({ generationConfig: { responseMimeType: 'application/json', ...config } }).responseFormat
  t.strictSame(format({}), { type: 'json_object' })
  const schema = { type: 'json_schema', json_schema: { name: 'google_response', schema: { type: 'object' } } }
  t.strictSame(format({ responseSchema: { type: 'OBJECT' } }), schema)
  t.strictSame(format({ responseJsonSchema: { type: 'object' } }), schema)
})

t.test('a count may wrap its body', async t => {
  const path = '/v1beta/models/m:countTokens'
  t.strictSame(decode('google_generate', { generateContentRequest: hi }, path).messages, read({}, path).messages)
  t.strictSame(dialect.countResponse(3), { totalTokens: 3 })
})

t.test('bad fields are refused by path', async t => {
  t.equal(refusal({ contents: null }), 'contents: wanted a non-empty array, got null')
  t.equal(refusal({ contents: [7] }), 'contents[0]: wanted an object, got 7')
  t.equal(
    refusal(turns(['nobody', { text: 'x' }])),
    'contents[0].role: wanted one of "user", "model", "function", "system", got "nobody"',
  )
  t.match(refusal(turns(['user', { nope: 1 }])), /^contents\[0\]\.parts\[0\]: wanted a part with one of /)
  t.equal(refusal({ cachedContent: 'c' }), 'cachedContent: no content is cached here: send it in contents')
  t.match(refusal({ generationConfig: { candidateCount: 2 } }), /^generationConfig\.candidateCount: wanted 1, got 2/)
  t.equal(
    refusal(turns(['model', { functionCall: { name: 'f', args: [] } }])),
    'contents[0].parts[0].functionCall.args: wanted an object, got an empty array',
  )
})

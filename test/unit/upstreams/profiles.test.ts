import t from 'tap'
import type { SamplingInForce } from '../../../src/domain/completion.js'
import type { CanonicalRequest } from '../../../src/domain/conversation.js'
import type { JsonObject } from '../../../src/domain/json.js'
import { upstreams } from '../../../src/upstreams/registry.js'

const { vllm, sglang, openai_compatible: plain } = upstreams

const sampling: SamplingInForce = {
  temperature: 1,
  topP: 1,
  topK: -1,
  minP: 0,
  presencePenalty: 0,
  frequencyPenalty: 0,
  maxTokens: 64,
  seed: null,
}
const options = { model: 'served', sampling, stop: ['END'], affinityKey: 's-1' }

const request: CanonicalRequest = {
  dialect: 'openai_chat',
  model: 'asked',
  messages: [
    { role: 'system', content: 'A' },
    { role: 'system', content: 'B' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'one' },
        { type: 'text', text: 'two' },
      ],
    },
    {
      role: 'assistant',
      content: null,
      reasoning: 'plan',
      toolCalls: [
        { id: 'c1', name: 'f', arguments: '{"value": ' },
        { id: 'c2', name: 'g', arguments: '{"q":"a \\"b\\""}' },
      ],
    },
    { role: 'tool', toolCallId: 'c1', content: [{ type: 'text', text: 'error' }] },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'see' },
        { type: 'image', url: 'data:image/png;base64,AA' },
      ],
    },
  ],
  tools: [{ name: 'f', description: 'd', parameters: { type: 'object' } }, { name: 'bare' }],
  toolChoice: { type: 'function', name: 'f' },
  parallelToolCalls: false,
  sampling: {},
  stream: true,
  enableThinking: false,
  reasoningEffort: 'xhigh',
  losses: [],
  echo: {},
}

const messages = [
  { role: 'system', content: 'A\n\nB' },
  { role: 'user', content: 'one\ntwo' },
  {
    role: 'assistant',
    content: null,
    reasoning: 'plan',
    reasoning_content: 'plan',
    tool_calls: [
      { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } },
      { id: 'c2', type: 'function', function: { name: 'g', arguments: '{"q":"a \\"b\\""}' } },
    ],
  },
  { role: 'tool', tool_call_id: 'c1', content: 'error' },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'see' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } },
    ],
  },
]
const tools = [
  { type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object' } } },
  { type: 'function', function: { name: 'bare' } },
]

t.test('vLLM is asked for ids and logprobs, and malformed arguments of the history do not kill the call', async t => {
  t.strictSame(JSON.parse(JSON.stringify(vllm.buildRequest(request, options))), {
    path: '/v1/chat/completions',
    headers: { 'x-session-id': 's-1' },
    body: {
      model: 'served',
      messages,
      tools,
      chat_template_kwargs: { enable_thinking: false },
      reasoning_effort: 'high',
      tool_choice: { type: 'function', function: { name: 'f' } },
      parallel_tool_calls: false,
      stop: ['END'],
      temperature: 1,
      top_p: 1,
      presence_penalty: 0,
      frequency_penalty: 0,
      max_tokens: 64,
      top_k: -1,
      min_p: 0,
      repetition_penalty: 1,
      logprobs: true,
      top_logprobs: 0,
      return_token_ids: true,
      stream: true,
      stream_options: { include_usage: true },
    },
    stream: true,
    losses: [
      {
        path: 'messages[2].tool_calls[0].function.arguments',
        reason: 'malformed arguments: the engine refuses them, the call is rendered with {}',
      },
    ],
  })
})

t.test('SGLang is never asked to stream, and a plain server gets only fields of its API', async t => {
  const buffered = sglang.buildRequest(request, options)
  t.equal(buffered.stream, false)
  t.match(buffered.body, { stream: false, return_prompt_token_ids: true, return_meta_info: true, logprobs: true })
  t.equal(buffered.body['stream_options'], undefined)
  const bare = plain.buildRequest(request, options)
  t.equal(bare.stream, true)
  for (const key of ['top_k', 'min_p', 'repetition_penalty', 'return_token_ids', 'logprobs']) {
    t.notOk(key in bare.body, `no ${key}`)
  }
})

t.test('tool choice and parallel calls are left out where there are no tools', async t => {
  const { body } = vllm.buildRequest({ ...request, tools: [] }, options)
  for (const key of ['tools', 'tool_choice', 'parallel_tool_calls']) t.notOk(key in body, `no ${key}`)
})

// Case reconstruction-12.
const shapes: Record<'vllm' | 'sglang', JsonObject> = {
  vllm: {
    prompt_token_ids: [1, 2, 3],
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'hi', reasoning: 'hm' },
        finish_reason: 'stop',
        token_ids: [10, 11, 99],
        logprobs: {
          content: [
            { token: 'h', logprob: -0.1 },
            { token: 'i', logprob: -0.2 },
            { token: '<e>', logprob: -0.3 },
          ],
        },
      },
    ],
  },
  sglang: {
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'hi', reasoning_content: 'hm' },
        finish_reason: 'stop',
        prompt_token_ids: [1, 2, 3],
        meta_info: {
          output_token_logprobs: [
            [-0.1, 10, 'h'],
            [-0.2, 11, 'i'],
            [-0.3, 99, '<e>'],
          ],
        },
        logprobs: {
          content: [
            { token: 'h', logprob: -0.1 },
            { token: 'i', logprob: -0.2 },
            { token: '<e>', logprob: -0.3 },
          ],
        },
      },
    ],
  },
}

t.test('one call in the shapes of two engines is read the same', async t => {
  const a = vllm.readAnswer(shapes.vllm)
  t.strictSame(a, sglang.readAnswer(shapes.sglang))
  t.strictSame(
    { ids: a.sampledIds, prompt: a.promptIds, logprobs: a.logprobs, content: a.content, reasoning: a.reasoning },
    {
      ids: Int32Array.of(10, 11, 99),
      prompt: Int32Array.of(1, 2, 3),
      logprobs: Float32Array.of(-0.1, -0.2, -0.3),
      content: 'hi',
      reasoning: 'hm',
    },
  )
})

t.test('SGLang: trimmed logprobs.content is not trusted, one incomplete entry spoils all logprobs', async t => {
  const choice = (meta: unknown): JsonObject =>
    ({
      choices: [
        { message: { content: 'x' }, finish_reason: 'stop', meta_info: meta, logprobs: { content: [{ logprob: -1 }] } },
      ],
    }) as JsonObject
  const whole = sglang.readAnswer(
    choice({
      output_token_logprobs: [
        [-1, 5, null],
        [-2, 9, null],
      ],
      weight_version: 'v7',
    }),
  )
  t.strictSame(
    [whole.sampledIds, whole.logprobs, whole.weightVersion],
    [Int32Array.of(5, 9), Float32Array.of(-1, -2), 'v7'],
  )
  const hole = sglang.readAnswer(
    choice({
      output_token_logprobs: [
        [-1, 5, null],
        [null, 9, null],
      ],
    }),
  )
  t.strictSame([hole.sampledIds, hole.logprobs], [Int32Array.of(5, 9), null])
})

t.test(
  'versions of the weights are read where an engine tells them, by text or number; half a list is none',
  async t => {
    const answer = (meta: JsonObject) =>
      sglang.readAnswer({ choices: [{ message: { content: 'x' }, finish_reason: 'stop', meta_info: meta }] })
    t.match(answer({ weight_version: 7 }), { weightVersion: '7', weightSpans: undefined })
    const spans = [
      { version: 7, start: 0, end: 3 },
      { version: 'v8', start: 3, end: 5 },
    ]
    t.strictSame(answer({ weight_versions: spans }).weightSpans, [
      { version: '7', start: 0, end: 3 },
      { version: 'v8', start: 3, end: 5 },
    ])
    t.equal(answer({ weight_versions: [...spans, { version: 9 }] }).weightSpans, undefined)
  },
)

t.test('streamed tool calls come in order, with their ids and raw argument text', async t => {
  const reader = vllm.streamReader()
  const chunk = (delta: JsonObject, rest: JsonObject = {}) =>
    reader.push(JSON.stringify({ choices: [{ index: 0, delta, ...rest }] }))
  const deltas = [
    ...chunk({ role: 'assistant', content: '' }, { token_ids: [1] }),
    ...chunk({ content: null }, { token_ids: [2, 3] }),
    ...chunk({ reasoning_content: 'hm' }),
    ...chunk({ tool_calls: [{ index: 0, id: 'c1', function: { arguments: '{"a":' } }] }),
    ...chunk({ tool_calls: [{ index: 0, function: { name: 'f' } }] }),
    ...chunk({ tool_calls: [{ index: 0, function: { arguments: ' 1}' } }] }),
    ...chunk({ tool_calls: [{ index: 1, id: 'c2', function: { name: 'g', arguments: '' } }] }),
    ...chunk({}, { finish_reason: 'tool_calls', token_ids: [99] }),
    ...reader.push('[DONE]'),
  ]
  t.strictSame(deltas, [
    { type: 'reasoning', text: 'hm' },
    { type: 'tool-call-start', index: 0, id: 'c1', name: 'f' },
    { type: 'tool-call-arguments', index: 0, text: '{"a":' },
    { type: 'tool-call-arguments', index: 0, text: ' 1}' },
    { type: 'tool-call-start', index: 1, id: 'c2', name: 'g' },
  ])
  const { answer, complete } = reader.answer()
  t.equal(complete, true)
  t.strictSame(answer.sampledIds, Int32Array.of(1, 2, 3, 99), 'chunks without text carry ids')
  t.strictSame(answer.toolCalls, [
    { id: 'c1', name: 'f', arguments: '{"a": 1}' },
    { id: 'c2', name: 'g', arguments: '' },
  ])
  t.equal(answer.content, null)
  t.equal(answer.logprobs, null)
})

t.test('a stream without a finish reason is incomplete, and an error event is an error', async t => {
  const reader = vllm.streamReader()
  reader.push('{"choices":[{"delta":{"content":"I"}}]}')
  t.equal(reader.answer().complete, false)
  t.strictSame(reader.push('{"error":{"message":"CUDA","code":500}}'), [
    { type: 'error', status: 502, message: 'CUDA' },
  ])
  t.match(reader.push('not json'), [{ type: 'error', status: 502 }])
})

t.test('an answer without choices or message is malformed', async t => {
  for (const body of [{}, { choices: [] }, { choices: [{ finish_reason: 'stop' }] }] as JsonObject[]) {
    for (const profile of [vllm, sglang, plain])
      t.throws(() => profile.readAnswer(body), { code: 'UPSTREAM_MALFORMED' })
  }
})

t.test('odd values of an engine are tolerated', async t => {
  const answer = vllm.readAnswer({
    usage: null,
    prompt_token_ids: null,
    choices: [
      {
        message: { content: null, tool_calls: [{ id: null, function: { name: 'f', arguments: { a: 1 } } }] },
        finish_reason: 'stop',
        token_ids: [1, -5],
        logprobs: null,
      },
    ],
  })
  t.match(answer, { usage: null, promptIds: null, sampledIds: null, logprobs: null, finish: 'tool_calls' })
  t.strictSame(answer.toolCalls, [{ id: '', name: 'f', arguments: '{"a":1}' }])
})

t.test('a prompt over the window is recognised in every form of the error', async t => {
  const text =
    "This model's maximum context length is 200000 tokens. However, you passed 250000 input tokens and requested 64 output tokens."
  const bodies = [
    JSON.stringify({ error: { message: text, type: 'BadRequestError', param: null, code: 400 } }),
    JSON.stringify({ object: 'error', message: text, type: 'BadRequestError', param: null, code: 400 }),
    JSON.stringify({
      object: 'error',
      message: "The input (250000 tokens) is longer than the model's context length (200000 tokens).",
    }),
    JSON.stringify({
      error: {
        code: 400,
        type: 'exceed_context_size_error',
        message: 'too much',
        n_prompt_tokens: 250000,
        n_ctx: 200000,
      },
    }),
  ]
  for (const body of bodies) {
    t.match(vllm.readError(400, {}, body), { status: 400, contextLength: { promptTokens: 250000, window: 200000 } })
  }
  t.strictSame(vllm.readError(500, { 'retry-after': '3' }, text), {
    status: 500,
    message: text,
    contextLength: null,
    retryAfter: '3',
  })
  t.match(vllm.readError(400, {}, '{"error":{"message":"bad tool"}}'), { message: 'bad tool', contextLength: null })
  t.match(vllm.readError(502, {}, '<html>bad gateway</html>'), { message: '<html>bad gateway</html>' })
  t.match(vllm.readError(503, {}, ''), { message: 'HTTP 503 without a body' })
  t.equal(vllm.readError(500, {}, 'x'.repeat(9999)).message.length, 2000)
})

t.test('counts, ids and text come from the tokenizer routes', async t => {
  t.match(vllm.countRequest(request, 'served', false), {
    path: '/tokenize',
    body: { model: 'served', add_generation_prompt: false, chat_template_kwargs: { enable_thinking: false } },
  })
  t.equal(vllm.readCount({ count: 12 }), 12)
  t.throws(() => vllm.readCount({ count: 'x' }), { code: 'UPSTREAM_MALFORMED' })
  t.strictSame(vllm.readTokens({ tokens: [1, 2] }), Int32Array.of(1, 2))
  t.strictSame(vllm.detokenizeRequest(Int32Array.of(1, 2), 'm'), {
    path: '/detokenize',
    body: { model: 'm', tokens: [1, 2] },
  })
  t.equal(vllm.readDetokenized({ prompt: 'ab' }), 'ab')
  t.equal(sglang.countRequest(request, 'm', true), null)
  t.equal(plain.detokenizeRequest(Int32Array.of(1), 'm'), null)
})

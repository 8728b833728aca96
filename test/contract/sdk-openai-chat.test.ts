// The official `openai` SDK against the gateway's Chat route: plain, streamed through its helpers, tools in several turns, structured output.

import t from 'tap'
import { PNG } from '../support/dialects.js'
import { ADD_PARAMETERS, add, addingPolicy, sdkWorld } from '../support/sdk.js'

const user = (content: string) => ({ role: 'user' as const, content })
const addTool = { name: 'add', parameters: ADD_PARAMETERS, description: 'adds' }

t.test('a plain call gives text, finish reason, usage and logprobs', async t => {
  const { openai, session, pair } = await sdkWorld(t, [{ pieces: ['Hel', 'lo'] }])
  const answer = await openai().chat.completions.create({ model: 'm', messages: [user('hi')], logprobs: true })
  t.match(answer, {
    object: 'chat.completion',
    model: 'm',
    choices: [{ message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 3, total_tokens: 6 },
  })
  t.equal(answer.choices[0]?.logprobs?.content?.length, 3, 'the harness asked for logprobs and has them')
  t.match(await pair.ledger(session), { calls: [{ delivered: 'yes', record: { notTrainable: null } }] })
})

t.test('chat.completions.stream accumulates text, calls and usage to the whole answer', async t => {
  const { openai } = await sdkWorld(t, addingPolicy)
  const stream = openai().chat.completions.stream({
    model: 'm',
    messages: [user('add')],
    tools: [{ type: 'function', function: addTool }],
    stream_options: { include_usage: true },
  })
  const deltas: string[] = []
  const finished: unknown[] = []
  stream.on('content.delta', ({ delta }) => deltas.push(delta))
  stream.on('tool_calls.function.arguments.done', call => finished.push([call.index, call.name, call.arguments]))
  const answer = await stream.finalChatCompletion()
  t.strictSame(deltas, ['Adding', ' both.'])
  t.strictSame(finished, [
    [0, 'add', '{"a": 1, "b": 2}'],
    [1, 'add', '{"a": 3, "b": 4}'],
  ])
  t.match(answer.choices[0], { finish_reason: 'tool_calls', message: { content: 'Adding both.' } })
  t.strictSame(
    answer.choices[0]?.message.tool_calls?.map(call => call.id),
    ['call_a', 'call_b'],
  )
  t.match(answer.usage, { prompt_tokens: 3, completion_tokens: 5 })
})

for (const stream of [false, true]) {
  t.test(`runTools takes a ${stream ? 'streamed ' : ''}loop of parallel calls to its end`, async t => {
    const { openai, asked, pair, session } = await sdkWorld(t, addingPolicy)
    const tool = {
      type: 'function' as const,
      function: {
        ...addTool,
        parse: (text: string) => JSON.parse(text) as { a: number; b: number },
        function: async (input: { a: number; b: number }) => String(add(input)),
      },
    }
    const body = { model: 'm', messages: [user('add 1, 2, 3, 4')], tools: [tool] }
    const runner = stream
      ? openai().chat.completions.runTools({ ...body, stream: true })
      : openai().chat.completions.runTools(body)
    t.equal(await runner.finalContent(), 'The sum is 10.')
    t.match(asked(1)['messages'], [
      user('add 1, 2, 3, 4'),
      { role: 'assistant', content: 'Adding both.', tool_calls: [{ id: 'call_a' }, { id: 'call_b' }] },
      { role: 'tool', tool_call_id: 'call_a', content: '3' },
      { role: 'tool', tool_call_id: 'call_b', content: '7' },
    ])
    t.match(JSON.stringify(asked(2)['messages']), /"10"/, 'the last result reached the policy')
    t.match(
      JSON.stringify(asked(1)['messages']),
      /Two sums\./,
      'reasoning that the SDK does not send back is there again',
    )
    const { calls } = await pair.ledger(session)
    t.strictSame(
      calls.map(({ record, delivered }) => [record.sequence, record.finish, delivered]),
      [
        [0, 'tool_calls', 'yes'],
        [1, 'tool_calls', 'yes'],
        [2, 'stop', 'yes'],
      ],
    )
  })
}

t.test('images and a JSON schema reach the engine; parse gives the object', async t => {
  const { openai, asked } = await sdkWorld(t, [{ pieces: ['{"color":', '"red"}'] }])
  const schema = {
    type: 'object',
    properties: { color: { type: 'string' } },
    required: ['color'],
    additionalProperties: false,
  }
  const url = `data:image/png;base64,${PNG}`
  const answer = await openai().chat.completions.parse({
    model: 'm',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'which color?' },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ],
    response_format: { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } },
  })
  t.equal(answer.choices[0]?.message.content, '{"color":"red"}')
  t.match(JSON.stringify(asked(0)['messages']), url.slice(0, 60))
  t.match(asked(0)['response_format'], { type: 'json_schema', json_schema: { schema } })
})

t.test('thinking comes as reasoning_content, whole and streamed', async t => {
  const { openai } = await sdkWorld(t, [{ reasoning: 'hm', pieces: ['ok'] }])
  const whole = await openai().chat.completions.create({ model: 'm', messages: [user('hi')] })
  t.match(whole.choices[0]?.message, { content: 'ok', reasoning_content: 'hm' })
  const stream = await openai().chat.completions.create({ model: 'm', messages: [user('hi')], stream: true })
  let thought = ''
  for await (const chunk of stream) {
    // Not in the SDK's types, as with every server that thinks.
    const delta = chunk.choices[0]?.delta as { reasoning_content?: string } | undefined
    thought += delta?.reasoning_content ?? ''
  }
  t.equal(thought, 'hm')
})

t.test('models are listed and told one by one', async t => {
  const models = {
    default: { upstream: 'up-0', adapter: null, trainable: true },
    small: { upstream: 'up-0', adapter: null, trainable: false },
  }
  const { openai } = await sdkWorld(t, [], { models })
  const names: string[] = []
  for await (const model of openai().models.list()) names.push(model.id)
  t.ok(names.includes('small'), names.join())
  t.match(await openai().models.retrieve('small'), { id: 'small', object: 'model' })
})

// The official `@anthropic-ai/sdk` against the gateway: plain, streamed through its helpers, tools in several turns, thinking, counts.

import type Anthropic from '@anthropic-ai/sdk'
import t from 'tap'
import { PNG } from '../support/dialects.js'
import { ADD_PARAMETERS, add, addingPolicy, sdkWorld } from '../support/sdk.js'

const user = (content: Anthropic.MessageParam['content']): Anthropic.MessageParam => ({ role: 'user', content })
const tools: Anthropic.Tool[] = [{ name: 'add', description: 'adds', input_schema: ADD_PARAMETERS }]

t.test('a plain call gives a text block, stop reason and usage', async t => {
  const { anthropic, pair, session } = await sdkWorld(t, [{ pieces: ['Hel', 'lo'] }])
  const answer = await anthropic().messages.create({ model: 'm', max_tokens: 100, messages: [user('hi')] })
  t.match(answer, {
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'Hello' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 3, output_tokens: 3 },
  })
  t.match(await pair.ledger(session), { calls: [{ delivered: 'yes', record: { notTrainable: null } }] })
})

t.test('messages.stream accumulates thinking, text and calls to the whole answer', async t => {
  const { anthropic } = await sdkWorld(t, addingPolicy.slice(0, 1))
  const body = {
    model: 'm',
    max_tokens: 4096,
    messages: [user('add')],
    tools,
    thinking: { type: 'enabled' as const, budget_tokens: 1024 },
  }
  const stream = anthropic().messages.stream(body)
  const texts: string[] = []
  const thoughts: string[] = []
  const blocks: string[] = []
  stream.on('text', delta => texts.push(delta))
  stream.on('thinking', delta => thoughts.push(delta))
  stream.on('contentBlock', block => blocks.push(block.type))
  const final = await stream.finalMessage()
  t.strictSame(texts, ['Adding', ' both.'])
  t.equal(thoughts.join(''), 'Two sums.')
  t.strictSame(blocks, ['thinking', 'text', 'tool_use', 'tool_use'])
  const whole = await anthropic().messages.create(body)
  const plain = (content: unknown) => JSON.parse(JSON.stringify(content))
  t.strictSame(plain(final.content), plain(whole.content))
  t.equal(final.stop_reason, 'tool_use')
  t.match(final.usage, { input_tokens: 3, output_tokens: 5 })
})

for (const stream of [false, true]) {
  t.test(`a ${stream ? 'streamed ' : ''}loop of parallel calls, thinking sent back`, async t => {
    const { anthropic, asked, pair, session } = await sdkWorld(t, addingPolicy)
    const messages = [user('add 1, 2, 3, 4')]
    let last: Anthropic.Message | null = null
    for (let turn = 0; turn < 3; turn += 1) {
      const body = { model: 'm', max_tokens: 4096, system: 'be exact', messages: [...messages], tools }
      last = stream ? await anthropic().messages.stream(body).finalMessage() : await anthropic().messages.create(body)
      messages.push({ role: 'assistant', content: last.content })
      const results = last.content.flatMap((block): Anthropic.ToolResultBlockParam[] =>
        block.type === 'tool_use'
          ? [
              {
                type: 'tool_result',
                tool_use_id: block.id,
                content: String(add(block.input as { a: number; b: number })),
              },
            ]
          : [],
      )
      if (results.length > 0) messages.push(user(results))
    }
    t.match(last?.content, [{ type: 'text', text: 'The sum is 10.' }])
    t.match(asked(0)['messages'], [{ role: 'system', content: 'be exact' }, { role: 'user' }])
    const sent = JSON.stringify(asked(1)['messages'])
    t.match(sent, /Two sums\./)
    t.match(sent, '{\\"a\\": 1, \\"b\\": 2}', 'the arguments as the policy wrote them, not as the SDK parsed them')
    const toolMessages = (asked(2)['messages'] as { role: string; content: unknown }[]).filter(
      ({ role }) => role === 'tool',
    )
    t.equal(toolMessages.length, 3)
    t.equal((await pair.ledger(session)).calls.length, 3)
  })
}

t.test('the beta tool runner drives the loop by itself, with the whole history in each request', async t => {
  const { anthropic, asked, engine } = await sdkWorld(t, addingPolicy)
  const runner = anthropic().beta.messages.toolRunner({
    model: 'm',
    max_tokens: 1000,
    messages: [{ role: 'user', content: 'add' }],
    tools: [
      {
        name: 'add',
        description: 'adds',
        input_schema: ADD_PARAMETERS,
        parse: input => input as { a: number; b: number },
        run: (input: { a: number; b: number }) => String(add(input)),
      },
    ],
  })
  const final = await runner
  t.match(final.content, [{ type: 'text', text: 'The sum is 10.' }])
  const roles = (asked(2)['messages'] as { role: string }[]).map(({ role }) => role)
  t.strictSame(roles, ['user', 'assistant', 'tool', 'tool', 'assistant', 'tool'])
  t.equal(engine.generations.length, 3, 'the refusal of its server-held thread reached no engine')
})

t.test('images and a schema reach the engine', async t => {
  const { anthropic, asked } = await sdkWorld(t, [{ pieces: ['{"color":"red"}'] }])
  const schema = { type: 'object' as const, properties: { color: { type: 'string' } }, required: ['color'] }
  const answer = await anthropic().messages.create({
    model: 'm',
    max_tokens: 100,
    messages: [
      user([
        { type: 'text', text: 'which color?' },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
      ]),
    ],
    output_config: { format: { type: 'json_schema', schema } },
  })
  t.match(answer.content, [{ type: 'text', text: '{"color":"red"}' }])
  t.match(JSON.stringify(asked(0)['messages']), `data:image/png;base64,${PNG}`.slice(0, 60))
  t.match(asked(0)['response_format'], { type: 'json_schema', json_schema: { schema } })
})

t.test('countTokens asks the engine’s own tokenizer and makes no call', async t => {
  const { anthropic, engine, pair, session } = await sdkWorld(t, [])
  t.strictSame(await anthropic().messages.countTokens({ model: 'm', messages: [user('hi')] }), { input_tokens: 6 })
  t.equal(engine.generations.length, 0)
  t.equal((await pair.ledger(session)).calls.length, 0)
})

t.test('models are listed page by page', async t => {
  const { anthropic } = await sdkWorld(t, [])
  const names: string[] = []
  for await (const model of anthropic().models.list()) names.push(model.id)
  t.ok(names.length > 0)
  t.match(await anthropic().models.retrieve(names[0] ?? ''), { id: names[0], type: 'model' })
})

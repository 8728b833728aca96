// The official `openai` SDK against the gateway's Responses route: plain, streamed, tools in several turns, thinking, structured output.

import type { ResponseInput, ResponseInputItem, ResponseStreamEvent } from 'openai/resources/responses/responses.js'
import t from 'tap'
import { PNG } from '../support/dialects.js'
import { ADD_PARAMETERS, add, addingPolicy, sdkWorld } from '../support/sdk.js'

const tools = [{ type: 'function' as const, name: 'add', parameters: ADD_PARAMETERS, strict: false }]

t.test('a plain call gives output_text and usage', async t => {
  const { openai, pair, session } = await sdkWorld(t, [{ pieces: ['Hel', 'lo'] }])
  const answer = await openai().responses.create({ model: 'm', input: 'hi', instructions: 'be short' })
  t.equal(answer.output_text, 'Hello')
  t.match(answer, { status: 'completed', usage: { input_tokens: 3, output_tokens: 3, total_tokens: 6 } })
  t.match(await pair.ledger(session), { calls: [{ delivered: 'yes', record: { dialect: 'openai_responses' } }] })
})

t.test('responses.stream accumulates to the same answer as a whole call, with numbered events', async t => {
  const { openai } = await sdkWorld(t, addingPolicy.slice(0, 1))
  const body = { model: 'm', input: 'add', tools }
  const stream = openai().responses.stream(body)
  const events: ResponseStreamEvent[] = []
  for await (const event of stream) events.push(event)
  t.strictSame(
    events.map(event => event.sequence_number),
    events.map((_, index) => index),
  )
  t.equal(events.at(-1)?.type, 'response.completed')
  const final = await stream.finalResponse()
  const whole = await openai().responses.create(body)
  const shape = (output: typeof whole.output) =>
    output.map(item => ({ ...item, id: null, ...('parsed_arguments' in item && { parsed_arguments: undefined }) }))
  t.match(shape(final.output), JSON.parse(JSON.stringify(shape(whole.output))))
  t.equal(final.output_text, 'Adding both.')
})

for (const stream of [false, true]) {
  t.test(`a ${stream ? 'streamed ' : ''}loop of parallel calls, history sent back item by item`, async t => {
    const { openai, asked, pair, session } = await sdkWorld(t, addingPolicy)
    const input: ResponseInput = [{ role: 'user', content: 'add 1, 2, 3, 4' }]
    let text = ''
    for (let turn = 0; turn < 3; turn += 1) {
      const body = { model: 'm', input: [...input], tools, include: ['reasoning.encrypted_content' as const] }
      const answer = stream
        ? await openai().responses.stream(body).finalResponse()
        : await openai().responses.create(body)
      text = answer.output_text
      for (const item of answer.output) {
        // The SDK's output and input types differ in statuses that these items never have.
        input.push(item as ResponseInputItem)
        if (item.type !== 'function_call') continue
        const output = String(add(JSON.parse(item.arguments) as { a: number; b: number }))
        input.push({ type: 'function_call_output', call_id: item.call_id, output })
      }
    }
    t.equal(text, 'The sum is 10.')
    t.match(JSON.stringify(asked(1)['messages']), /Two sums\./)
    const results = (asked(2)['messages'] as { role: string; content: unknown }[]).filter(({ role }) => role === 'tool')
    t.strictSame(
      results.map(({ content }) => content),
      ['3', '7', '10'],
    )
    t.equal((await pair.ledger(session)).calls.length, 3)
  })
}

t.test('thinking is a reasoning item; images and a schema reach the engine', async t => {
  const { openai, asked } = await sdkWorld(t, [{ reasoning: 'hm', pieces: ['{"color":"red"}'] }])
  const schema = { type: 'object', properties: { color: { type: 'string' } }, required: ['color'] }
  const url = `data:image/png;base64,${PNG}`
  const answer = await openai().responses.parse({
    model: 'm',
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'which color?' },
          { type: 'input_image', image_url: url, detail: 'auto' },
        ],
      },
    ],
    text: { format: { type: 'json_schema', name: 'answer', schema, strict: true } },
  })
  t.strictSame(
    answer.output.map(item => item.type),
    ['reasoning', 'message'],
  )
  t.match(JSON.stringify(answer.output[0]), /hm/)
  t.match(JSON.stringify(asked(0)['messages']), url.slice(0, 60))
  t.match(asked(0)['response_format'], { type: 'json_schema', json_schema: { schema } })
})

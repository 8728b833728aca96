// The official SDKs through the gateway to the embedded inference server: real template, real tokenizer, sampled ids that are what the text says.

import t from 'tap'
import { gatewayPlan, startPair } from '../support/pair.js'
import { sdkClients } from '../support/sdk.js'
import { post, simulate } from '../support/simulation.js'

t.test('four dialects, plain and streamed: every record holds the ids of what the SDK was given', async t => {
  const simulation = await simulate(t)
  const pair = await startPair(t, gatewayPlan([{ urls: [simulation.url], modelServed: 'policy' }]))
  const session = await pair.session('s-sdk')
  const clients = sdkClients(pair.url, session.key)
  const openai = clients.openai()
  const { models } = clients.google()
  const messages = [{ role: 'user' as const, content: 'Tell me about the number 7.' }]
  const chat = { model: 'policy', messages }
  const response = { model: 'policy', input: messages }
  const message = { model: 'policy', max_tokens: 400, messages }
  const content = { model: 'policy', contents: messages[0]?.content ?? '' }
  const textOf = (blocks: readonly { readonly type: string; readonly text?: string }[]) =>
    blocks.map(block => (block.type === 'text' ? block.text : '')).join('')

  const texts: (string | null | undefined)[] = []
  texts.push((await openai.chat.completions.create(chat)).choices[0]?.message.content)
  texts.push(await openai.chat.completions.stream(chat).finalContent())
  texts.push((await openai.responses.create(response)).output_text)
  texts.push((await openai.responses.stream(response).finalResponse()).output_text)
  texts.push(textOf((await clients.anthropic().messages.create(message)).content))
  texts.push(textOf((await clients.anthropic().messages.stream(message).finalMessage()).content))
  texts.push((await models.generateContent(content)).text)
  let streamed = ''
  for await (const chunk of await models.generateContentStream(content)) streamed += chunk.text ?? ''
  texts.push(streamed)

  const { calls } = await pair.ledger(session)
  t.equal(calls.length, 8)
  for (const [index, { record, delivered }] of calls.entries()) {
    const name = `${record.dialect} ${index}`
    t.match({ delivered, notTrainable: record.notTrainable }, { delivered: 'yes', notTrainable: null }, name)
    t.equal(record.logprobs?.length, record.sampledIds?.length, name)
    const answer = await post(simulation, '/detokenize', { tokens: [...(record.sampledIds ?? [])] })
    const { prompt } = (await answer.json()) as { prompt: string }
    const text = texts[index] ?? ''
    t.ok(text.length > 0 && prompt.includes(text.trim()), `${name}: the ids say what the SDK was given`)
  }
})

t.test('a tool loop driven by each SDK extends its prompt token for token', async t => {
  const simulation = await simulate(t)
  const pair = await startPair(t, gatewayPlan([{ urls: [simulation.url], modelServed: 'policy' }]))
  const text = 'Scenario: hello\nWrite hello.txt.'
  const parameters = { type: 'object' as const, properties: { command: { type: 'string' } }, required: ['command'] }
  const run = () => 'done'
  const loops = {
    async openai(key: string) {
      const runner = sdkClients(pair.url, key)
        .openai()
        .chat.completions.runTools({
          model: 'policy',
          messages: [{ role: 'user', content: text }],
          stream: true,
          tools: [
            {
              type: 'function',
              function: { name: 'shell', description: 'runs a command', parameters, parse: JSON.parse, function: run },
            },
          ],
        })
      await runner.done()
    },
    async anthropic(key: string) {
      await sdkClients(pair.url, key)
        .anthropic()
        .beta.messages.toolRunner({
          model: 'policy',
          max_tokens: 2_000,
          messages: [{ role: 'user', content: text }],
          tools: [{ name: 'shell', input_schema: parameters, parse: input => input, run }],
        })
    },
    async google(key: string) {
      const chat = sdkClients(pair.url, key)
        .google()
        .chats.create({
          model: 'policy',
          config: { tools: [{ functionDeclarations: [{ name: 'shell', parametersJsonSchema: parameters }] }] },
        })
      const first = await chat.sendMessage({ message: text })
      const message = (first.functionCalls ?? []).map(({ id, name }) => ({
        functionResponse: { ...(id && { id }), ...(name && { name }), response: { output: run() } },
      }))
      await chat.sendMessage({ message })
    },
  }
  for (const [name, loop] of Object.entries(loops)) {
    const session = await pair.session(name)
    await loop(session.key)
    const { calls } = await pair.ledger(session)
    t.strictSame(
      calls.map(({ record }) => record.finish),
      ['tool_calls', 'stop'],
      name,
    )
    const [first, second] = calls.map(({ record }) => record)
    const known = [...(first?.promptIds ?? []), ...(first?.sampledIds ?? [])]
    t.strictSame([...(second?.promptIds ?? [])].slice(0, known.length), known, `${name}: the join is exact`)
  }
})

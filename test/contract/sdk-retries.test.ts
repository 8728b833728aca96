// Retries and aborts as the official SDKs make them: one trained turn for a call that was made twice, and an engine let go at once.

import OpenAI from 'openai'
import t from 'tap'
import { type SdkWorld, sdkWorld } from '../support/sdk.js'

const never = new Promise<void>(() => {})
const messages = [{ role: 'user' as const, content: 'hi' }]

for (const [name, answer] of [
  ['429', { status: 429, headers: { 'retry-after': '0' } }],
  ['500', { status: 500, headers: { 'retry-after-ms': '1' } }],
] as const) {
  t.test(`an SDK that tries again after a ${name} makes one trained turn`, async t => {
    const world = await sdkWorld(t, [answer, { pieces: ['ok'] }, answer, { pieces: ['ok'] }])
    const chat = await world.openai({ retries: 2 }).chat.completions.create({ model: 'm', messages })
    t.equal(chat.choices[0]?.message.content, 'ok')
    const message = await world.anthropic({ retries: 2 }).messages.create({ model: 'm', max_tokens: 100, messages })
    t.match(message.content, [{ text: 'ok' }])
    const { calls, failed } = await world.pair.ledger(world.session)
    t.strictSame(
      calls.map(({ record }) => record.retryCount),
      [1, 1],
      'marked by x-stainless-retry-count',
    )
    t.strictSame(
      failed.map(({ status }) => status),
      [Number(name), Number(name)],
    )
  })
}

t.test('an SDK that runs out of patience and tries again makes one trained turn', async t => {
  const { pair, session, engine } = await sdkWorld(t, [{ pieces: ['late'], before: never }, { pieces: ['ok'] }])
  const client = new OpenAI({ baseURL: `${pair.url}/v1`, apiKey: session.key, maxRetries: 1, timeout: 1_000 })
  const answer = await client.chat.completions.create({ model: 'm', messages })
  t.equal(answer.choices[0]?.message.content, 'ok')
  t.equal(await (await engine.generation(0)).closedEarly, true, 'the first attempt was cancelled at the engine')
  t.match(await pair.ledger(session), { calls: [{ record: { retryCount: 1 } }], failed: [{ status: 499 }] })
})

/** Starts a stream, waits for the first text, and leaves. */
const aborts = {
  async 'openai chat'({ openai }: SdkWorld) {
    const stream = await openai().chat.completions.create({ model: 'm', messages, stream: true })
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content === 'one') break
  },
  async 'openai responses'({ openai }: SdkWorld) {
    const stream = openai().responses.stream({ model: 'm', input: 'hi' })
    for await (const event of stream) {
      if (event.type === 'response.output_text.delta') break
    }
    stream.abort()
  },
  async anthropic({ anthropic }: SdkWorld) {
    const stream = anthropic().messages.stream({ model: 'm', max_tokens: 100, messages })
    await new Promise(resolve => stream.once('text', resolve))
    const ended = stream.finalMessage().catch(() => {})
    stream.abort()
    await ended
  },
  async google({ google }: SdkWorld) {
    const abort = new AbortController()
    const stream = await google().models.generateContentStream({
      model: 'm',
      contents: 'hi',
      config: { abortSignal: abort.signal },
    })
    await stream.next()
    abort.abort()
    await stream.next().catch(() => {})
  },
}

t.test('an abort in mid-stream cancels the call at the engine, whichever SDK makes it', async t => {
  const world = await sdkWorld(t, [{ pieces: ['one', 'two'], pause: { atChunk: 1, until: never } }])
  for (const [index, [client, leave]] of Object.entries(aborts).entries()) {
    await leave(world)
    t.equal(await (await world.engine.generation(index)).closedEarly, true, client)
  }
  const { calls, failed } = await world.pair.ledger(world.session)
  t.strictSame(calls, [])
  t.strictSame(
    failed.map(({ status, abortedTokens }) => [status, abortedTokens]),
    Object.keys(aborts).map(() => [499, 1]),
  )
})

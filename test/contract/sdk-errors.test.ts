// What the official SDKs make of the gateway's refusals: each error is of the SDK's own class, with the words that clients look for.

import Anthropic from '@anthropic-ai/sdk'
import { ApiError } from '@google/genai'
import OpenAI from 'openai'
import t from 'tap'
import type { ScriptedAnswer } from '../support/scripted-engine.js'
import { type SdkWorld, sdkWorld, type WorldOptions } from '../support/sdk.js'

interface CallOptions {
  readonly key?: string
  readonly stream?: boolean
  readonly text?: string
}

/** One call of each SDK; a stream is read to its end. */
const calls = {
  async 'openai chat'({ openai }: SdkWorld, { key, stream = false, text = 'hi' }: CallOptions) {
    const client = openai({ ...(key && { key }) })
    const messages = [{ role: 'user' as const, content: text }]
    if (!stream) return client.chat.completions.create({ model: 'm', messages })
    return client.chat.completions.stream({ model: 'm', messages }).finalChatCompletion()
  },
  async 'openai responses'({ openai }: SdkWorld, { key, stream = false, text = 'hi' }: CallOptions) {
    const client = openai({ ...(key && { key }) })
    if (!stream) return client.responses.create({ model: 'm', input: text })
    return client.responses.stream({ model: 'm', input: text }).finalResponse()
  },
  async anthropic({ anthropic }: SdkWorld, { key, stream = false, text = 'hi' }: CallOptions) {
    const client = anthropic({ ...(key && { key }) })
    const body = { model: 'm', max_tokens: 100, messages: [{ role: 'user' as const, content: text }] }
    return stream ? client.messages.stream(body).finalMessage() : client.messages.create(body)
  },
  async google({ google }: SdkWorld, { key, stream = false, text = 'hi' }: CallOptions) {
    const { models } = google({ ...(key && { key }) })
    if (!stream) return models.generateContent({ model: 'm', contents: text })
    const chunks: unknown[] = []
    for await (const chunk of await models.generateContentStream({ model: 'm', contents: text })) chunks.push(chunk)
    return chunks
  },
}
type Client = keyof typeof calls

interface Case {
  readonly name: string
  readonly script?: readonly ScriptedAnswer[]
  readonly world?: WorldOptions
  readonly call?: CallOptions
  readonly before?: (world: SdkWorld) => Promise<unknown>
  readonly status: number
  readonly openai: new (...args: never[]) => Error
  readonly anthropic: new (...args: never[]) => Error
  readonly says: Partial<Record<Client, RegExp>>
}

const overLong = {
  object: 'error',
  message:
    "This model's maximum context length is 4096 tokens. However, you requested 5100 tokens (5000 in the messages, 100 in the completion). Please reduce the length of the messages or completion.",
  type: 'BadRequestError',
  param: null,
  code: 400,
}

const cases: readonly Case[] = [
  {
    name: '401 for a wrong key',
    call: { key: 'sk-wrong' },
    status: 401,
    openai: OpenAI.AuthenticationError,
    anthropic: Anthropic.AuthenticationError,
    says: { 'openai chat': /API key is not known/, google: /UNAUTHENTICATED/ },
  },
  {
    name: '403 once the session has ended',
    before: ({ pair, session }) => pair.put(session, { state: 'ended' }),
    status: 403,
    openai: OpenAI.PermissionDeniedError,
    anthropic: Anthropic.PermissionDeniedError,
    says: { anthropic: /permission_error/, google: /PERMISSION_DENIED/ },
  },
  {
    name: '413 for a body over the limit',
    world: { limits: { bodyBytes: 1_000 } },
    call: { text: 'x'.repeat(2_000) },
    status: 413,
    openai: OpenAI.APIError,
    anthropic: Anthropic.APIError,
    says: { anthropic: /request_too_large/, 'openai responses': /limit of 1000 bytes/ },
  },
  {
    name: '429 of the engine',
    script: [{ status: 429, error: { error: { message: 'slow down' } } }],
    status: 429,
    openai: OpenAI.RateLimitError,
    anthropic: Anthropic.RateLimitError,
    says: { 'openai chat': /slow down/, anthropic: /rate_limit_error/, google: /RESOURCE_EXHAUSTED/ },
  },
  {
    name: '500 of the engine',
    script: [{ status: 500, error: { error: { message: 'out of memory' } } }],
    status: 500,
    openai: OpenAI.InternalServerError,
    anthropic: Anthropic.InternalServerError,
    says: { 'openai responses': /out of memory/, anthropic: /api_error/, google: /INTERNAL/ },
  },
  {
    name: '400 for a prompt over the window, in the words that make a harness compact',
    script: [{ status: 400, error: overLong }],
    status: 400,
    openai: OpenAI.BadRequestError,
    anthropic: Anthropic.BadRequestError,
    says: {
      'openai chat': /maximum context length/,
      'openai responses': /maximum context length/,
      anthropic: /prompt is too long/,
      google: /exceeds the maximum number of tokens allowed/,
    },
  },
]

/** null = there was none. */
const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => null,
    (cause: unknown) => cause,
  )

for (const {
  name,
  script = [{ pieces: ['ok'] }],
  world: options = {},
  call = {},
  before,
  status,
  ...wanted
} of cases) {
  t.test(name, async t => {
    const world = await sdkWorld(t, script, options)
    await before?.(world)
    for (const [client, ask] of Object.entries(calls)) {
      for (const stream of [false, true]) {
        const how = `${client}${stream ? ', streamed' : ''}`
        const error = await failureOf(ask(world, { ...call, stream }))
        const type = client === 'google' ? ApiError : client === 'anthropic' ? wanted.anthropic : wanted.openai
        t.ok(error instanceof type, `${how}: ${String(error)}`)
        t.equal((error as { status?: unknown }).status, status, how)
        const says = wanted.says[client as Client]
        if (says) t.match((error as Error).message, says, how)
      }
    }
  })
}

t.test('context length has the code by which OpenAI’s clients tell it', async t => {
  const world = await sdkWorld(t, [{ status: 400, error: overLong }])
  for (const client of ['openai chat', 'openai responses'] as const) {
    const error = await failureOf(calls[client](world, {}))
    t.match(error, { code: 'context_length_exceeded', type: 'invalid_request_error' })
  }
})

t.test('400 for a field of the wrong kind names the field', async t => {
  const { openai, anthropic, engine } = await sdkWorld(t, [])
  // Not what the SDKs' types allow: that is the point.
  const wrong = 'no list' as unknown as []
  const chat = await failureOf(openai().chat.completions.create({ model: 'm', messages: wrong }))
  t.ok(chat instanceof OpenAI.BadRequestError)
  t.match(chat, { message: /messages/ })
  const message = await failureOf(anthropic().messages.create({ model: 'm', max_tokens: 10, messages: wrong }))
  t.ok(message instanceof Anthropic.BadRequestError)
  t.match(message, { message: /messages/ })
  t.equal(engine.generations.length, 0)
})

t.test('404 for what is no route', async t => {
  const { openai, anthropic } = await sdkWorld(t, [])
  t.ok((await failureOf(openai().files.list())) instanceof OpenAI.NotFoundError)
  t.ok((await failureOf(anthropic().get('/v1/nowhere'))) instanceof Anthropic.NotFoundError)
})

t.test('an engine that fails in mid-stream is an error in the SDK, never half an answer', async t => {
  const world = await sdkWorld(t, [{ pieces: ['one', 'two', 'three'], errorAfter: 2 }])
  const types = { 'openai chat': OpenAI.APIError, anthropic: Anthropic.APIError, google: ApiError }
  for (const [client, type] of Object.entries(types)) {
    const error = await failureOf(calls[client as Client](world, { stream: true }))
    t.ok(error instanceof type, `${client}: ${String(error)}`)
    t.match(error, { message: /engine failed/ }, client)
  }
  // The accumulator of Responses has a failed response in place of an error, as with the API itself.
  const stream = world.openai().responses.stream({ model: 'm', input: 'hi' })
  const last = await stream.finalResponse().catch((cause: unknown) => cause)
  t.match(JSON.stringify(last) + String(last), /engine failed/)
  t.notMatch(last, { status: 'completed' })
  t.equal((await world.pair.ledger(world.session)).calls.length, 0)
})

t.test('a conversation held by the server is refused, so that no turn is sampled without its history', async t => {
  const { anthropic, engine } = await sdkWorld(t, [])
  for (const thread of [{ type: 'create' }, { type: 'continue', previous_message_id: 'msg_1' }] as const) {
    const error = await failureOf(
      anthropic().beta.messages.create({
        model: 'm',
        max_tokens: 10,
        messages: [{ role: 'user', content: 'hi' }],
        thread,
      }),
    )
    t.ok(error instanceof Anthropic.ThreadUnsupportedRequestError)
    t.match(error, { status: 400, message: /thread: conversations are not held here/ })
  }
  t.equal(engine.generations.length, 0)
})

// What goes wrong at the engine: the harness gets its own API's words, the ledger a failed call, never half a turn.

import t from 'tap'
import { dialectCalls, gatewayPlan, startPair } from '../../../support/pair.js'
import { type ScriptedAnswer, scriptedEngine } from '../../../support/scripted-engine.js'

const chat = dialectCalls.openai_chat

async function world(t: Parameters<typeof startPair>[0], script: readonly ScriptedAnswer[]) {
  const engine = await scriptedEngine(t, script)
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
  return { engine, pair, session: await pair.session('s-a') }
}

t.test('capture-4: an engine error and then a good answer: one turn, the failure counted with its status', async t => {
  const { pair, session } = await world(t, [
    { status: 500, error: { error: { message: 'CUDA out of memory', type: 'InternalServerError', code: 500 } } },
    { pieces: ['fine'] },
  ])
  const first = await pair.post(chat.path, chat.body, { key: session.key })
  t.equal(first.status, 500)
  t.match(await first.json(), { error: { message: 'CUDA out of memory' } })
  t.equal((await pair.post(chat.path, chat.body, { key: session.key })).status, 200)
  t.match(await pair.ledger(session), {
    calls: [{ record: { sequence: 1, notTrainable: null }, delivered: 'yes' }],
    failed: [{ sequence: 0, status: 500, error: 'CUDA out of memory', abortedTokens: 0 }],
  })
})

t.test('a prompt over the window is said in the dialect’s own words, streaming or not, nested or flat', async t => {
  const message =
    "This model's maximum context length is 200000 tokens. However, you passed 250000 input tokens and requested 64 output tokens."
  const nested = { error: { message, type: 'BadRequestError', param: null, code: 400 } }
  const flat = { object: 'error', message, type: 'BadRequestError', param: null, code: 400 }
  const wanted = {
    anthropic_messages: {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 250000 tokens > 200000 maximum' },
    },
    openai_chat: { error: { type: 'invalid_request_error', code: 'context_length_exceeded' } },
    openai_responses: { error: { type: 'invalid_request_error', code: 'context_length_exceeded' } },
    google_generate: { error: { code: 400, status: 'INVALID_ARGUMENT' } },
  }
  for (const error of [nested, flat]) {
    const { pair, session } = await world(t, [{ status: 400, error }])
    for (const [dialect, call] of Object.entries(dialectCalls)) {
      for (const [path, body] of [
        [call.path, call.body],
        [call.streamPath, { ...call.body, ...call.streamBody }],
      ] as const) {
        const response = await pair.post(path, body, { key: session.key })
        t.equal(response.status, 400)
        t.match(response.headers.get('content-type'), /^application\/json/)
        t.match(await response.json(), wanted[dialect as keyof typeof wanted])
      }
    }
    const { calls, failed } = await pair.ledger(session)
    t.equal(calls.length, 0)
    t.strictSame(
      failed.map(call => call.status),
      Array(8).fill(400),
    )
  }
})

t.test(
  'a known window is kept before the engine is asked: max_tokens clamped, an over-long prompt refused',
  async t => {
    const engine = await scriptedEngine(t, [{ pieces: ['x'] }])
    // The script's template makes 4 tokens of a message, and 2 to speak.
    const pair = await startPair(t, gatewayPlan([{ urls: [engine.url], contextWindow: 20 }]))
    const session = await pair.session('s-a')
    const ask = (messages: number, fields: object) =>
      pair.post(
        '/v1/messages',
        {
          model: 'm',
          messages: Array.from({ length: messages }, (_, index) => ({
            role: index % 2 === 0 ? 'user' : 'assistant',
            content: `text ${index}`,
          })),
          ...fields,
        },
        { key: session.key },
      )
    t.equal((await ask(1, { max_tokens: 128_000 })).status, 200)
    t.equal(engine.generations[0]?.body['max_tokens'], 14)
    t.equal((await ask(1, { max_tokens: 5 })).status, 200)
    t.equal(engine.generations[1]?.body['max_tokens'], 5)
    const refused = await ask(5, { max_tokens: 10 })
    t.equal(refused.status, 400)
    t.match(await refused.json(), { error: { message: 'prompt is too long: 22 tokens > 20 maximum' } })
    t.equal(engine.generations.length, 2)
    const { calls, failed } = await pair.ledger(session)
    t.match(calls, [
      { record: { rulesApplied: ['max_tokens_clamped'], sampling: { maxTokens: 14 } } },
      { record: { rulesApplied: [], sampling: { maxTokens: 5 } } },
    ])
    t.match(failed, [{ status: 400 }])
  },
)

t.test(
  'an engine that breaks in mid-stream ends the stream with the dialect’s error and no terminal event',
  async t => {
    for (const broken of [{ cutAfter: 2 }, { errorAfter: 2 }, { finish: null }]) {
      const { pair, session } = await world(t, [{ pieces: ['one', 'two', 'three'], ...broken }])
      const post = async (call: (typeof dialectCalls)[keyof typeof dialectCalls]) =>
        (await pair.post(call.streamPath, { ...call.body, ...call.streamBody }, { key: session.key })).text()
      const anthropic = await post(dialectCalls.anthropic_messages)
      t.match(anthropic, /two/)
      t.match(anthropic, /event: error\ndata: \{"type":"error","error":\{/)
      t.notMatch(anthropic, /message_stop/)
      // Chat harnesses try again after a broken connection, not after an error that the stream tells.
      if ('errorAfter' in broken) t.match(await post(chat), /"error":/)
      else await t.rejects(post(chat), 'the connection breaks')
      const responses = await post(dialectCalls.openai_responses)
      t.notMatch(responses, /response\.completed/)
      const google = await post(dialectCalls.google_generate)
      t.match(google, /"error":/)
      const { calls, failed } = await pair.ledger(session)
      t.equal(calls.length, 0)
      t.equal(failed.length, 4)
      for (const call of failed) t.ok(call.abortedTokens >= 2, 'ids received so far are counted')
    }
  },
)

t.test('an aborted generation is made again, unseen by the harness, at most three times', async t => {
  const aborted: ScriptedAnswer = { finish: 'abort', ids: [10, 11] }
  for (const stream of [false, true]) {
    const { engine, pair, session } = await world(t, [aborted, aborted, aborted, { pieces: ['done'] }])
    const response = await pair.post(chat.path, { ...chat.body, stream }, { key: session.key })
    t.match(await response.text(), /done/)
    t.equal(engine.generations.length, 4)
    t.match(await pair.ledger(session), {
      calls: [{ record: { finish: 'stop' }, delivered: 'yes' }],
      failed: [1, 2, 3].map(() => ({ abortedTokens: 2, sequence: 0 })),
    })
  }
  const { engine, pair, session } = await world(t, [aborted])
  const response = await pair.post(chat.path, chat.body, { key: session.key })
  t.equal(response.status, 503)
  t.equal(engine.generations.length, 4)
  t.match(await pair.ledger(session), { calls: [], failed: { length: 4 } })
})

t.test('an abort after text was seen cannot be hidden', async t => {
  const { engine, pair, session } = await world(t, [{ pieces: ['seen'], finish: 'abort' }])
  const response = await pair.post(
    '/v1/messages',
    { ...dialectCalls.anthropic_messages.body, stream: true },
    {
      key: session.key,
    },
  )
  t.match(await response.text(), /seen[\s\S]*event: error/)
  t.equal(engine.generations.length, 1)
  t.match(await pair.ledger(session), { calls: [], failed: [{ abortedTokens: 2 }] })
})

t.test('status and Retry-After of the engine are kept; its own credentials are not the harness’s fault', async t => {
  const { pair, session } = await world(t, [
    { status: 429, error: { error: { message: 'slow down' } }, headers: { 'retry-after': '7' } },
    { status: 503, error: 'overloaded' },
    { status: 401, error: { error: { message: 'bad engine key' } } },
  ])
  const post = () => pair.post(chat.path, chat.body, { key: session.key })
  const limited = await post()
  t.strictSame([limited.status, limited.headers.get('retry-after')], [429, '7'])
  t.equal((await post()).status, 503)
  const ours = await post()
  t.equal(ours.status, 502)
  t.match(await ours.json(), { error: { message: 'the inference server refused the gateway' } })
  t.strictSame(
    (await pair.ledger(session)).failed.map(call => call.status),
    [429, 503, 401],
  )
})

t.test('an answer that is none is a 502 in the dialect’s shape', async t => {
  for (const [name, engine] of [
    ['no JSON', await scriptedEngine(t, [{ status: 201, error: 'not json' }])],
    ['no choices', await scriptedEngine(t, [{ status: 201, error: { id: 'x' } }])],
  ] as const) {
    const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
    const session = await pair.session('s-a')
    const response = await pair.post('/v1/messages', dialectCalls.anthropic_messages.body, { key: session.key })
    t.equal(response.status, 502, name)
    t.match(await response.json(), { type: 'error', error: { message: /answer of the inference server/ } })
    t.match(await pair.ledger(session), { calls: [], failed: [{ status: 502 }] })
  }
})

t.test('a replica that cannot be reached is passed over, and the attempt is recorded', async t => {
  const gone = await scriptedEngine(t)
  await gone.close()
  const engine = await scriptedEngine(t, [{ pieces: ['here'] }])
  const pair = await startPair(t, gatewayPlan([{ urls: [gone.url, engine.url] }]))
  const homes = new Set<number>()
  for (let index = 0; index < 12; index += 1) {
    const session = await pair.session(`s-${index}`)
    const response = await pair.post(chat.path, chat.body, { key: session.key })
    t.equal(response.status, 200)
    const { calls, failed } = await pair.ledger(session)
    t.equal(calls[0]?.record.replica, engine.url)
    homes.add(failed.length)
    for (const call of failed) t.match(call, { status: 502, error: /cannot be reached/ })
  }
  t.strictSame([...homes].sort(), [0, 1], 'some sessions had their home on the one that is gone')

  const nobody = await startPair(t, gatewayPlan([{ urls: [gone.url] }]))
  const session = await nobody.session('s-a')
  t.equal((await nobody.post(chat.path, chat.body, { key: session.key })).status, 502)
})

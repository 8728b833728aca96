// The gateway pair over real HTTP, in one thread: each call that a harness makes is answered in its own shape and captured.

import { gzipSync } from 'node:zlib'
import t from 'tap'
import { wholeOriginal } from '../../../../src/ledger/original-request.js'
import { dialectCalls, gatewayPlan, readerOf, startPair } from '../../../support/pair.js'
import { scriptedEngine } from '../../../support/scripted-engine.js'

const entries = Object.entries(dialectCalls)

t.test('every dialect is answered in its own shape and captured with ids and logprobs, streaming and not', async t => {
  const engine = await scriptedEngine(t, [{ reasoning: 'hm', pieces: ['na\u00efve', ' 🙂'] }])
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
  for (const [dialect, call] of entries) {
    const session = await pair.session(dialect)
    const whole = await pair.post(call.path, call.body, { key: session.key })
    t.equal(whole.status, 200, dialect)
    const text = await whole.text()
    t.notMatch(text, /token_ids|meta_info|-0\.5/, 'no capture fields')
    if (dialect !== 'google_generate' && dialect !== 'openai_responses' && dialect !== 'anthropic_messages') {
      t.equal(call.text(JSON.parse(text)), 'naïve 🙂')
    } else t.match(text, 'naïve 🙂')
    const streamed = await pair.post(call.streamPath, { ...call.body, ...call.streamBody }, { key: session.key })
    t.equal(streamed.status, 200)
    t.match(streamed.headers.get('content-type'), /text\/event-stream/)
    const events = await streamed.text()
    t.match(events, 'naïve')
    t.notMatch(events, /token_ids|"logprob"/)
    const ledger = await pair.ledger(session)
    t.equal(ledger.calls.length, 2)
    t.strictSame(
      ledger.calls.map(({ record, delivered }) => [record.sequence, record.dialect, delivered]),
      [
        [0, dialect, 'yes'],
        [1, dialect, 'yes'],
      ],
    )
    for (const { record } of ledger.calls) {
      t.match(record, {
        promptIds: Int32Array.of(1, 2, 3),
        notTrainable: null,
        finish: 'stop',
        engineFinish: 'stop',
        modelUsed: 'served',
        upstream: 'up-0',
        replica: engine.url,
        generationPromptLength: 2,
        endTokenId: 99,
        sampling: { temperature: 1, topP: 1, topK: -1, minP: 0 },
      })
      t.equal(record.logprobs?.length, record.sampledIds?.length)
      t.match(record.response, { choices: [{ message: { content: 'naïve 🙂', reasoning_content: 'hm' } }] })
      const original = wholeOriginal(record, id => ledger.calls.find(other => other.record.completionId === id)?.record)
      t.match(JSON.parse(original ?? ''), call.body)
    }
    t.match(await session.probe.expectMessage('completion-recorded', 1000), { calls: 1 })
    t.match(await session.probe.expectMessage('completion-recorded', 1000), { calls: 2 })
  }
  t.strictSame(pair.deadLetters, [])
})

t.test('without a key or with an unknown one nothing reaches the engine and nothing is recorded', async t => {
  const engine = await scriptedEngine(t)
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
  const session = await pair.session('s-a')
  const shapes: Record<string, object> = {
    openai_chat: { error: { type: 'invalid_request_error', code: 'invalid_api_key' } },
    openai_responses: { error: { type: 'invalid_request_error', code: 'invalid_api_key' } },
    anthropic_messages: { type: 'error', error: { type: 'authentication_error' } },
    google_generate: { error: { code: 401, status: 'UNAUTHENTICATED' } },
  }
  for (const [dialect, call] of entries) {
    for (const options of [
      {},
      { key: 'nope' },
      { key: session.sessionId },
      { headers: { 'x-api-key': 'nope' } },
      { headers: { 'x-session-id': session.sessionId } },
    ]) {
      for (const [path, body] of [
        [call.path, call.body],
        [call.streamPath, { ...call.body, ...call.streamBody }],
      ] as const) {
        const response = await pair.post(path, body, options)
        t.equal(response.status, 401)
        t.equal(response.headers.get('www-authenticate'), 'Bearer')
        t.match(response.headers.get('content-type'), /^application\/json/)
        t.match(await response.json(), shapes[dialect] ?? {})
      }
    }
  }
  t.equal(engine.generations.length, 0)
  t.match(await pair.ledger(session), { calls: [], failed: [] })
})

t.test('a session that is not running is refused by its state', async t => {
  const engine = await scriptedEngine(t)
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
  const session = await pair.session('s-a', { state: 'registered' })
  const { path, body } = dialectCalls.anthropic_messages
  for (const state of ['registered', 'ended'] as const) {
    await pair.put(session, { state })
    const response = await pair.post(path, body, { key: session.key })
    t.equal(response.status, 403)
    t.match(await response.json(), {
      type: 'error',
      error: { type: 'permission_error', message: new RegExp(state) },
    })
  }
  await pair.put(session, { state: 'running' })
  t.equal((await pair.post(path, body, { key: session.key })).status, 200)
  pair.proxy.tell({ type: 'forget-session', sessionId: session.sessionId })
  t.equal((await pair.post(path, body, { key: session.key })).status, 401, 'a forgotten key is unknown')
  t.equal(engine.generations.length, 1)
})

t.test('the key decides whose call it is, whatever else the request names', async t => {
  const engine = await scriptedEngine(t)
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
  const a = await pair.session('s-a')
  const b = await pair.session('s-b')
  const response = await pair.post(
    '/v1/chat/completions?session_id=s-b',
    { ...dialectCalls.openai_chat.body, _proxy_session_id: 's-b' },
    { key: a.key, headers: { 'x-session-id': 's-b' } },
  )
  t.equal(response.status, 200)
  t.equal((await pair.ledger(a)).calls.length, 1)
  t.equal((await pair.ledger(b)).calls.length, 0)
  const [asked] = engine.generations
  t.equal(asked?.headers['x-session-id'], 's-a', 'the affinity key is ours')
  t.notMatch(JSON.stringify(asked?.body), 's-b')
})

t.test('unknown paths are 404 in the nearest shape and never a generation', async t => {
  const engine = await scriptedEngine(t)
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
  const session = await pair.session('s-a')
  for (const path of ['/v1/embeddings', '/anything', '/v1/messages/batches', '/v1/responses/compact']) {
    const response = await pair.post(path, dialectCalls.openai_chat.body, { key: session.key })
    t.equal(response.status, 404, path)
    t.type(((await response.json()) as { error: unknown }).error, 'object')
  }
  for (const [method, path] of [
    ['GET', '/rollout/status'],
    ['DELETE', `/sessions/${session.sessionId}`],
    ['POST', '/admin/inference/pause'],
  ] as const) {
    const headers = { authorization: `Bearer ${session.key}` }
    const control = await fetch(pair.url + path, { method, headers })
    t.equal(control.status, 404, `${path} is not served on a model port`)
  }
  t.equal((await fetch(`${pair.url}/`, { method: 'HEAD' })).status, 200, 'a harness that knocks gets an answer')
  t.equal((await fetch(`${pair.url}/api/hello`)).status, 200)
  t.equal(engine.generations.length, 0)
})

t.test('capture-6: bodies that cannot be read are refused in the dialect’s shape, large ones are served', async t => {
  const engine = await scriptedEngine(t)
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }], { limits: { bodyBytes: 24_000_000 } }))
  const session = await pair.session('s-a')
  const { path, body } = dialectCalls.anthropic_messages
  const image = (bytes: number) => ({
    ...body,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'see' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(bytes) } },
        ],
      },
    ],
  })
  const key = session.key
  t.equal((await pair.post(path, image(20_000_000), { key })).status, 200)
  const large = await pair.post(path, image(25_000_000), { key })
  t.equal(large.status, 413)
  t.match(await large.json(), { type: 'error', error: { message: /24000000/ } })
  const zipped = await fetch(pair.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-encoding': 'gzip' },
    body: Uint8Array.from(gzipSync(JSON.stringify(body))),
  })
  t.equal(zipped.status, 200)
  const compress = await pair.post(path, body, { key, headers: { 'content-encoding': 'compress' } })
  t.equal(compress.status, 415)
  for (const broken of ['{', '[]', '"text"']) {
    const response = await pair.post(path, broken, { key })
    t.equal(response.status, 400)
    t.match(await response.json(), { type: 'error', error: { type: 'invalid_request_error' } })
  }
  const refused = await pair.post('/v1/chat/completions', { ...dialectCalls.openai_chat.body, n: 2 }, { key })
  t.equal(refused.status, 400)
  t.match(await refused.json(), { error: { type: 'invalid_request_error', message: /\bn\b/ } })
  t.equal(engine.generations.length, 2)
  t.match(await pair.ledger(session), { failed: [] })
})

t.test('counts are exact, answered once for equal bodies, and recorded nowhere', async t => {
  const engine = await scriptedEngine(t)
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
  const session = await pair.session('s-a')
  const key = session.key
  const { body } = dialectCalls.anthropic_messages
  const count = await pair.post('/v1/messages/count_tokens', body, { key })
  t.strictSame([count.status, await count.json()], [200, { input_tokens: 6 }])
  await (await pair.post('/v1/messages/count_tokens', body, { key })).text()
  t.equal(engine.tokenizations.length, 1)
  t.equal(engine.tokenizations[0]?.body['model'], 'served')
  const google = await pair.post('/v1beta/models/m:countTokens', dialectCalls.google_generate.body, { key })
  t.match(await google.json(), { totalTokens: 6 })
  t.equal((await pair.post('/v1/messages/count_tokens', body)).status, 401)
  t.equal(engine.generations.length, 0)
  t.match(await pair.ledger(session), { calls: [], failed: [] })
})

t.test('model lists name the aliases, in the shape of the client', async t => {
  const engine = await scriptedEngine(t)
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
  const session = await pair.session('s-a', { models: { 'small-model': 'default', 'gpt-*': 'default' } })
  const get = (path: string, headers: Record<string, string>) => fetch(pair.url + path, { headers })
  const openai = await get('/v1/models', { authorization: `Bearer ${session.key}` })
  t.match(await openai.json(), { data: [{ id: 'default' }, { id: 'small-model' }] })
  const google = await get('/v1beta/models', { 'x-goog-api-key': session.key })
  t.match(await google.json(), { models: [{ name: /default/ }, { name: /small-model/ }] })
  t.equal((await get('/v1/models', {})).status, 401)
})

t.test('models are mapped: exact names, globs, aliases, and the default', async t => {
  const main = await scriptedEngine(t)
  const side = await scriptedEngine(t)
  const plan = gatewayPlan(
    [
      { id: 'main', urls: [main.url] },
      { id: 'side', urls: [`${side.url}/v1`], profile: 'openai_compatible', modelServed: 'tiny' },
    ],
    {
      models: {
        default: { upstream: 'main', adapter: 'lora-7', trainable: true },
        frozen: { upstream: 'main', adapter: null, trainable: false },
        helper: { upstream: 'side', adapter: null, trainable: false },
      },
    },
  )
  const pair = await startPair(t, plan)
  const session = await pair.session('s-a', { models: { 'org/gpt-*-nano': 'helper', title: 'frozen' } })
  const ask = async (model: string) => {
    const response = await pair.post(
      '/v1/chat/completions',
      { ...dialectCalls.openai_chat.body, model },
      { key: session.key },
    )
    return ((await response.json()) as { model: string }).model
  }
  for (const name of ['org/gpt-5/x-nano', 'title', 'helper', 'whatever'])
    t.equal(await ask(name), name, 'the name asked for comes back')
  const { calls } = await pair.ledger(session)
  t.strictSame(
    calls.map(({ record }) => [record.modelRequested, record.upstream, record.modelUsed, record.notTrainable]),
    [
      ['org/gpt-5/x-nano', 'side', 'tiny', 'no_token_ids'],
      ['title', 'main', 'served', 'model_not_trainable'],
      ['helper', 'side', 'tiny', 'no_token_ids'],
      ['whatever', 'main', 'lora-7', null],
    ],
  )
  t.equal(calls[0]?.record.promptIds, null, 'ids of a plain server are not vouched for')
})

t.test('two equal calls at the same moment are two calls', async t => {
  let open = () => {}
  const both = new Promise<void>(resolve => {
    open = resolve
  })
  const engine = await scriptedEngine(t, [{ pieces: ['ok'], before: both }])
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
  const session = await pair.session('s-a')
  const { path, body } = dialectCalls.openai_chat
  const answers = [pair.post(path, body, { key: session.key }), pair.post(path, body, { key: session.key })]
  await engine.generation(1)
  open()
  t.strictSame(
    (await Promise.all(answers)).map(response => response.status),
    [200, 200],
  )
  const { calls } = await pair.ledger(session)
  t.strictSame(
    calls.map(({ delivered }) => delivered),
    ['yes', 'yes'],
  )
  t.strictSame(calls.map(({ record }) => record.sequence).sort(), [0, 1])
})

t.test('what the engine gives wrong is kept and marked, never mended', async t => {
  const script = [
    { ids: [10, 99], logprobs: [-0.5] },
    { ids: [10, 99], usage: { prompt_tokens: 3, completion_tokens: 5 } },
    { ids: [10, 99], usage: { prompt_tokens: 4, completion_tokens: 2 } },
    { ids: [10, 99], logprobs: [-0.5, -9999] },
    { ids: null, usage: { prompt_tokens: 3, completion_tokens: 7 } },
    { ids: [10, 99], logprobs: null },
    { ids: [10, 99], usage: null },
  ].map(answer => ({ pieces: ['x'], ...answer }))
  for (const stream of [false, true]) {
    const engine = await scriptedEngine(t, script)
    const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
    const session = await pair.session('s-a')
    for (const _ of script) {
      const response = await pair.post(
        '/v1/chat/completions',
        { ...dialectCalls.openai_chat.body, stream },
        { key: session.key },
      )
      t.match(await response.text(), /"x"/)
    }
    const { calls } = await pair.ledger(session)
    t.strictSame(
      calls.map(({ record }) => [record.notTrainable, record.sampledIds, record.completionTokens]),
      [
        ['logprobs_length_mismatch', Int32Array.of(10, 99), 2],
        ['sampled_length_mismatch', Int32Array.of(10, 99), 5],
        ['prompt_length_mismatch', Int32Array.of(10, 99), 2],
        ['logprob_unknown', Int32Array.of(10, 99), 2],
        ['no_token_ids', null, 7],
        ['logprobs_missing', Int32Array.of(10, 99), 2],
        [null, Int32Array.of(10, 99), 2],
      ],
      `stream ${stream}`,
    )
  }
})

t.test('a Google client without alt=sse gets a JSON array', async t => {
  const engine = await scriptedEngine(t, [{ pieces: ['one', 'two'] }])
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
  const session = await pair.session('s-a')
  const response = await pair.post('/v1beta/models/m:streamGenerateContent', dialectCalls.google_generate.body, {
    headers: { 'x-goog-api-key': session.key },
  })
  const chunks = (await response.json()) as unknown[]
  t.ok(Array.isArray(chunks) && chunks.length >= 2)
  t.match(JSON.stringify(chunks), /one.*two/)
})

t.test('an engine that cannot stream ids serves a streaming client from a buffered call', async t => {
  const engine = await scriptedEngine(t, [
    {
      pieces: ['hello'],
      extra: {
        prompt_token_ids: [1, 2, 3],
        meta_info: {
          output_token_logprobs: [
            [-0.1, 10, 'hello'],
            [-0.2, 99, '<e>'],
          ],
          weight_version: 'v3',
        },
      },
    },
  ])
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url], profile: 'sglang' }]))
  const session = await pair.session('s-a')
  const response = await pair.post(
    '/v1/chat/completions',
    { ...dialectCalls.openai_chat.body, stream: true },
    { key: session.key },
  )
  t.match(response.headers.get('content-type'), /event-stream/)
  const text = await readerOf(response).rest()
  t.match(text, /hello/)
  t.match(text, /\[DONE\]/)
  t.equal(engine.generations[0]?.body['stream'], false)
  t.match((await pair.ledger(session)).calls, [
    {
      delivered: 'yes',
      record: {
        sampledIds: Int32Array.of(10, 99),
        logprobs: Float32Array.of(-0.1, -0.2),
        notTrainable: null,
        policyVersionEnd: 'v3',
      },
    },
  ])
})

// The key of an inference server: on every request to it, and nowhere that a harness, a log or a result could show it.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { decoderFor } from '../../../../actors/pools/decoder.js'
import { createHttpClient } from '../../../../src/http/client.js'
import { asker } from '../../../../src/upstreams/probe/asking.js'
import { vllm } from '../../../../src/upstreams/vllm.js'
import { ledgerOf } from '../../../support/ledger-fixtures.js'
import { dialectCalls, gatewayPlan, startPair } from '../../../support/pair.js'
import { scriptedEngine } from '../../../support/scripted-engine.js'

const apiKey = 'engine-key-0123456789'
const { path, body } = dialectCalls.openai_chat

t.test('generations and questions to the tokenizer carry it; harness, log and ledger never see it', async t => {
  const refusal = { error: { message: `Incorrect API key provided: ${apiKey}` } }
  const event = `data: ${JSON.stringify({ error: { message: `key ${apiKey} has expired`, code: 500 } })}\n\n`
  const engine = await scriptedEngine(t, [
    { pieces: ['fine'] },
    { status: 401, error: refusal },
    { status: 400, error: refusal },
    { raw: [Buffer.from(event)] },
  ])
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url], apiKey }]))
  const session = await pair.session('s-a')
  const count = await pair.post('/v1/messages/count_tokens', dialectCalls.anthropic_messages.body, { key: session.key })
  t.equal(count.status, 200)
  const texts: string[] = []
  const statuses: number[] = []
  for (const stream of [false, false, false, true]) {
    const response = await pair.post(path, { ...body, stream }, { key: session.key })
    statuses.push(response.status)
    texts.push(await response.text())
  }
  t.strictSame(statuses.slice(0, 3), [200, 502, 400])
  t.match(texts[1], /the inference server refused the gateway/)
  t.match(texts[2], /Incorrect API key provided: \*{8}/)
  t.match(texts[3], /"error"/)
  for (const { headers } of [...engine.generations, ...engine.tokenizations])
    t.equal(headers['authorization'], `Bearer ${apiKey}`)
  t.ok(engine.tokenizations.length > 0)
  const ledger = await pair.ledger(session)
  t.equal(ledger.failed.length, 3)
  for (const shown of [texts, ledger, pair.log.lines]) t.notMatch(JSON.stringify(shown), apiKey)
})

t.test('without one no credentials are sent, those of the harness least of all', async t => {
  const engine = await scriptedEngine(t)
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
  const session = await pair.session('s-a')
  await (await pair.post(path, body, { key: session.key })).text()
  t.notOk(engine.generations[0]?.headers['authorization'])
  t.notMatch(JSON.stringify(engine.generations[0]?.headers), session.key)
})

t.test('the probe and the build ask with it as well', async t => {
  const seen: (string | undefined)[] = []
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization)
    response.writeHead(401, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { message: `no such key: ${apiKey}` } }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = createHttpClient({ connections: 1 })
  t.teardown(() => client.close())
  const ask = asker({ client, profile: vllm, urls: [url], model: 'm', apiKey, signal: new AbortController().signal })
  const asked = await ask.generate({ messages: [{ role: 'user', content: 'hi' }] })
  t.match(asked, { ok: false, error: { status: 401, message: 'no such key: ********' } })
  await ask.json('GET', '/v1/models')
  const plan = gatewayPlan([{ urls: [url], apiKey }])
  const decoder = decoderFor(ledgerOf([]), plan, new AbortController().signal)
  t.equal(await decoder.decode(Int32Array.of(1, 2)), null)
  await decoder.close()
  t.strictSame(seen, Array(3).fill(`Bearer ${apiKey}`))
})

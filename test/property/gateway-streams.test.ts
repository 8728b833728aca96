// Chunk boundaries never matter: the engine's bytes cut at any place come out of the gateway as the same answer, in every dialect, over
// real HTTP; and the frames held are the same frames.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import type { DialectId } from '../../src/domain/conversation.js'
import { type Framed, framesOfText } from '../support/event-text.js'
import { dialectCalls, gatewayPlan, startPair } from '../support/pair.js'
import { accumulate } from '../support/stream-clients.js'

/** As vLLM streams it: thinking, text beyond ASCII, two calls whose arguments come in pieces, usage after the finish reason. */
function engineBytes(): Buffer {
  const event = (data: object) =>
    `data: ${JSON.stringify({ id: 'e', object: 'chat.completion.chunk', ...data })}\r\n\r\n`
  let id = 10
  const piece = (delta: object) => {
    id += 1
    const logprobs = { content: [{ token: 't', logprob: -0.5, top_logprobs: [] }] }
    return event({ choices: [{ index: 0, delta, token_ids: [id], logprobs }] })
  }
  const call = (index: number, fields: object, fn: object) =>
    piece({ tool_calls: [{ index, ...fields, type: 'function', function: fn }] })
  return Buffer.from(
    [
      event({ prompt_token_ids: [1, 2, 3], choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] }),
      ': keep-alive\n\n',
      piece({ reasoning: 'hm, ä' }),
      piece({ reasoning: '🙂' }),
      piece({ content: 'Grüße, ' }),
      piece({ content: '世界 🌍\n\ndata: no event' }),
      call(0, { id: 'call_a' }, { name: 'run', arguments: '' }),
      call(0, {}, { arguments: '{"cmd": "echo \\"🙂' }),
      call(0, {}, { arguments: '\\""}' }),
      call(1, { id: 'call_b' }, { name: 'run', arguments: '{"cmd": "ls"}' }),
      event({
        choices: [
          {
            index: 0,
            delta: {},
            finish_reason: 'tool_calls',
            token_ids: [99],
            logprobs: { content: [{ token: 't', logprob: -0.5, top_logprobs: [] }] },
          },
        ],
      }),
      event({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 9 } }),
      'data: [DONE]\n\n',
    ].join(''),
  )
}

const bytes = engineBytes()
const tools = {
  openai_chat: { tools: [{ type: 'function', function: { name: 'run', parameters: { type: 'object' } } }] },
  openai_responses: { tools: [{ type: 'function', name: 'run', parameters: { type: 'object' } }] },
  anthropic_messages: { tools: [{ name: 'run', input_schema: { type: 'object' } }] },
  google_generate: { tools: [{ functionDeclarations: [{ name: 'run', parametersJsonSchema: { type: 'object' } }] }] },
} as const

/** An engine that writes its answer in the pieces of the moment, each in a packet of its own as far as the system lets it. */
async function cuttingEngine(t: { teardown(run: () => unknown): unknown }) {
  let cuts: readonly number[] = []
  const server: Server = createServer({ noDelay: true }, async (request, response) => {
    for await (const _ of request);
    if (request.url !== '/v1/chat/completions') {
      response.writeHead(404).end('{}')
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    let from = 0
    for (const to of [...cuts, bytes.length]) {
      await new Promise(resolve => response.write(bytes.subarray(from, to), resolve))
      // One turn of the loop: what was written is read before more comes.
      await new Promise(resolve => setImmediate(resolve))
      from = to
    }
    response.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    // A listening TCP server's address is never a pipe name.
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cutAt(places: readonly number[]) {
      cuts = places
    },
  }
}

/** Ids are the gateway's own and differ from call to call. */
const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replaceAll(/[0-9a-f]{12}/g, 'ID'), (key, field) =>
    key === 'created' || key === 'created_at' || key === 'completed_at' || key === 'createTime' ? 0 : field,
  )

t.test('a cut anywhere, and any set of cuts, gives the same answer in every dialect', async t => {
  const engine = await cuttingEngine(t)
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
  const session = await pair.session('s-a')
  const ask = async (id: DialectId): Promise<readonly Framed[]> => {
    const call = dialectCalls[id]
    const options = id === 'openai_chat' ? { stream_options: { include_usage: true } } : {}
    const body = { ...call.body, ...call.streamBody, ...options, ...tools[id] }
    const response = await pair.post(call.streamPath, body, { key: session.key })
    assert.equal(response.status, 200)
    return framesOfText(await response.text())
  }
  const ids = Object.keys(dialectCalls) as DialectId[]
  const uncut = new Map<DialectId, unknown>()
  for (const id of ids) uncut.set(id, plain(accumulate(id, await ask(id))))
  t.match(JSON.stringify(uncut.get('openai_chat')), '世界 🌍')

  // Every place inside a character of several bytes or around a line's end, and every seventh of the others; the dialects take turns.
  const isTelling = (byte: number | undefined) => byte === 10 || byte === 13 || (byte ?? 0) >= 0x80
  const telling = [...bytes.keys()].filter(place => place % 7 === 3 || isTelling(bytes[place]))
  for (const [turn, place] of telling.filter(place => place > 0).entries()) {
    const id = ids[turn % ids.length] ?? 'openai_chat'
    engine.cutAt([place])
    assert.deepEqual(plain(accumulate(id, await ask(id))), uncut.get(id), `${id}, cut at ${place}`)
  }
  t.pass('single cuts')

  const places = fc
    .uniqueArray(fc.integer({ min: 1, max: bytes.length - 1 }), { minLength: 2, maxLength: 40 })
    .map(list => list.sort((a, b) => a - b))
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...ids), places, async (id, cuts) => {
      engine.cutAt(cuts)
      assert.deepEqual(plain(accumulate(id, await ask(id))), uncut.get(id))
    }),
    { numRuns: 40 },
  )
  t.pass('many cuts')

  const { calls, failed } = await pair.ledger(session)
  t.strictSame(failed, [])
  for (const { record } of calls) {
    assert.deepEqual([...(record.sampledIds ?? [])], [11, 12, 13, 14, 15, 16, 17, 18, 99])
    assert.equal(record.notTrainable, null)
  }
})

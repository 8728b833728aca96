// Live or buffered: with an engine that keeps ids while it streams, the harness reads the first token before the engine has made the
// last; with one that does not, the call is buffered and the harness is kept awake by what its own client tolerates.

import t from 'tap'
import { dialects } from '../../../../src/dialects/registry.js'
import type { DialectId } from '../../../../src/domain/conversation.js'
import { dialectCalls, gatewayPlan, readerOf, startPair } from '../../../support/pair.js'
import { scriptedEngine } from '../../../support/scripted-engine.js'

const ids = Object.keys(dialectCalls) as DialectId[]

t.test('vllm: the harness has the first token while the engine still makes the last, in every dialect', async t => {
  for (const id of ids) {
    let goOn = () => {}
    const until = new Promise<void>(resolve => {
      goOn = resolve
    })
    const engine = await scriptedEngine(t, [{ pieces: ['first', 'last'], pause: { atChunk: 1, until } }])
    const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
    const session = await pair.session(id)
    const call = dialectCalls[id]
    const response = await pair.post(call.streamPath, { ...call.body, ...call.streamBody }, { key: session.key })
    const reader = readerOf(response)
    const early = await reader.until('first')
    t.notMatch(early, /last/, id)
    t.match(engine.generations[0]?.body, { stream: true }, `${id}: the engine streams`)
    goOn()
    t.match(await reader.rest(), /last/, id)
    t.match(await pair.ledger(session), { calls: [{ delivered: 'yes', record: { notTrainable: null } }] })
  }
})

t.test('sglang: a streaming harness is served from a buffered call whose ids are whole', async t => {
  for (const id of ids) {
    const engine = await scriptedEngine(t, [
      {
        pieces: ['whole', ' answer'],
        extra: {
          meta_info: {
            prompt_token_ids: [1, 2, 3],
            output_token_logprobs: [
              [-0.5, 10, null],
              [-0.5, 11, null],
              [-0.5, 99, null],
            ],
            completion_tokens: 3,
            prompt_tokens: 3,
          },
        },
      },
    ])
    const pair = await startPair(t, gatewayPlan([{ urls: [engine.url], profile: 'sglang' }]))
    const session = await pair.session(id)
    const call = dialectCalls[id]
    const response = await pair.post(call.streamPath, { ...call.body, ...call.streamBody }, { key: session.key })
    t.match(await response.text(), /whole answer/, id)
    t.not(engine.generations[0]?.body['stream'], true, `${id}: the engine is asked for the whole answer`)
    t.equal((await pair.ledger(session)).calls[0]?.delivered, 'yes', id)
  }
})

t.test('a waiting client is kept awake by what it skips, and a Gemini client, which skips nothing, by nothing', t => {
  t.match(dialects.openai_chat.keepAlive, /^: [^\n]*\n\n$/, 'a comment')
  t.match(dialects.openai_responses.keepAlive, /^: [^\n]*\n\n$/, 'a comment')
  t.match(dialects.anthropic_messages.keepAlive, /^event: ping\ndata: {"type": ?"ping"}\n\n$/)
  t.equal(dialects.google_generate.keepAlive, null)
  t.end()
})

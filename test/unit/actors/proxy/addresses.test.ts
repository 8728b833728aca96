// Where an inference server stands reaches no harness, whatever fails and whoever words it; operators find it in the log, trainers in
// the failed call.

import t from 'tap'
import { withoutAddresses } from '../../../../actors/proxy/addresses.js'
import { dialectCalls, gatewayPlan, startPair } from '../../../support/pair.js'
import { type ScriptedAnswer, scriptedEngine } from '../../../support/scripted-engine.js'

t.test('addresses go, other words stay', async t => {
  const urls = ['http://vllm-0.pool.svc:8000/v1', 'https://engine:9000', 'http://127.0.0.1:30000', 'http://node']
  const it = 'the inference server'
  for (const [text, wanted] of [
    ['http://127.0.0.1:30000 cannot be reached: ECONNREFUSED', `${it} cannot be reached: ECONNREFUSED`],
    ['connect ECONNREFUSED 10.1.2.3:8000', `connect ECONNREFUSED ${it}`],
    [
      "Cannot connect to host vllm-0.pool.svc:8000 ssl:default ('10.0.0.5', 8000)",
      `Cannot connect to host ${it} ssl:default ('${it})`,
    ],
    ['http://vllm-0.pool.svc:8000/v1/chat/completions: 500', `${it}: 500`],
    ['no route to vllm-0.pool.svc', `no route to ${it}`],
    ['see https://engine:9000/docs, please', `see ${it}, please`],
    ['connect [::1]:8000 and localhost:8001', `connect ${it} and ${it}`],
    ['http://user:pass@localhost:1/x is down', `${it} is down`],
    // What is the harness's own, or no address.
    ['a mistake of the node', 'a mistake of the node'],
    ['cannot load https://example.com/engine.png', 'cannot load https://example.com/engine.png'],
    ['the engine failed in messages[0].content[1:2:3]', 'the engine failed in messages[0].content[1:2:3]'],
    ['vLLM 0.32.1, 8 of 10.5 GB at 12:30:00', 'vLLM 0.32.1, 8 of 10.5 GB at 12:30:00'],
  ] as const) {
    t.equal(withoutAddresses(text, urls), wanted)
  }
})

t.test('no dialect tells where the engine is, streaming or not', async t => {
  const address = '10.9.8.7:8000'
  const said = `worker http://${address}/generate died`
  const event = `data: ${JSON.stringify({ error: { message: said, code: 500 } })}\n\n`
  const head = `data: ${JSON.stringify({ prompt_token_ids: [1], choices: [{ index: 0, delta: { content: 'x' } }] })}\n\n`
  const scripts: Readonly<Record<string, ScriptedAnswer>> = {
    'an error body': { status: 500, error: { error: { message: said } } },
    'an error that is a page': { status: 502, error: `<html>upstream ${address} prematurely closed</html>` },
    'an error in the stream': { status: 200, raw: [Buffer.from(head), Buffer.from(event)], finish: 'error' },
    'a cut': { pieces: ['one', 'two'], cutAfter: 0 },
  }
  for (const [name, script] of Object.entries(scripts)) {
    const engine = await scriptedEngine(t, [script])
    const pair = await startPair(t, gatewayPlan([{ id: 'main', urls: [engine.url] }]))
    const session = await pair.session('s-a')
    for (const call of Object.values(dialectCalls)) {
      for (const [path, body] of [
        [call.path, call.body],
        [call.streamPath, { ...call.body, ...call.streamBody }],
      ] as const) {
        const response = await pair.post(path, body, { key: session.key })
        // Chat breaks its connection where the engine broke: what came before it was read.
        const text = await response.text().catch(() => '')
        t.notMatch(text, /10\.9\.8\.7|127\.0\.0\.1|localhost|:8000/, `${name}: ${path}`)
        t.notMatch(text, engine.url.slice('http://'.length), `${name}: ${path}`)
      }
    }
    const { failed } = await pair.ledger(session)
    // A whole answer is not cut.
    t.equal(failed.length, name === 'a cut' ? 4 : 8, name)
    const lines = pair.log.lines.filter(({ event }) => event === 'call-fail')
    t.equal(lines.length, failed.length, name)
    t.ok(
      lines.every(({ fields }) => fields['upstream'] === 'main' && fields['url'] === engine.url),
      `${name}: the log tells where`,
    )
  }
})

t.test('an engine that cannot be reached: the harness learns that, the log and the ledger where', async t => {
  const engine = await scriptedEngine(t)
  await engine.close()
  const pair = await startPair(t, gatewayPlan([{ id: 'main', urls: [engine.url] }]))
  const session = await pair.session('s-a')
  const { path, body } = dialectCalls.openai_chat
  const response = await pair.post(path, body, { key: session.key })
  t.equal(response.status, 502)
  t.match(await response.json(), { error: { message: 'the inference server cannot be reached: ECONNREFUSED' } })
  const wanted = `${engine.url} cannot be reached: ECONNREFUSED`
  t.match(
    pair.log.lines.find(({ event }) => event === 'call-fail'),
    { fields: { upstream: 'main', url: engine.url, error: wanted } },
  )
  t.match((await pair.ledger(session)).failed, [{ error: wanted }])
})

// Models by role: the names a harness asks for lead by globs to an alias, and by it to an upstream and an adapter, trained or not. From the
// request to the session's trajectory, with two upstreams.

import t from 'tap'
import { prefixMerging } from '../../../../src/builders/prefix-merging.js'
import { planOf } from '../../../support/control-fixture.js'
import { dialectCalls, gatewayPlan, startPair } from '../../../support/pair.js'
import { scriptedEngine } from '../../../support/scripted-engine.js'
import { simulate } from '../../../support/simulation.js'

t.test(
  'main calls are trained through an adapter; side and frozen models are served, and set aside by name',
  async t => {
    const simulation = await simulate(t, { adapters: ['lora-a', 'lora-judge'] })
    const small = await scriptedEngine(t, [{ pieces: ['A title'] }])
    const plan = gatewayPlan(
      [
        {
          id: 'main',
          urls: [simulation.url],
          modelServed: 'policy',
          sampling: { temperature: 1, top_p: 1, top_k: -1 },
        },
        { id: 'small', urls: [`${small.url}/v1`], profile: 'openai_compatible', modelServed: 'tiny' },
      ],
      {
        models: {
          default: { upstream: 'main', adapter: 'lora-a', trainable: true },
          judge: { upstream: 'main', adapter: 'lora-judge', trainable: false },
          helper: { upstream: 'small', adapter: null, trainable: false },
        },
      },
    )
    const pair = await startPair(t, plan)
    const session = await pair.session('s-a', {
      samplingSeed: 5,
      models: { '*-flash-lite': 'helper', 'claude-haiku-*': 'helper', 'critic-*': 'judge' },
    })
    const { path, body } = dialectCalls.openai_chat
    const ask = async (model: string, extra: object = {}) => {
      const response = await pair.post(path, { ...body, model, ...extra }, { key: session.key })
      t.equal(response.status, 200, model)
      return ((await response.json()) as { model: string }).model
    }
    t.equal(await ask('sextant/policy'), 'sextant/policy', 'the name asked for comes back')
    await ask('gemini-2.5-flash-lite')
    await ask('critic-1')
    await ask('judge')
    const ledger = await pair.ledger(session)
    t.strictSame(
      ledger.calls.map(({ record }) => [record.upstream, record.modelUsed, record.notTrainable]),
      [
        ['main', 'lora-a', null],
        ['small', 'tiny', 'no_token_ids'],
        ['main', 'lora-judge', 'model_not_trainable'],
        ['main', 'lora-judge', 'model_not_trainable'],
      ],
    )
    const { tokens, notTrainable } = (
      await prefixMerging.build(
        ledger,
        {},
        { decode: async () => null, sessionId: 's-a', taskId: 't', taskMetadata: {} },
      )
    ).ledger
    const sampled = ledger.calls.map(({ record }) => record.completionTokens)
    const judged = (sampled[2] ?? 0) + (sampled[3] ?? 0)
    t.equal(tokens.trained, sampled[0])
    t.strictSame(tokens.setAside, { filtered: judged, no_token_ids: sampled[1] })
    t.strictSame(notTrainable, { model_not_trainable: judged })
  },
)

t.test('the embedded server serves the adapters that aliases name, and no others', async t => {
  const models = {
    default: { upstream: 'simulation', adapter: 'lora-a' },
    frozen: { upstream: 'simulation', trainable: false },
  }
  t.strictSame(planOf({ models }).simulation?.adapters, ['lora-a'])
  t.equal(planOf().simulation?.adapters, undefined)
  const simulation = await simulate(t, { adapters: ['lora-a'] })
  const ask = (model: string) =>
    fetch(`${simulation.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }], max_tokens: 4 }),
    })
  t.match(await (await ask('lora-a')).json(), { model: 'lora-a' })
  t.equal((await ask('lora-b')).status, 404)
  t.match(await (await fetch(`${simulation.url}/v1/models`)).json(), {
    data: [
      { id: 'policy', parent: null },
      { id: 'lora-a', parent: 'policy' },
    ],
  })
})

// What the prober tells a proxy: calls to an upstream that has not passed its probe are served and recorded, and not trained on.

import t from 'tap'
import { realClock } from '../../../../actors/system/clock.js'
import { dialectCalls, gatewayPlan, type Pair, type PairSession, startPair } from '../../../support/pair.js'
import { scriptedEngine } from '../../../support/scripted-engine.js'

const chat = dialectCalls.openai_chat

async function called(pair: Pair, { key }: PairSession): Promise<number> {
  const response = await pair.post(chat.path, chat.body, { key })
  await response.text()
  return response.status
}

t.test('until a probe has passed nothing is trained; then it is; then not again', async t => {
  const engine = await scriptedEngine(t)
  const plan = gatewayPlan([{ id: 'up', urls: [engine.url], probe: 'start' }])
  const pair = await startPair(t, plan, realClock(), { up: 'upstream_not_probed' })
  const session = await pair.session('s-a')
  const reasons: (string | null)[] = []
  for (const obstacle of ['upstream_not_probed', null, 'upstream_evaluation_only'] as const) {
    pair.proxy.tell({ type: 'upstream-standing', upstream: 'up', obstacle })
    // Answered after the standing was taken.
    await pair.inflight()
    t.equal(await called(pair, session), 200, 'it is served')
    reasons.push(obstacle)
  }
  const { calls } = await pair.ledger(session)
  t.strictSame(
    calls.map(({ record }) => record.notTrainable),
    reasons,
  )
  t.ok(
    calls.every(({ record }) => record.sampledIds !== null),
    'and captured',
  )
})

t.test('an upstream that refuses connections is reported once, and what comes after it is not trained on', async t => {
  const engine = await scriptedEngine(t)
  const plan = gatewayPlan([{ id: 'up', urls: [engine.url], probe: 'start' }])
  const pair = await startPair(t, plan, realClock(), { up: null })
  const session = await pair.session('s-a')
  t.equal(await called(pair, session), 200)
  await engine.close()
  t.not(await called(pair, session), 200)
  t.strictSame(await pair.prober.expectMessage('upstream-lost', 5_000), { type: 'upstream-lost', upstream: 'up' })
  t.not(await called(pair, session), 200)
  t.equal(pair.prober.messages().length, 1, 'once')
  t.ok(pair.log.lines.some(({ event, fields }) => event === 'upstream-lose' && fields['upstream'] === 'up'))
})

t.test('an upstream that is not to be probed is taken as it is, also after it was away', async t => {
  const engine = await scriptedEngine(t)
  const pair = await startPair(t, gatewayPlan([{ id: 'up', urls: [engine.url] }]))
  const session = await pair.session('s-a')
  t.equal(await called(pair, session), 200)
  await engine.close()
  t.not(await called(pair, session), 200)
  t.strictSame(pair.prober.messages(), [])
  const { calls } = await pair.ledger(session)
  t.equal(calls[0]?.record.notTrainable, null)
})

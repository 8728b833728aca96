// The prober actor against real servers: what it tells the proxies, the log and those who ask.

import t from 'tap'
import { proberProps } from '../../../../actors/prober/actor.js'
import { upstreamStandings } from '../../../../actors/prober/standings.js'
import type { ProxyMessage } from '../../../../actors/protocol/proxy.js'
import { realClock } from '../../../../actors/system/clock.js'
import { startSimulation } from '../../../../src/simulation/server.js'
import { LIES, liar } from '../../../support/liar.js'
import { gatewayPlan } from '../../../support/pair.js'
import { simulate, simulationPlan } from '../../../support/simulation.js'
import { createRealTimeSystem } from '../../../support/test-system.js'
import { wallClock } from '../../../support/wall-clock.js'

const WITHIN_MS = 60_000
const up = (id: string, url: string) => ({ id, urls: [url], modelServed: 'policy', probe: 'start' as const })

function started(t: Parameters<typeof createRealTimeSystem>[0], upstreams: readonly ReturnType<typeof up>[]) {
  const { system, log, probe } = createRealTimeSystem(t, realClock())
  const plan = gatewayPlan(upstreams)
  const standings = upstreamStandings(plan)
  const proxy = probe<ProxyMessage>('proxy')
  const prober = system.spawn(
    proberProps({ upstreams: plan.upstreams, proxies: [proxy.ref], onStanding: standings.note, mailbox: 100 }),
    'prober',
  )
  return { prober, proxy, standings, log }
}

t.test('an honest server and a liar: each proxy, the log and the status say which is which', async t => {
  const honest = await simulate(t, { contextWindow: 4_096 })
  const lying = await liar(t, honest, LIES.idsMissing)
  const { proxy, standings, log } = started(t, [up('honest', honest.url), up('liar', lying)])
  const told = [
    await proxy.expectMessage('upstream-standing', WITHIN_MS),
    await proxy.expectMessage('upstream-standing', WITHIN_MS),
  ]
  t.strictSame(Object.fromEntries(told.map(({ upstream, obstacle }) => [upstream, obstacle])), {
    honest: null,
    liar: 'upstream_evaluation_only',
  })
  t.match(standings.upstreams(), [
    { id: 'honest', verdict: 'trainable', report: { reasons: [] } },
    { id: 'liar', verdict: 'evaluation_only', report: { reasons: [String, 'no_token_ids'] } },
  ])
  const lines = log.lines.filter(({ event }) => event === 'upstream-probe')
  t.match(
    lines.find(({ fields }) => fields['upstream'] === 'honest'),
    { level: 'info', fields: { verdict: 'trainable' } },
  )
  t.match(
    lines.find(({ fields }) => fields['upstream'] === 'liar'),
    {
      level: 'warn',
      fields: { verdict: 'evaluation_only', reasons: [String, 'no_token_ids'], cures: [String, String] },
    },
  )
})

t.test('a server that is not there yet is probed once it is; one that was lost is probed anew', async t => {
  const first = await startSimulation({ plan: simulationPlan({ contextWindow: 4_096 }), clock: wallClock })
  const { port, url } = first
  await first.close()
  const { prober, proxy, standings } = started(t, [up('a', url)])
  t.match(await proxy.expectMessage('upstream-standing', WITHIN_MS), { obstacle: 'upstream_not_probed' })
  t.match(standings.upstreams(), [{ verdict: 'unreachable' }])
  await simulate(t, { contextWindow: 4_096, port })
  for (;;) {
    const { obstacle } = await proxy.expectMessage('upstream-standing', WITHIN_MS)
    if (obstacle === null) break
    t.equal(obstacle, 'upstream_not_probed')
  }
  t.match(standings.upstreams(), [{ verdict: 'trainable' }])
  prober.tell({ type: 'upstream-lost', upstream: 'a' })
  t.match(await proxy.expectMessage('upstream-standing', WITHIN_MS), { obstacle: 'upstream_not_probed' })
  t.match(await proxy.expectMessage('upstream-standing', WITHIN_MS), { obstacle: null })
})

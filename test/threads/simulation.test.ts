// The embedded inference server in its thread: it serves, tells its load, keeps its port over a restart and ends with its host.

import t from 'tap'
import type { SimulationMessage } from '../../actors/protocol/simulation.js'
import type { ThreadHostMessage } from '../../actors/protocol/threads.js'
import { realClock } from '../../actors/system/clock.js'
import type { ActorRef } from '../../actors/system/ref.js'
import { threadHost } from '../../actors/threads/host.js'
import { simulationPlan } from '../support/simulation.js'
import { createRealTimeSystem } from '../support/test-system.js'

const entry = new URL('../../actors/threads/simulation.thread.js', import.meta.url)

for (const mode of ['real', 'inline'] as const) {
  t.test(`a ${mode} thread serves chat, also after it was killed, and ends with its host`, async t => {
    const { system } = createRealTimeSystem(t, realClock(), 'main')
    let announce: () => void = () => {}
    const restarted = new Promise<void>(resolve => {
      announce = resolve
    })
    const host: ActorRef<ThreadHostMessage> = system.spawn(
      threadHost({
        threads: [
          {
            name: 'simulation',
            entry,
            data: last => ({ plan: simulationPlan({ port: Number(last?.['port'] ?? 0) }) }),
            startMs: 30_000,
            drainMs: 2_000,
          },
        ],
        channels: [],
        strategy: 'one-for-one',
        intensity: 5,
        periodMs: 30_000,
        mode,
        logLevel: 'silent',
        system,
        onRestarted: () => announce(),
      }),
      'simulation-host',
    )
    const { replies } = await system.ask(host, { type: 'threads-started-requested' }, 30_000)
    const url = String(replies['simulation']?.['url'])
    const ask = async (): Promise<number> => {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'policy', messages: [{ role: 'user', content: 'hi' }] }),
      })
      await response.text()
      return response.status
    }
    t.equal(await ask(), 200)
    const simulation: ActorRef<SimulationMessage> = system.refOf({ system: 'simulation', path: '/simulation/' })
    t.match(await system.ask(simulation, { type: 'simulation-load-requested' }, 5_000), { running: 0, finished: 1 })

    host.tell({ type: 'kill-thread', thread: 'simulation' })
    await restarted
    t.equal(await ask(), 200, 'on the same port')
    t.match(await system.ask(simulation, { type: 'simulation-load-requested' }, 5_000), { finished: 1 })

    t.strictSame(await system.stopActor(host), { missed: [] })
    await t.rejects(fetch(url), 'nobody listens')
  })
}

// The embedded inference server in its thread, when the plan has one.

import { withSimulationUrl } from '../src/config/compile.js'
import type { Plan } from '../src/config/plan.js'
import type { System } from './index.js'
import { START_MS } from './threads/pair-names.js'
import type { SimulationThreadData } from './threads/simulation.thread.js'

/** Starts it and returns the plan with its URL; a plan without one is returned as it is. */
export async function withSimulation(plan: Plan, system: System): Promise<Plan> {
  const { simulation } = plan
  if (simulation === null) return plan
  const { replies } = await system.startThreads('simulation', {
    threads: [
      {
        name: 'simulation',
        entry: new URL('./threads/simulation.thread.js', import.meta.url),
        // After a restart the port it had: the proxies know it by that.
        data: last => {
          const had = last?.['port']
          return {
            plan: { ...simulation, port: typeof had === 'number' ? had : simulation.port },
          } satisfies SimulationThreadData
        },
        startMs: START_MS,
        drainMs: 5_000,
      },
    ],
    channels: [],
    strategy: 'one-for-one',
    intensity: 5,
    periodMs: 30_000,
  })
  return withSimulationUrl(plan, String(replies['simulation']?.['url']))
}

// The thread of the embedded inference server (src/simulation): rendering and encoding long prompts would hold up whoever shared a
// thread with it. Its one actor closes the server when the thread's system stops, and tells the load.

import { defer, EMPTY } from 'rxjs'
import type { SimulationPlan } from '../../src/config/plan.js'
import { type Simulation, startSimulation } from '../../src/simulation/server.js'
import type { SimulationMessage } from '../protocol/simulation.js'
import type { ActorProps } from '../system/behavior.js'
import { defineThread } from './entry.js'

/** `port` of the plan: 0 at the first start, the former one at a restart. */
export interface SimulationThreadData {
  readonly plan: SimulationPlan
}

export interface SimulationThreadReply {
  /** `http://127.0.0.1:PORT`, without `/v1`. */
  readonly url: string
  readonly port: number
  readonly [more: string]: unknown
}

export const thread = defineThread<SimulationThreadData, SimulationThreadReply>({
  async start({ system, clock }, { plan }) {
    const simulation = await startSimulation({ plan, clock })
    system.spawn(simulationActor(simulation), 'simulation')
    return { url: simulation.url, port: simulation.port }
  },
})

type SimulationSelf = SimulationMessage | { readonly type: 'reply-failed' }

function simulationActor(
  simulation: Simulation,
): ActorProps<SimulationMessage, SimulationSelf, null, SimulationMessage> {
  return {
    behavior: () => ({
      machine: {
        initial: { state: null, effects: [] },
        step: (state, message) => ({ state, effects: message.type === 'reply-failed' ? [] : [message] }),
        scope: () => 'serving',
      },
      interpret: () => effect =>
        defer(() => {
          effect.replyTo.tell({ type: 'simulation-load', ...simulation.load() })
          return EMPTY
        }),
      onEffectError: () => ({ type: 'reply-failed' }),
      signal: () => simulation.close(),
      summarize: () => ({ url: simulation.url, ...simulation.load() }),
    }),
    mailbox: { capacity: 64, overflow: 'refuse' },
    // The server ends with this actor: what is left is a new thread, which its host makes.
    supervision: { restart: 'temporary', strategy: 'one-for-one', intensity: 0, periodMs: 30_000 },
    shutdownMs: 5_000,
  }
}

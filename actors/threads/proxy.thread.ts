// The thread of a proxy: one proxy actor with its port for harnesses, and the link on which captures go to the merge thread of its
// pair. The link may be replaced while it lives; what waited on the old one ends with ACTOR_DEAD.

import type { Plan } from '../../src/config/plan.js'
import type { GateState } from '../../src/domain/inference.js'
import { armFailpoint } from '../../src/observability/failpoints.js'
import type { ProberMessage } from '../protocol/prober.js'
import { proxyProps } from '../proxy/actor.js'
import type { Obstacles } from '../proxy/effects.js'
import { defineThread } from './entry.js'
import { CAPTURE_PORT, PROBER_ADDRESS, PROXY_ACTOR, START_MS } from './pair-names.js'
import { replaceableSender } from './port-link.js'

export interface ProxyThreadData {
  readonly plan: Plan
  /** 0 = any free port; after a restart the one it had. */
  readonly port: number
  /** A proxy that restarts in a pause starts paused. */
  readonly gate: GateState
  readonly obstacles: Obstacles
}

export type ProxyThreadReply = { readonly port: number }

export const thread = defineThread<ProxyThreadData, ProxyThreadReply>({
  async start(thread, { plan, port, gate, obstacles }) {
    armFailpoint(plan.failpoint)
    const sender = replaceableSender(plan.limits)
    thread.onPort(CAPTURE_PORT, capturePort => sender.attach(capturePort))
    const prober = thread.system.refOf<ProberMessage>(PROBER_ADDRESS)
    const proxy = thread.system.spawn(proxyProps({ plan, port, sender, gate, obstacles, prober }), PROXY_ACTOR)
    const description = await thread.system.ask(proxy, { type: 'proxy-described' }, START_MS)
    return { port: description.port }
  },
})

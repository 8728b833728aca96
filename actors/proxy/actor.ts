// The proxy actor of a pair: its machine, its effects on the gateway, and the end of the gateway when it stops or restarts.

import { errorData } from '../../src/domain/errors.js'
import { OPEN } from '../../src/domain/inference.js'
import type { ProxyMessage } from '../protocol/proxy.js'
import type { ActorProps } from '../system/behavior.js'
import { type GatewayHolder, type ProxyOptions, proxyInterpreter } from './effects.js'
import { type ProxyEffect, type ProxyInput, type ProxyState, proxyMachine } from './machine.js'
import { PauseGate } from './pause-gate.js'

/** Running answers get this long to notice that their calls were cancelled. */
const CLOSE_GRACE_MS = 1_000

export function proxyProps(options: ProxyOptions): ActorProps<ProxyMessage, ProxyInput, ProxyState, ProxyEffect> {
  // Outlives restarts of the actor: the next life takes the port of the last.
  const holder: GatewayHolder = {
    port: options.port,
    opening: null,
    gate: new PauseGate(options.gate ?? OPEN, options.plan.limits.mailbox),
    obstacles: new Map(Object.entries(options.obstacles ?? {})),
  }
  return {
    behavior: () => ({
      machine: proxyMachine,
      interpret: context => proxyInterpreter(options, holder, context),
      onEffectError: (_effect, cause) => ({ type: 'gateway-failed', error: errorData(cause).message }),
      async signal() {
        const opening = holder.opening
        holder.opening = null
        // A gateway that never opened has nothing to close.
        const gateway = await opening?.catch(() => null)
        await gateway?.stop(CLOSE_GRACE_MS)
      },
      summarize: state =>
        state.phase === 'listening'
          ? { phase: state.phase, port: state.port, closing: state.closing.size }
          : { phase: state.phase, waiting: state.stash.length },
    }),
    mailbox: { capacity: options.plan.limits.mailbox, overflow: 'refuse' },
    supervision: { restart: 'permanent', strategy: 'one-for-one', intensity: 5, periodMs: 30_000 },
    shutdownMs: 15_000,
  }
}

// Carries out the proxy machine's effects on its gateway. The gateway outlives scopes; the actor's signals close it.

import { defer, EMPTY, from, map, mergeMap, type Observable } from 'rxjs'
import type { Plan } from '../../src/config/plan.js'
import { RolloutError } from '../../src/domain/errors.js'
import type { GateState } from '../../src/domain/inference.js'
import { unreachable } from '../../src/domain/unreachable.js'
import { EVENTS } from '../../src/observability/events.js'
import type { ActorContext } from '../system/behavior.js'
import type { Interpreter } from '../system/machine.js'
import type { CaptureSender } from '../threads/port-link.js'
import { type Gateway, openGateway } from './gateway.js'
import type { ProxyEffect, ProxyInput } from './machine.js'
import type { PauseGate } from './pause-gate.js'

export interface ProxyOptions {
  readonly plan: Plan
  /** 0 = any free port; after a restart of the actor the port it had. */
  readonly port: number
  /** Link to merge-k. Closed with the thread, not with the actor. */
  readonly sender: CaptureSender
  /** Whether calls may pass at start. Default: they may. */
  readonly gate?: GateState
}

/** The gateway of one life of the actor. */
export interface GatewayHolder {
  /** Port of the life before, or the configured one. */
  port: number
  opening: Promise<Gateway> | null
  readonly gate: PauseGate
}

export function proxyInterpreter(
  options: ProxyOptions,
  holder: GatewayHolder,
  context: ActorContext<ProxyInput>,
): Interpreter<ProxyInput, ProxyEffect> {
  let gateway: Gateway | null = null
  const opened = (): Gateway => {
    if (gateway === null) throw new RolloutError('INTERNAL_BUG', 'the proxy spoke to its gateway before it was open')
    return gateway
  }
  const doing = (work: () => void): Observable<ProxyInput> =>
    defer(() => {
      work()
      return EMPTY
    })
  return effect => {
    switch (effect.type) {
      case 'open-gateway':
        return defer(async (): Promise<ProxyInput> => {
          const { clock, log } = context
          holder.opening = openGateway({ ...options, port: holder.port, gate: holder.gate, clock, log })
          gateway = await holder.opening
          holder.port = gateway.port
          log.info(EVENTS.gatewayListen, { port: gateway.port })
          return { type: 'gateway-listening', port: gateway.port, url: urlOf(options.plan, gateway.port) }
        })
      case 'put-session':
        return doing(() => {
          opened().put(effect.session)
          effect.replyTo.tell({ type: 'session-put-done', gatewayUrl: effect.url })
        })
      case 'close-session':
        return defer(() => from(opened().closeSession(effect.sessionId))).pipe(
          map(({ calls, aborted }) => ({ type: 'session-drained', sessionId: effect.sessionId, calls, aborted })),
        )
      case 'reply-closed':
        return doing(() => {
          const { calls, aborted } = effect
          for (const ref of effect.replyTo) ref.tell({ type: 'session-closed', calls, aborted })
        })
      case 'forget-session':
        return doing(() => opened().forget(effect.sessionId))
      case 'set-gate':
        return defer(async () => {
          holder.gate.set(effect.gate)
          if (effect.awaitDrain) await holder.gate.drained()
          effect.replyTo.tell({ type: 'gate-description', ...holder.gate.counts })
        }).pipe(mergeMap(() => EMPTY))
      case 'describe-gate':
        return doing(() => effect.replyTo.tell({ type: 'gate-description', ...holder.gate.counts }))
      case 'describe':
        return doing(() => {
          const { port } = opened()
          effect.replyTo.tell({ type: 'proxy-description', port, ...opened().describe() })
        })
      default:
        return unreachable(effect)
    }
  }
}

/** Where harnesses on this host reach the port; behind a public name, the same port of that name. */
function urlOf(plan: Plan, port: number): string {
  const { publicUrl, host } = plan.gateway
  if (publicUrl !== null) {
    const url = new URL(publicUrl)
    return `${url.protocol}//${url.hostname}:${port}`
  }
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}

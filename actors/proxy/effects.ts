// Carries out the proxy machine's effects on its gateway. The gateway outlives scopes; the actor's signals close it.

import { defer, EMPTY, from, map, mergeMap, type Observable } from 'rxjs'
import type { Plan } from '../../src/config/plan.js'
import { RolloutError } from '../../src/domain/errors.js'
import type { GateState } from '../../src/domain/inference.js'
import { unreachable } from '../../src/domain/unreachable.js'
import { EVENTS } from '../../src/observability/events.js'
import type { ProberMessage, UpstreamObstacle } from '../protocol/prober.js'
import type { ActorContext } from '../system/behavior.js'
import type { Interpreter } from '../system/machine.js'
import type { ActorRef } from '../system/ref.js'
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
  /** What is known of the upstreams that are probed; those not named are taken as they are. Default: none is probed. */
  readonly obstacles?: Obstacles
  /** Told of upstreams that could not be connected to. */
  readonly prober?: ActorRef<ProberMessage>
}

/** By id of the upstream; null = trainable. */
export type Obstacles = Readonly<Record<string, UpstreamObstacle | null>>

/** The gateway of one life of the actor. */
export interface GatewayHolder {
  /** Port of the life before, or the configured one. */
  port: number
  opening: Promise<Gateway> | null
  readonly gate: PauseGate
  /** Of the upstreams that are probed. */
  readonly obstacles: Map<string, UpstreamObstacle | null>
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
          const { obstacles, gate } = holder
          const onLost = (upstream: string) => lost(options, holder, context, upstream)
          holder.opening = openGateway({ ...options, port: holder.port, gate, clock, log, obstacles, onLost })
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
      case 'set-standing':
        return doing(() => void holder.obstacles.set(effect.upstream, effect.obstacle))
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

/** What comes back after a refused connection may be another server: nothing of it is trained on until it is probed. */
function lost(
  { prober }: ProxyOptions,
  { obstacles }: GatewayHolder,
  { log }: ActorContext<ProxyInput>,
  upstream: string,
): void {
  const known = obstacles.get(upstream)
  if (prober === undefined || known === undefined || known === 'upstream_not_probed') return
  obstacles.set(upstream, 'upstream_not_probed')
  log.warn(EVENTS.upstreamLose, { upstream })
  prober.tell({ type: 'upstream-lost', upstream })
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

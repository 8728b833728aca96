// The control actor: serves the control API on its port and publishes events to its subscribers. Its machine knows only whether the
// port listens; what is asked over HTTP goes straight to the ports it was given.

import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { defer, EMPTY, type Observable } from 'rxjs'
import { EventHub } from '../../src/api/event-hub.js'
import type { ControlOptions } from '../../src/api/ports.js'
import { controlServer } from '../../src/api/server.js'
import { errorData } from '../../src/domain/errors.js'
import { unreachable } from '../../src/domain/unreachable.js'
import { EVENTS } from '../../src/observability/events.js'
import type { ControlMessage } from '../protocol/control.js'
import type { ActorProps } from '../system/behavior.js'
import { type ControlEffect, type ControlInput, type ControlState, controlMachine } from './machine.js'

export type ControlDeps = Omit<ControlOptions, 'hub' | 'clock' | 'onFailure'>

/** Events kept for subscribers that come back, as a multiple of one subscriber's queue. */
const RING_FACTOR = 4
/** Requests under way get this long to finish when the port closes. */
const GRACE_MS = 3_000
/** Telemetry of all sessions passes here. */
const MAILBOX_FACTOR = 16

export function controlProps(deps: ControlDeps): ActorProps<ControlMessage, ControlInput, ControlState, ControlEffect> {
  const { plan } = deps
  // A restart takes the port it had, also when the config said "any".
  let port = plan.control.port

  return {
    behavior: () => {
      let server: FastifyInstance | null = null
      return {
        machine: controlMachine(),
        interpret: ({ clock, log }) => {
          const { eventQueue: queue } = plan.limits
          const hub = new EventHub({
            boot: randomUUID().slice(0, 8),
            ring: queue * RING_FACTOR,
            queue,
            now: () => clock.now(),
          })
          const listen = async (): Promise<ControlInput> => {
            const onFailure = (route: string, cause: unknown) => log.error(EVENTS.controlRequestFail, { route, cause })
            server = controlServer({ ...deps, hub, clock, onFailure })
            await server.listen({ host: plan.control.host, port })
            const address = server.server.address()
            if (typeof address === 'object' && address !== null) port = address.port
            const url = plan.control.publicUrl ?? `http://${urlHost(plan.control.host)}:${port}`
            log.info(EVENTS.controlListen, { url })
            return { type: 'listening', url, port }
          }
          return (effect): Observable<ControlInput> => {
            switch (effect.type) {
              case 'listen':
                return defer(listen)
              case 'publish':
                return perform(() => hub.publish(effect.event.type, effect.event.data))
              case 'reply':
                return perform(() =>
                  effect.replyTo.tell(
                    effect.reply.type === 'control-listens'
                      ? { ...effect.reply, subscribers: hub.subscribers }
                      : effect.reply,
                  ),
                )
              default:
                return unreachable(effect)
            }
          }
        },
        onEffectError: (effect, cause) =>
          effect.type === 'listen'
            ? { type: 'listen-failed', error: errorData(cause) }
            : { type: 'effect-failed', effect: effect.type, error: errorData(cause) },
        signal: async (_signal, _state, { clock }) => {
          const open = server
          if (open === null) return
          const closed = open.close()
          const cut = new AbortController()
          clock.sleep(GRACE_MS, cut.signal).then(
            () => open.server.closeAllConnections(),
            () => undefined,
          )
          await closed
          cut.abort()
        },
        summarize: state => ({ ...state.listening, failed: state.failed?.message ?? null, published: state.published }),
      }
    },
    mailbox: { capacity: plan.limits.mailbox * MAILBOX_FACTOR, overflow: 'drop-oldest' },
    supervision: { restart: 'permanent', strategy: 'one-for-one', intensity: 5, periodMs: 60_000 },
    shutdownMs: 5_000,
  }
}

/** A host as it stands in a URL that clients on this machine can use. */
function urlHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

const perform = (work: () => void): Observable<never> =>
  defer(() => {
    work()
    return EMPTY
  })

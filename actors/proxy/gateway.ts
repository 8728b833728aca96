// The gateway of one proxy: its HTTP server on a port of its own and the sessions it serves. Opened and closed by the proxy actor;
// knows no actors but the session refs it tells of reached limits.

import { randomBytes } from 'node:crypto'
import type { Plan } from '../../src/config/plan.js'
import type { CompletionId, SessionId } from '../../src/domain/ids.js'
import { createHttpClient } from '../../src/http/client.js'
import { listen } from '../../src/http/server.js'
import type { UpstreamObstacle } from '../protocol/prober.js'
import type { ProxySession } from '../protocol/proxy.js'
import type { ActorClock, Logger } from '../system/behavior.js'
import type { CaptureSender } from '../threads/port-link.js'
import { serveExchange } from './exchange.js'
import { upstreamTargets } from './models.js'
import type { PauseGate } from './pause-gate.js'
import type { ProxyServices } from './services.js'
import { SessionBook } from './sessions.js'
import { templateFeeds } from './template-feeds.js'
import { tokenFacts } from './token-facts.js'

export interface GatewayOptions {
  readonly plan: Plan
  /** 0 = any free port. */
  readonly port: number
  readonly sender: CaptureSender
  readonly gate: PauseGate
  readonly clock: ActorClock
  readonly log: Logger
  /** Kept up to date by whoever gives it. */
  readonly obstacles: ReadonlyMap<string, UpstreamObstacle | null>
  readonly onLost: (upstream: string) => void
}

export interface Gateway {
  readonly port: number
  put(session: ProxySession): void
  /** Refuses further calls, cancels running ones; resolves when none is left and every frame is answered. */
  closeSession(sessionId: SessionId): Promise<{ readonly calls: number; readonly aborted: number }>
  forget(sessionId: SessionId): void
  describe(): { readonly sessions: number; readonly inflight: number; readonly unacknowledged: number }
  /** Stops accepting, cancels all calls, and cuts what is left after `graceMs`. */
  stop(graceMs: number): Promise<void>
}

/** Rejects with Node's own error when the port cannot be had. */
export async function openGateway(options: GatewayOptions): Promise<Gateway> {
  const { plan, port, sender, gate, clock, log, obstacles, onLost } = options
  const targets = upstreamTargets(plan)
  const connections = Math.max(16, ...plan.upstreams.map(upstream => upstream.concurrency))
  const client = createHttpClient({ connections })
  const sessions = new SessionBook(plan.limits.inflightPerSession, plan.limits.mailbox)
  const services: ProxyServices = {
    addresses: options.plan.upstreams.flatMap(({ urls }) => urls),
    plan,
    targets,
    client,
    sender,
    clock,
    log,
    facts: tokenFacts(client, () => clock.now()),
    sessions,
    gate,
    askFeeds: templateFeeds(client, () => clock.now()),
    rulesOff: new Set(plan.rulesOff),
    obstacles,
    onLost,
    // 48 random bits: unique within a session by far.
    newCompletionId: () => `msg_${randomBytes(6).toString('hex')}` as CompletionId,
  }
  const exchanges = new Set<Promise<void>>()
  const server = await listen({ host: plan.gateway.host, port }, (request, response) => {
    const exchange = serveExchange(services, request, response)
    exchanges.add(exchange)
    void exchange.finally(() => exchanges.delete(exchange))
  })
  return {
    port: server.port,
    put: session => sessions.put(session),
    async closeSession(sessionId) {
      const entry = sessions.find(sessionId)
      if (entry === null) return { calls: 0, aborted: 0 }
      entry.session = { ...entry.session, state: 'ended' }
      entry.cancelAll('session-ended')
      await entry.idle()
      return { calls: entry.calls, aborted: entry.aborted }
    },
    forget: sessionId => sessions.forget(sessionId),
    describe: () => ({
      sessions: sessions.size,
      inflight: sessions.entries().reduce((sum, entry) => sum + entry.running.size, 0),
      unacknowledged: sender.unacknowledged,
    }),
    async stop(graceMs) {
      sessions.stop()
      await server.close(graceMs, (ms, signal) => clock.sleep(ms, signal))
      // Frames of cancelled calls are still on their way to the merge thread.
      const settled = new AbortController()
      await Promise.race([
        Promise.all(exchanges).finally(() => settled.abort()),
        clock.sleep(graceMs, settled.signal).catch(() => {}),
      ])
      await client.close()
    },
  }
}

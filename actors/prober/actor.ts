// The prober actor: probes upstreams in the background and tells every proxy how they stand. It holds nobody up: until a probe has
// passed, calls are served and recorded, and are not trained on.

import { defer, EMPTY, map, Observable } from 'rxjs'
import type { UpstreamPlan } from '../../src/config/plan.js'
import { errorData, RolloutError } from '../../src/domain/errors.js'
import { unreachable } from '../../src/domain/unreachable.js'
import { createHttpClient } from '../../src/http/client.js'
import { EVENTS } from '../../src/observability/events.js'
import type { UpstreamProfile } from '../../src/upstreams/base.js'
import { type ProbeReport, probeUpstream } from '../../src/upstreams/probe.js'
import { upstreams as profiles } from '../../src/upstreams/registry.js'
import type { ProberMessage, UpstreamStanding } from '../protocol/prober.js'
import type { ProxyMessage } from '../protocol/proxy.js'
import type { ActorContext, ActorProps } from '../system/behavior.js'
import type { Interpreter } from '../system/machine.js'
import type { ActorRef } from '../system/ref.js'
import { type ProberEffect, type ProberInput, type ProberState, proberMachine } from './machine.js'

export interface ProberOptions {
  /** Those to probe (`upstreams[].probe`). */
  readonly upstreams: readonly UpstreamPlan[]
  readonly proxies: readonly ActorRef<ProxyMessage>[]
  /** Told each standing, for questions from outside. */
  readonly onStanding: (standing: UpstreamStanding) => void
  readonly mailbox: number
}

/** Connections of one probe. */
const CONNECTIONS = 8

export function proberProps(options: ProberOptions): ActorProps<ProberMessage, ProberInput, ProberState, ProberEffect> {
  return {
    behavior: () => ({
      machine: proberMachine(options.upstreams.map(({ id }) => id)),
      interpret: context => proberInterpreter(options, context),
      onEffectError: (effect, cause) => ({
        type: 'probe-failed',
        upstream: effect.type === 'publish' ? effect.standing.upstream : effect.upstream,
        error: errorData(cause),
      }),
      summarize: ({ upstreams }) =>
        Object.fromEntries(Object.entries(upstreams).map(([id, { phase, obstacle }]) => [id, { phase, obstacle }])),
    }),
    mailbox: { capacity: options.mailbox, overflow: 'refuse' },
    supervision: { restart: 'permanent', strategy: 'one-for-one', intensity: 5, periodMs: 60_000 },
    shutdownMs: 5_000,
  }
}

function proberInterpreter(
  { upstreams, proxies, onStanding }: ProberOptions,
  { clock, log }: ActorContext<ProberInput>,
): Interpreter<ProberInput, ProberEffect> {
  const doing = (work: () => void): Observable<ProberInput> =>
    defer(() => {
      work()
      return EMPTY
    })
  return effect => {
    switch (effect.type) {
      case 'probe':
        return probe$(upstreams, effect.upstream, clock).pipe(
          map((report): ProberInput => ({ type: 'probe-done', upstream: effect.upstream, report })),
        )
      case 'arm-timer':
        return clock
          .timer$(effect.afterMs)
          .pipe(map((): ProberInput => ({ type: 'probe-due', upstream: effect.upstream })))
      case 'publish':
        return doing(() => {
          const { upstream, obstacle } = effect.standing
          onStanding(effect.standing)
          for (const proxy of proxies) proxy.tell({ type: 'upstream-standing', upstream, obstacle })
        })
      case 'log':
        return doing(() => {
          const { verdict, reasons, findings, calls, durationMs } = effect.report
          const cures = findings.flatMap(({ outcome, cure }) => (outcome === 'fault' && cure !== null ? [cure] : []))
          const fields = { upstream: effect.upstream, verdict, reasons, cures, calls, durationMs }
          if (verdict === 'trainable') log.info(EVENTS.upstreamProbe, fields)
          else log.warn(EVENTS.upstreamProbe, fields)
        })
      case 'log-failure':
        return doing(() => log.error(EVENTS.upstreamProbeFail, { upstream: effect.upstream, error: effect.error }))
      default:
        return unreachable(effect)
    }
  }
}

/** One probe with a client of its own; aborted when it is unsubscribed from. */
function probe$(
  upstreams: readonly UpstreamPlan[],
  id: string,
  clock: ActorContext<ProberInput>['clock'],
): Observable<ProbeReport> {
  return new Observable(subscriber => {
    const stopping = new AbortController()
    const run = async (): Promise<void> => {
      const client = createHttpClient({ connections: CONNECTIONS })
      try {
        subscriber.next(await probeUpstream(targetOf(upstreams, id), { client, clock, signal: stopping.signal }))
        subscriber.complete()
      } catch (cause) {
        if (!stopping.signal.aborted) subscriber.error(cause)
      } finally {
        await client.close()
      }
    }
    void run()
    return () => stopping.abort(new RolloutError('ACTOR_DEAD', 'the prober has stopped'))
  })
}

function targetOf(upstreams: readonly UpstreamPlan[], id: string) {
  const plan = upstreams.find(upstream => upstream.id === id)
  const known: Readonly<Record<string, UpstreamProfile>> = profiles
  const profile = plan && known[plan.profile]
  if (plan === undefined || profile === undefined) {
    throw new RolloutError('INTERNAL_BUG', `upstream ${id} cannot be probed: it is not in the plan`)
  }
  const { urls, modelServed, sampling, contextWindow, apiKey } = plan
  return { urls, profile, model: modelServed, sampling, contextWindow, apiKey }
}

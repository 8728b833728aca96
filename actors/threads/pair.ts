// A pair as data for its host: merge-k, then proxy-k, with the port between them. A dead proxy restarts alone, on the port it had;
// a dead merge thread takes its proxy with it: what was on its way to it is not known. What it had acknowledged is in its shard.

import type { MessagePort } from 'node:worker_threads'
import type { Plan, StorePlan } from '../../src/config/plan.js'
import { type GateState, OPEN } from '../../src/domain/inference.js'
import type { Obstacles } from '../proxy/effects.js'
import type { HostedThread, ThreadGroup } from './host.js'
import type { MergeThreadData } from './merge.thread.js'
import { CAPTURE_PORT, START_MS } from './pair-names.js'
import type { ProxyThreadData } from './proxy.thread.js'

/**
 * `number` from 1; `port`: the proxy's model port, 0 = any free one; `gate`, `obstacles`: asked at each start of the proxy. The reply of
 * `proxy-<number>` is `{ port }`.
 */
export function pairThreads(
  plan: Plan,
  number: number,
  port: number,
  gate: () => GateState = () => OPEN,
  obstacles: () => Obstacles = () => ({}),
): Pick<ThreadGroup, 'threads' | 'channels' | 'strategy' | 'intensity' | 'periodMs'> {
  const merge = `merge-${number}`
  const proxy = `proxy-${number}`
  return {
    threads: [
      {
        name: merge,
        entry: new URL('./merge.thread.js', import.meta.url),
        data: () =>
          ({
            limits: plan.limits,
            pair: number,
            failpoint: plan.failpoint ?? null,
            store: plan.store ? { ...shardOf(plan.store, plan.gateway.proxies), stateDir: plan.stateDir } : null,
          }) satisfies MergeThreadData,
        endsBetweenTurns: true,
        startMs: START_MS,
        drainMs: 10_000,
      },
      proxyThread(plan, number, port, gate, obstacles),
    ],
    channels: [{ name: CAPTURE_PORT, between: [merge, proxy] }],
    strategy: 'rest-for-one',
    intensity: 5,
    periodMs: 30_000,
  }
}

/** Each pair's share of what the stores of a service may take. */
const shardOf = (store: StorePlan, pairs: number): StorePlan => ({
  ...store,
  maxBytes: Math.floor(store.maxBytes / pairs),
})

/**
 * A proxy without its merge thread, for use by itself: `onCapturePort` gets main's end of the port that its frames come by, once per
 * life of the thread (`mergeProbe` of the system takes it). The reply of `proxy-<number>` is `{ port }`.
 */
export function proxyAlone(
  plan: Plan,
  number: number,
  port: number,
  onCapturePort: (port: MessagePort) => void,
): Pick<ThreadGroup, 'threads' | 'channels' | 'strategy' | 'intensity' | 'periodMs' | 'onPort'> {
  const thread = proxyThread(
    plan,
    number,
    port,
    () => OPEN,
    () => ({}),
  )
  return {
    threads: [thread],
    channels: [{ name: CAPTURE_PORT, between: ['main', thread.name] }],
    onPort: (_name, capturePort) => onCapturePort(capturePort),
    strategy: 'one-for-one',
    intensity: 5,
    periodMs: 30_000,
  }
}

const proxyThread = (
  plan: Plan,
  number: number,
  port: number,
  gate: () => GateState,
  obstacles: () => Obstacles,
): HostedThread => ({
  name: `proxy-${number}`,
  entry: new URL('./proxy.thread.js', import.meta.url),
  data: last => {
    const had = last?.['port']
    const at = typeof had === 'number' ? had : port
    return { plan, port: at, gate: gate(), obstacles: obstacles() } satisfies ProxyThreadData
  },
  startMs: START_MS,
  drainMs: 15_000,
})

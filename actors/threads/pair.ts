// A pair as data for its host: merge-k, then proxy-k, with the port between them. A dead proxy restarts alone, on the port it had;
// a dead merge thread takes its proxy with it, since the records it held are gone.

import type { Plan } from '../../src/config/plan.js'
import type { Address } from '../system/ref.js'
import type { ThreadGroup } from './host.js'
import type { MergeThreadData } from './merge.thread.js'
import type { ProxyThreadData } from './proxy.thread.js'

/** Name of the port between the two, at both ends. */
export const CAPTURE_PORT = 'capture'
export const PROXY_ACTOR = 'proxy'
export const MERGE_ACTOR = 'merge'
/** A thread boots in tens of milliseconds; a loaded machine takes its time. */
export const START_MS = 20_000

/** Actors of pair `number`; `system` is the name of their thread. */
export const proxyAddress = (number: number): Address => ({ system: `proxy-${number}`, path: `/${PROXY_ACTOR}/` })
export const mergeAddress = (number: number): Address => ({ system: `merge-${number}`, path: `/${MERGE_ACTOR}/` })

/** `number` from 1; `port`: the proxy's model port, 0 = any free one. The reply of `proxy-<number>` is `{ port }`. */
export function pairThreads(
  plan: Plan,
  number: number,
  port: number,
): Pick<ThreadGroup, 'threads' | 'channels' | 'strategy' | 'intensity' | 'periodMs'> {
  const merge = `merge-${number}`
  const proxy = `proxy-${number}`
  return {
    threads: [
      {
        name: merge,
        entry: new URL('./merge.thread.js', import.meta.url),
        data: () => ({ limits: plan.limits }) satisfies MergeThreadData,
        startMs: START_MS,
        drainMs: 10_000,
      },
      {
        name: proxy,
        entry: new URL('./proxy.thread.js', import.meta.url),
        data: last => {
          const had = last?.['port']
          return { plan, port: typeof had === 'number' ? had : port } satisfies ProxyThreadData
        },
        startMs: START_MS,
        drainMs: 15_000,
      },
    ],
    channels: [{ name: CAPTURE_PORT, between: [merge, proxy] }],
    strategy: 'rest-for-one',
    intensity: 5,
    periodMs: 30_000,
  }
}

// What may be said to the prober, which finds out whether what an upstream gives can be trained on, and tells the proxies.

import type { ProbeReport } from '../../src/upstreams/probe.js'

/** Why calls to an upstream may not be trained on; goes into `CompletionRecord.notTrainable`. */
export type UpstreamObstacle = 'upstream_not_probed' | 'upstream_evaluation_only'

export type ProberMessage =
  /** A proxy could not connect to it: what comes back may be another server. It is probed anew. */
  | { readonly type: 'upstream-lost'; readonly upstream: string }
  /** A proxy started anew: the standing of every upstream is told to all again. */
  | { readonly type: 'publish-requested' }

/** What is known of a probed upstream. */
export interface UpstreamStanding {
  readonly upstream: string
  /** null = trainable. */
  readonly obstacle: UpstreamObstacle | null
  /** Of the last probe, which an upstream that was lost since keeps; null = none has ended. */
  readonly report: ProbeReport | null
}

// How the upstreams stand, for those who ask from outside the prober: proxies at their start, the control API. Written by the prober
// alone, in the same thread.

import type { UpstreamStatus } from '../../src/api/ports.js'
import type { Plan } from '../../src/config/plan.js'
import type { UpstreamObstacle, UpstreamStanding } from '../protocol/prober.js'

export interface UpstreamStandings {
  note(standing: UpstreamStanding): void
  /** Of those that are probed, by id; null = trainable. */
  obstacles(): Readonly<Record<string, UpstreamObstacle | null>>
  /** Of all, in the plan's order. */
  upstreams(): readonly UpstreamStatus[]
}

export function upstreamStandings({ upstreams }: Pick<Plan, 'upstreams'>): UpstreamStandings {
  const probed = upstreams.filter(({ probe }) => probe === 'start')
  const standings = new Map(
    probed.map(({ id }): [string, UpstreamStanding] => [
      id,
      { upstream: id, obstacle: 'upstream_not_probed', report: null },
    ]),
  )
  return {
    note: standing => void standings.set(standing.upstream, standing),
    obstacles: () => Object.fromEntries([...standings].map(([id, { obstacle }]) => [id, obstacle])),
    upstreams: () =>
      upstreams.map(({ id, profile }): UpstreamStatus => {
        const standing = standings.get(id)
        if (standing === undefined) return { id, profile, verdict: 'off', report: null }
        const { obstacle, report } = standing
        // After it was lost the last report stands beside it as what it was.
        const verdict = obstacle === 'upstream_not_probed' && report?.verdict !== 'unreachable' ? 'not_probed' : null
        return { id, profile, verdict: verdict ?? report?.verdict ?? 'not_probed', report }
      }),
  }
}

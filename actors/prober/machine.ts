// When an upstream is probed, as data: at the start, again until it can be reached, and anew when a proxy could not connect to it.
// What it gives is not trainable but for an upstream whose last probe says so and that was not lost since. Pure.

import type { ErrorData } from '../../src/domain/errors.js'
import { unreachable } from '../../src/domain/unreachable.js'
import type { ProbeReport } from '../../src/upstreams/probe.js'
import type { ProberMessage, UpstreamObstacle, UpstreamStanding } from '../protocol/prober.js'
import type { Machine, Step } from '../system/machine.js'

export type ProberSelf =
  | { readonly type: 'probe-done'; readonly upstream: string; readonly report: ProbeReport }
  | { readonly type: 'probe-failed'; readonly upstream: string; readonly error: ErrorData }
  | { readonly type: 'probe-due'; readonly upstream: string }

export type ProberInput = ProberMessage | ProberSelf

export type ProberEffect =
  | { readonly type: 'probe'; readonly upstream: string }
  | { readonly type: 'arm-timer'; readonly upstream: string; readonly afterMs: number }
  | { readonly type: 'publish'; readonly standing: UpstreamStanding }
  | { readonly type: 'log'; readonly upstream: string; readonly report: ProbeReport }
  | { readonly type: 'log-failure'; readonly upstream: string; readonly error: ErrorData }

interface Upstream {
  readonly phase: 'probing' | 'waiting' | 'judged'
  /** Lost while it was being probed: the probe's result counts for nothing. */
  readonly isStale: boolean
  /** Probes in a row that told nothing. */
  readonly failures: number
  readonly obstacle: UpstreamObstacle | null
  readonly report: ProbeReport | null
}

export interface ProberState {
  readonly upstreams: Readonly<Record<string, Upstream>>
}

type ProberStep = Step<ProberState, ProberEffect>

/** Waits between probes of an upstream that cannot be reached, or not be probed in time. */
const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 60_000

/** `upstreams`: ids of those that are probed. */
export function proberMachine(upstreams: readonly string[]): Machine<ProberState, ProberInput, ProberEffect> {
  const fresh: Upstream = {
    phase: 'probing',
    isStale: false,
    failures: 0,
    obstacle: 'upstream_not_probed',
    report: null,
  }
  return {
    initial: {
      state: { upstreams: Object.fromEntries(upstreams.map(id => [id, fresh])) },
      effects: upstreams.map(upstream => ({ type: 'probe', upstream })),
    },
    // One scope for the whole life: what becomes of one upstream cancels nothing of another.
    scope: () => 'life',
    step,
  }
}

function step(state: ProberState, message: ProberInput): ProberStep {
  if (message.type === 'publish-requested') {
    const effects = Object.keys(state.upstreams).flatMap(upstream => publish(state, upstream))
    return { state, effects }
  }
  const { upstream } = message
  const known = state.upstreams[upstream]
  // A proxy may know upstreams that are not probed.
  if (known === undefined) return { state, effects: [] }
  switch (message.type) {
    case 'upstream-lost': {
      if (known.phase === 'probing') return change(state, upstream, { ...known, isStale: true }, [])
      if (known.phase === 'waiting') return { state, effects: [] }
      const lost: Upstream = { ...known, phase: 'waiting', obstacle: 'upstream_not_probed', failures: 0 }
      return published(state, upstream, lost, [{ type: 'arm-timer', upstream, afterMs: FIRST_WAIT_MS }])
    }
    case 'probe-due':
      return known.phase === 'waiting'
        ? change(state, upstream, { ...known, phase: 'probing', isStale: false }, [{ type: 'probe', upstream }])
        : { state, effects: [] }
    case 'probe-failed':
      return known.phase === 'probing'
        ? again(state, upstream, known, [{ type: 'log-failure', upstream, error: message.error }])
        : { state, effects: [] }
    case 'probe-done': {
      if (known.phase !== 'probing') return { state, effects: [] }
      const { report } = message
      const log: ProberEffect = { type: 'log', upstream, report }
      if (known.isStale || report.verdict === 'unreachable') return again(state, upstream, { ...known, report }, [log])
      const obstacle = report.verdict === 'trainable' ? null : 'upstream_evaluation_only'
      // Under load a probe may not end in time; that says nothing of the server itself.
      if (report.reasons.includes('probe_unfinished')) {
        return again(state, upstream, { ...known, report, obstacle }, [log])
      }
      const judged: Upstream = { phase: 'judged', isStale: false, failures: 0, obstacle, report }
      return published(state, upstream, judged, [log])
    }
    default:
      return unreachable(message)
  }
}

/** Probed once more, after a wait that grows. */
function again(state: ProberState, upstream: string, known: Upstream, effects: readonly ProberEffect[]): ProberStep {
  const afterMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(known.failures, 16))
  const waiting: Upstream = { ...known, phase: 'waiting', isStale: false, failures: known.failures + 1 }
  return published(state, upstream, waiting, [...effects, { type: 'arm-timer', upstream, afterMs }])
}

function published(
  before: ProberState,
  upstream: string,
  next: Upstream,
  effects: readonly ProberEffect[],
): ProberStep {
  const { state } = change(before, upstream, next, [])
  return { state, effects: [...effects, ...publish(state, upstream)] }
}

const change = (
  state: ProberState,
  upstream: string,
  next: Upstream,
  effects: readonly ProberEffect[],
): ProberStep => ({ state: { upstreams: { ...state.upstreams, [upstream]: next } }, effects })

function publish({ upstreams }: ProberState, upstream: string): readonly ProberEffect[] {
  const known = upstreams[upstream]
  if (known === undefined) return []
  const { obstacle, report } = known
  return [{ type: 'publish', standing: { upstream, obstacle, report } }]
}

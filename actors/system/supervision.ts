// What a parent does when a child fails, as plain decisions: whether to restart, when to give up, how long to wait.

import type { ActorProps, TerminatedReason } from './behavior.js'
import type { AnyMessage } from './ref.js'

export type Supervision = ActorProps<AnyMessage, AnyMessage, unknown, unknown>['supervision']

const BACKOFF_FIRST_MS = 100
const BACKOFF_LAST_MS = 10_000

/** Wait before the n-th restart in a row, from 1: 100 ms, doubling to 10 s. */
export const backoffMs = (restart: number): number => Math.min(BACKOFF_FIRST_MS * 2 ** (restart - 1), BACKOFF_LAST_MS)

export interface RestartBudget {
  /** Number of this restart within the period, from 1; null when the intensity is used up. */
  take(nowMs: number): number | null
}

/** At most `intensity` restarts in any `periodMs`. */
export function restartBudget(intensity: number, periodMs: number): RestartBudget {
  let taken: readonly number[] = []
  return {
    take(nowMs) {
      taken = taken.filter(at => nowMs - at < periodMs)
      if (taken.length >= intensity) return null
      taken = [...taken, nowMs]
      return taken.length
    },
  }
}

export type Decision =
  | { readonly action: 'end'; readonly reason: TerminatedReason }
  | { readonly action: 'restart'; readonly waitMs: number }
  | { readonly action: 'escalate' }

/** `ended`: `crashed`, or `stopped` by its own machine (`done`). */
export function decide(
  supervision: Supervision,
  ended: 'crashed' | 'stopped',
  budget: RestartBudget,
  nowMs: number,
): Decision {
  const wanted = supervision.restart === 'permanent' || (supervision.restart === 'transient' && ended === 'crashed')
  if (!wanted) return { action: 'end', reason: ended }
  const restart = budget.take(nowMs)
  return restart === null ? { action: 'escalate' } : { action: 'restart', waitMs: backoffMs(restart) }
}

// Time that a session's calls wait at a pause is not its own: the budgets of its run stand still meanwhile. Pure.

export interface Held {
  /** Since when; null = no call waits. */
  readonly sinceMs: number | null
  /** Time held that no deadline has been moved by yet, milliseconds; without the wait that goes on. */
  readonly dueMs: number
}

export const NOT_HELD: Held = { sinceMs: null, dueMs: 0 }

export const holdAt = (held: Held, atMs: number): Held => (held.sinceMs === null ? { ...held, sinceMs: atMs } : held)

export const releaseAt = ({ sinceMs, dueMs }: Held, atMs: number): Held =>
  sinceMs === null ? { sinceMs, dueMs } : { sinceMs: null, dueMs: dueMs + Math.max(0, atMs - sinceMs) }

/** At a deadline: by how much it moves, and what is left to move the next one by. A wait that goes on is counted up to now. */
export function extension({ sinceMs, dueMs }: Held, atMs: number): { readonly byMs: number; readonly held: Held } {
  const byMs = dueMs + (sinceMs === null ? 0 : Math.max(0, atMs - sinceMs))
  return { byMs, held: { sinceMs: sinceMs === null ? null : atMs, dueMs: 0 } }
}

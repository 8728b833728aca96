// The task's limits on a session: turns and tokens, summed over its calls. A limit that is reached ends the session, not the call
// that reached it: the next one gets a final stop.

import type { SessionEntry } from './sessions.js'

/** Name of the limit that is reached, or null. */
export function reachedLimit({ session: { limits }, turns, promptTokens, sampledTokens }: SessionEntry): string | null {
  const isOver = (limit: number | null, value: number) => limit !== null && value >= limit
  if (isOver(limits.max_turns, turns)) return 'max_turns'
  if (isOver(limits.max_input_tokens, promptTokens)) return 'max_input_tokens'
  if (isOver(limits.max_output_tokens, sampledTokens)) return 'max_output_tokens'
  if (isOver(limits.max_total_tokens, promptTokens + sampledTokens)) return 'max_total_tokens'
  return null
}

/** Tokens that may still be sampled; null = no limit. At least 1 while no limit is reached. */
export function outputBudget({ session: { limits }, promptTokens, sampledTokens }: SessionEntry): number | null {
  const left = [
    limits.max_output_tokens === null ? null : limits.max_output_tokens - sampledTokens,
    limits.max_total_tokens === null ? null : limits.max_total_tokens - promptTokens - sampledTokens,
  ].filter(tokens => tokens !== null)
  return left.length === 0 ? null : Math.max(1, Math.min(...left))
}

/** Smaller of the two; null = none known. */
export function smaller(a: number | null, b: number | null): number | null {
  if (a === null) return b
  return b === null ? a : Math.min(a, b)
}

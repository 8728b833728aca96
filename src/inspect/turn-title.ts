// The line over a turn. Pure.

import { count, duration, plural } from './format.js'
import type { Turn } from './turns.js'

export const joinText = ({ call }: Turn): string => (call.join ? `join ${call.join}` : 'first call')

/** Call, tokens, time. The join stands before it. */
export function turnTitle({ call, tokens, contextIds }: Turn): string {
  const trained = tokens.filter(token => token.trained).length
  const state =
    trained > 0
      ? 'trained'
      : call.set_aside
        ? `set aside: ${call.set_aside}`
        : call.trained
          ? 'masked'
          : 'trained in another trace'
  const mixed = call.policy_version_start !== call.policy_version_end
  return [
    call.completion_id,
    contextIds.length > 0 && plural(contextIds.length, 'context token'),
    `${count(tokens.length)} sampled, ${state}`,
    call.finish_reason && `finish ${call.finish_reason}`,
    call.finished_at_ms > call.started_at_ms && duration(call.finished_at_ms - call.started_at_ms),
    call.cached_tokens > 0 && `${count(call.cached_tokens)} of ${count(call.prompt_tokens)} prompt tokens cached`,
    (mixed || call.policy_version_start) &&
      `policy ${mixed ? `${call.policy_version_start} → ${call.policy_version_end}` : call.policy_version_start}`,
  ]
    .filter(Boolean)
    .join(' · ')
}

// The rollout actor: owns tasks, starts session actors as stages have room, collects their results. Sessions are its children.

import type { RolloutMessage } from '../protocol/rollout.js'
import type { ActorProps } from '../system/behavior.js'
import { effectFailed, type RolloutDeps, rolloutEffects } from './effects.js'
import { rolloutMachine } from './machine.js'
import type { RolloutEffect, RolloutInput, RolloutState } from './state.js'

/** Reports of all sessions go through one mailbox; it holds a burst of each of thousands. */
const MAILBOX_FACTOR = 64
/** Sessions are stopped first, and their shutdown takes up to 20 s. */
const SHUTDOWN_MS = 25_000

/** `mailbox`: `limits.mailbox` of the plan. */
export function rolloutProps(
  deps: RolloutDeps,
  mailbox: number,
): ActorProps<RolloutMessage, RolloutInput, RolloutState, RolloutEffect> {
  return {
    behavior: () => ({
      machine: rolloutMachine(deps.settings),
      interpret: context => rolloutEffects(deps, context),
      onEffectError: effectFailed,
      // A session's actor is named by its id.
      terminated: ({ path }, reason) => ({
        type: 'session-gone',
        sessionId: path.split('/').filter(Boolean).at(-1) ?? '',
        reason,
      }),
      summarize: state => ({
        live: state.live.size,
        ended: state.ended.size,
        active: state.active.size,
        queued: state.queued,
        slots: state.slots,
        draining: state.draining,
      }),
    }),
    mailbox: { capacity: mailbox * MAILBOX_FACTOR, overflow: 'refuse' },
    supervision: { restart: 'permanent', strategy: 'one-for-one', intensity: 5, periodMs: 60_000 },
    shutdownMs: SHUTDOWN_MS,
  }
}

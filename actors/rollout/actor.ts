// The rollout actor: owns tasks, starts session actors as stages have room, collects their results. Sessions are its children.

import { EVENTS } from '../../src/observability/events.js'
import { failpoint } from '../../src/observability/failpoints.js'
import type { KeptState } from '../../src/store/control-records.js'
import type { RolloutMessage } from '../protocol/rollout.js'
import type { ActorProps, Logger } from '../system/behavior.js'
import { effectFailed, type RolloutDeps, rolloutEffects } from './effects.js'
import { rolloutMachine } from './machine.js'
import { recovered } from './recover.js'
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
    behavior: () => {
      // Also after a crash of this actor: its sessions went with it.
      const kept = deps.store.load()
      failpoint('recovery.loaded')
      return {
        machine: rolloutMachine(deps.settings, recovered(deps.settings, kept, deps.now())),
        interpret: context => {
          logKept(context.log, kept)
          // The end may have come between a result and what follows it.
          for (const { sessionId, pair, result } of kept.sessions)
            if (result !== null) deps.releaseRecords(sessionId, pair)
          return rolloutEffects(deps, context)
        },
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
      }
    },
    mailbox: { capacity: mailbox * MAILBOX_FACTOR, overflow: 'refuse' },
    supervision: { restart: 'permanent', strategy: 'one-for-one', intensity: 5, periodMs: 60_000 },
    shutdownMs: SHUTDOWN_MS,
  }
}

function logKept(log: Logger, { tasks, sessions, outbox }: KeptState): void {
  if (tasks.length === 0) return
  const live = tasks.filter(({ status }) => status === 'running' || status === 'cancelling')
  const begun = sessions.filter(({ result }) => result === null)
  const waiting =
    live.reduce((sum, { sessionIds }) => sum + sessionIds.length, 0) -
    sessions.filter(({ taskId, generation }) =>
      live.some(task => task.taskId === taskId && task.generation === generation),
    ).length
  log.info(EVENTS.serviceRecover, {
    tasks: tasks.length,
    live: live.length,
    orphans: begun.length,
    queued: waiting,
    undelivered: outbox.length,
  })
}

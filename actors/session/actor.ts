// The session actor: one per session, temporary (never restarted in place). It owns no thread and no process itself; stages
// watches it, so that what it had running is torn down when it ends in any other way than by its machine.

import { errorData } from '../../src/domain/errors.js'
import type { SessionMessage } from '../protocol/session.js'
import type { ActorProps } from '../system/behavior.js'
import { type SessionDeps, sessionEffects } from './effects.js'
import { sessionMachine } from './machine.js'
import type { SessionEffect, SessionInput, SessionState } from './state.js'

/** Facts that may pile up while one is handled: a handful per model call. */
const MAILBOX_CAPACITY = 1024

/** Props of one session. The actor stops by itself after `session-ended`. */
export function sessionProps(deps: SessionDeps): ActorProps<SessionMessage, SessionInput, SessionState, SessionEffect> {
  return {
    behavior: () => ({
      machine: sessionMachine(deps.setup),
      interpret: context => sessionEffects(deps, context),
      onEffectError: (effect, cause) => ({ type: 'effect-failed', effect: effect.type, error: errorData(cause) }),
      summarize: state => ({
        sessionId: state.setup.spec.sessionId,
        phase: state.phase,
        status: state.status,
        calls: state.calls,
        sampledTokens: state.sampledTokens,
        cancelled: state.cancelled,
        process: state.process?.pid ?? null,
      }),
    }),
    mailbox: { capacity: MAILBOX_CAPACITY, overflow: 'refuse' },
    supervision: { restart: 'temporary', strategy: 'one-for-one', intensity: 0, periodMs: 1_000 },
    shutdownMs: 20_000,
  }
}

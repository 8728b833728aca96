// The callback actor: delivers results to trainers, apart from everything else, so that a receiver that stays away holds up nothing.

import { errorData } from '../../src/domain/errors.js'
import type { CallbackMessage } from '../protocol/callback.js'
import type { ActorProps } from '../system/behavior.js'
import { type CallbackDeps, callbackEffects } from './effects.js'
import {
  type CallbackEffect,
  type CallbackInput,
  type CallbackSettings,
  type CallbackState,
  callbackMachine,
} from './machine.js'

export interface CallbackOptions {
  readonly settings: CallbackSettings
  readonly deps: CallbackDeps
  readonly mailbox: number
}

export function callbackProps(
  options: CallbackOptions,
): ActorProps<CallbackMessage, CallbackInput, CallbackState, CallbackEffect> {
  return {
    behavior: () => ({
      machine: callbackMachine(options.settings),
      interpret: context => callbackEffects(options.deps, context),
      onEffectError: (effect, cause) => ({ type: 'effect-failed', effect: effect.type, error: errorData(cause) }),
      signal: async signal => {
        if (signal.type === 'post-stop') await options.deps.client.close()
      },
      summarize: ({ deliveries, delivered, undelivered }) => ({ pending: deliveries.size, delivered, undelivered }),
    }),
    mailbox: { capacity: options.mailbox, overflow: 'refuse' },
    supervision: { restart: 'permanent', strategy: 'one-for-one', intensity: 5, periodMs: 60_000 },
    shutdownMs: 5_000,
  }
}

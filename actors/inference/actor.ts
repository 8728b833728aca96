// The inference actor: pauses and resumes the model calls of all proxies, for updates of the weights.

import { errorData } from '../../src/domain/errors.js'
import type { InferenceMessage } from '../protocol/inference.js'
import type { ActorProps } from '../system/behavior.js'
import { type InferenceDeps, inferenceEffects } from './effects.js'
import { type InferenceEffect, type InferenceInput, type InferenceState, inferenceMachine } from './machine.js'

export function inferenceProps(
  deps: InferenceDeps,
  mailbox: number,
): ActorProps<InferenceMessage, InferenceInput, InferenceState, InferenceEffect> {
  return {
    behavior: () => ({
      machine: inferenceMachine(deps.memory.read()),
      interpret: context => inferenceEffects(deps, context),
      onEffectError: (effect, cause) => ({ type: 'effect-failed', effect: effect.type, error: errorData(cause) }),
      summarize: ({ record, expired }) => ({
        paused: record.pause?.owner ?? null,
        policyVersion: record.policyVersion,
        updates: record.updates,
        expired,
      }),
    }),
    mailbox: { capacity: mailbox, overflow: 'refuse' },
    supervision: { restart: 'permanent', strategy: 'one-for-one', intensity: 5, periodMs: 60_000 },
    shutdownMs: 5_000,
  }
}

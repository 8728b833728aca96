// The stages actor: owns the INIT, RUNNING and POSTRUN pools, the READY buffer and every slot. Pools live as long as one start of
// it. Before a restart every session that was somewhere is told that its stage is lost, so that none waits for an answer.

import type { Plan } from '../../src/config/plan.js'
import { errorData } from '../../src/domain/errors.js'
import type { SessionMessage } from '../protocol/session.js'
import type { StagesMessage } from '../protocol/stages.js'
import type { ActorProps } from '../system/behavior.js'
import { type StagesDeps, type StagesInterpreter, stagesEffects } from './effects.js'
import { countPlaces, lostStage, stagesMachine } from './machine.js'
import type { StagesEffect, StagesInput, StagesLimits, StagesState } from './state.js'

/** POSTRUN jobs may wait this many times over before INIT stops. */
const POSTRUN_QUEUE_FACTOR = 4

export const stagesLimitsOf = ({ stages, limits }: Pick<Plan, 'stages' | 'limits'>): StagesLimits => ({
  ...stages,
  postrunQueue: stages.postrun * POSTRUN_QUEUE_FACTOR,
  initQueue: limits.queuedSessions,
})

/** `capacity`: mailbox, messages. */
export function stagesProps(
  limits: StagesLimits,
  capacity: number,
  deps: StagesDeps,
): ActorProps<StagesMessage, StagesInput, StagesState, StagesEffect> {
  return {
    behavior: () => {
      let effects: StagesInterpreter | null = null
      return {
        machine: stagesMachine(limits),
        interpret(context) {
          effects = stagesEffects(deps, context)
          return effects.interpret
        },
        onEffectError: (effect, cause) => ({ type: 'effect-failed', effect: effect.type, error: errorData(cause) }),
        terminated: address => ({ type: 'session-terminated', address }),
        async signal(signal, { entries }, context) {
          await effects?.close()
          if (signal.type !== 'pre-restart') return
          for (const entry of entries.values()) {
            entry.session.tell({ ...lostStage(entry, signal.cause), atMs: context.clock.now() } as SessionMessage)
          }
        },
        summarize: state => ({
          ...countPlaces(state.entries),
          readyHighWater: state.readyHighWater,
          draining: state.draining,
        }),
      }
    },
    mailbox: { capacity, overflow: 'refuse' },
    supervision: { restart: 'permanent', strategy: 'one-for-one', intensity: 5, periodMs: 60_000 },
    shutdownMs: 30_000,
  }
}

// The evaluators by wire name. The one line to add when an evaluator is added.

import { RolloutError } from '../domain/errors.js'
import type { EvaluatorPlugin } from './base.js'
import { sessionCompleted } from './session-completed.js'
import { testOnOutput } from './test-on-output.js'

export const evaluators = {
  session_completed: sessionCompleted,
  test_on_output: testOnOutput,
} as const satisfies Record<string, EvaluatorPlugin>

export type EvaluatorId = keyof typeof evaluators

export const isEvaluatorId = (id: string): id is EvaluatorId => Object.hasOwn(evaluators, id)

/** Throws TASK_INVALID when no evaluator has this name. */
export function evaluatorPlugin(strategy: string): EvaluatorPlugin {
  if (isEvaluatorId(strategy)) return evaluators[strategy]
  throw new RolloutError(
    'TASK_INVALID',
    `evaluator.strategy: wanted one of ${Object.keys(evaluators).join(', ')}, got ${JSON.stringify(strategy)}`,
  )
}

// What a stage hands back: facts that both the session's and the stages' protocol speak of.

import type { ErrorData } from '../../src/domain/errors.js'
import type { EvaluationResult } from '../../src/domain/session.js'
import type { Trajectory } from '../../src/domain/trajectory.js'
import type { TeardownReport } from '../../src/runtimes/base.js'

export interface PostrunOutcome {
  readonly trajectory: Trajectory
  readonly evaluation: EvaluationResult | null
  readonly evaluationError: ErrorData | null
  readonly evaluationTimedOut: boolean
  /** The builder failed or ran out of its budget: the trajectory has counts and no traces. */
  readonly buildError: ErrorData | null
  readonly teardown: TeardownReport | null
  readonly timing: Readonly<Record<string, number>>
}

export interface PostrunCrash {
  readonly error: ErrorData
  /** What stages' own teardown found; null when it failed too. */
  readonly teardown: TeardownReport | null
}

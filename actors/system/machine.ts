// State machines as data: `step` is total, deterministic and synchronous; effects are data that an interpreter carries out.

import type { Observable } from 'rxjs'

export interface Step<S, F> {
  readonly state: S
  readonly effects: readonly F[]
}

export interface Machine<S, M, F> {
  /** Its effects are run at the start. */
  readonly initial: Step<S, F>
  step(state: S, message: M): Step<S, F>
  /** Effects asked for in one scope are cancelled (unsubscribed) when the machine leaves it. */
  scope(state: S): string
  /** True = the actor stops after this step. Its effects are started (a tell is done) and cancelled at once. */
  done?(state: S): boolean
}

/** Turns one effect into messages to self. Teardown of the Observable cancels the effect. */
export type Interpreter<M, F> = (effect: F) => Observable<M>

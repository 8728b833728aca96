// Marble tests of machines in one line: letters in, phases out, time virtual. A letter takes one frame (1 ms) itself.

import { map, type Observable } from 'rxjs'
import { TestScheduler } from 'rxjs/testing'
import type { ActorClock } from '../../actors/system/behavior.js'
import { schedulerClock } from '../../actors/system/clock.js'
import type { Interpreter, Machine } from '../../actors/system/machine.js'
import { runMachine } from '../../actors/system/run-machine.js'

export interface MarbleCase<S, M, F> {
  readonly machine: Machine<S, M, F>
  /** Gets the virtual clock: `effect => clock.timer$(effect.afterMs).pipe(map(() => message))`. */
  readonly interpret: (clock: ActorClock) => Interpreter<M, F>
  readonly onEffectError: (effect: F, cause: unknown) => M
  /** Letter of the inbox script -> message. */
  readonly letters: Readonly<Record<string, M>>
  /** One letter for the state after each message. */
  readonly phase: (state: S) => string
}

interface StrictSame {
  strictSame(actual: unknown, expected: unknown): unknown
  end(): unknown
}

/**
 * `const phases = phasesOf({ machine, interpret, letters, phase, ... })`, then
 * `t.test('an unanswered init ends at its deadline', t => phases(t, '-a', '-I 29ms T'))`.
 */
export function phasesOf<S, M, F>({ machine, interpret, onEffectError, letters, phase }: MarbleCase<S, M, F>) {
  return (t: StrictSame, script: string, expected: string): void => {
    const scheduler = new TestScheduler((actual, wanted) => {
      t.strictSame(actual, wanted)
    })
    scheduler.run(({ hot, expectObservable }) => {
      const inbox$: Observable<M> = hot(script, letters)
      const steps$ = runMachine(machine, inbox$, interpret(schedulerClock(scheduler)), onEffectError)
      expectObservable(steps$.pipe(map(step => phase(step.state)))).toBe(expected)
    })
    t.end()
  }
}

// Runs a machine: `scan` inside, effects at the edge. Nothing here knows of actors, so a machine can be run in a marble test.
// Must hold: messages are stepped in the order they came, one after the other, also when an effect answers synchronously;
// an effect never outlives the scope that asked for it; a throw in `step` errors the stream and cancels every effect.

import {
  catchError,
  defer,
  endWith,
  filter,
  map,
  merge,
  mergeMap,
  Observable,
  observeOn,
  of,
  queueScheduler,
  Subject,
  scan,
  subscribeOn,
  takeUntil,
  takeWhile,
  tap,
} from 'rxjs'
import type { Interpreter, Machine, Step } from './machine.js'

/** What goes in: the initial step, messages, the end of the inbox. */
type Input<M> =
  | { readonly kind: 'start' }
  | { readonly kind: 'message'; readonly message: M }
  | { readonly kind: 'end' }

/** What the steps become: the step itself, messages that effects gave, the stop. */
type Output<S, M, F> =
  | { readonly kind: 'step'; readonly step: Step<S, F> }
  | { readonly kind: 'message'; readonly message: M }
  | { readonly kind: 'stop' }

interface Transition<S, F> {
  readonly kind: Input<unknown>['kind']
  readonly step: Step<S, F>
  readonly scope: string
  readonly leftScope: boolean
}

/**
 * Cold: each subscription is a run of its own. Emits the step after each message (the initial one is not emitted, but its effects run).
 *
 * Effects of a step start in order and run together. When the scope changes, the effects of the scope left are cancelled before
 * those of the step that left it start. An effect that fails becomes the message of `onEffectError`.
 * Completes when `inbox$` completes or `machine.done` holds; the effects of that last step are started (what they do synchronously,
 * such as a tell, is done) and cancelled at once. Errors with whatever `step`, `scope`, `done` or `onEffectError` threw.
 * `onTeardownError` is told when cancelling an effect throws; the run goes on.
 */
export function runMachine<S, M, F>(
  machine: Machine<S, M, F>,
  inbox$: Observable<M>,
  interpret: Interpreter<M, F>,
  onEffectError: (effect: F, cause: unknown) => M,
  onTeardownError: (effect: F, cause: unknown) => void = rethrow,
): Observable<Step<S, F>> {
  return defer(() => {
    const self$ = new Subject<M>()
    const left$ = new Subject<void>()

    // Teardown is guarded here because an error in it would surface in the scheduler's queue and take other actors' messages with it.
    const run = (effect: F): Observable<Output<S, M, F>> =>
      new Observable<M>(subscriber => {
        const running = interpret(effect).subscribe({
          next: message => subscriber.next(message),
          error: cause => subscriber.error(cause),
          complete: () => subscriber.complete(),
        })
        return () => {
          try {
            running.unsubscribe()
          } catch (cause) {
            onTeardownError(effect, cause)
          }
        }
      }).pipe(
        catchError((cause: unknown) => of(onEffectError(effect, cause))),
        map(message => ({ kind: 'message', message }) as const),
        takeUntil(left$),
      )

    const advance = (last: Transition<S, F>, input: Input<M>): Transition<S, F> => {
      if (input.kind !== 'message') return { ...last, kind: input.kind, leftScope: false }
      const step = machine.step(last.step.state, input.message)
      const scope = machine.scope(step.state)
      return { kind: 'message', step, scope, leftScope: scope !== last.scope }
    }

    const carryOut = ({ kind, step, leftScope }: Transition<S, F>): Observable<Output<S, M, F>> => {
      if (kind === 'end') return of({ kind: 'stop' })
      if (leftScope) left$.next()
      return merge(
        ...(kind === 'message' ? [of({ kind: 'step', step } as const)] : []),
        ...step.effects.map(run),
        ...(machine.done?.(step.state) ? [of({ kind: 'stop' } as const)] : []),
      )
    }

    const first: Transition<S, F> = {
      kind: 'start',
      step: machine.initial,
      scope: machine.scope(machine.initial.state),
      leftScope: false,
    }
    return merge(self$.pipe(map(asMessage)), of(START), inbox$.pipe(map(asMessage), endWith(END))).pipe(
      // Both: the inbox is subscribed before the initial effects run, and a synchronous answer waits for its turn.
      subscribeOn(queueScheduler),
      observeOn(queueScheduler),
      scan(advance, first),
      mergeMap(carryOut),
      tap(output => {
        if (output.kind === 'message') self$.next(output.message)
      }),
      takeWhile(output => output.kind !== 'stop'),
      filter(output => output.kind === 'step'),
      map(output => output.step),
    )
  })
}

const START = { kind: 'start' } as const
const END = { kind: 'end' } as const
const asMessage = <M>(message: M): Input<M> => ({ kind: 'message', message })

function rethrow(_effect: unknown, cause: unknown): never {
  throw cause
}

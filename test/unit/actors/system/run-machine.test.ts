import { EMPTY, map, NEVER, Observable, of, Subject, throwError } from 'rxjs'
import t from 'tap'
import type { Machine } from '../../../../actors/system/machine.js'
import { runMachine } from '../../../../actors/system/run-machine.js'
import { phasesOf } from '../../../support/marbles.js'

// A job: asked (a), it has 30 ms to come ready (r), then 50 ms to finish (f). Waiting may be prolonged (p).
type Message =
  | { type: 'ask' }
  | { type: 'ready' }
  | { type: 'finish' }
  | { type: 'prolong' }
  | { type: 'timed-out' }
  | { type: 'bad' }
interface State {
  readonly phase: 'idle' | 'waiting' | 'working' | 'finished' | 'late'
  readonly round: number
}
interface Effect {
  readonly type: 'arm'
  readonly ms: number
}

const machine: Machine<State, Message, Effect> = {
  initial: { state: { phase: 'idle', round: 0 }, effects: [] },
  step(state, message) {
    switch (message.type) {
      case 'ask':
        return { state: { ...state, phase: 'waiting' }, effects: [{ type: 'arm', ms: 30 }] }
      case 'prolong':
        return { state: { ...state, round: state.round + 1 }, effects: [{ type: 'arm', ms: 30 }] }
      case 'ready':
        return { state: { ...state, phase: 'working' }, effects: [{ type: 'arm', ms: 50 }] }
      case 'finish':
        return { state: { ...state, phase: 'finished' }, effects: [] }
      case 'timed-out':
        return { state: { ...state, phase: 'late' }, effects: [] }
      case 'bad':
        throw new TypeError('bad message')
    }
  },
  scope: ({ phase, round }) => `${phase}#${round}`,
  done: ({ phase }) => phase === 'finished' || phase === 'late',
}

const phases = phasesOf<State, Message, Effect>({
  machine,
  interpret: clock => effect => clock.timer$(effect.ms).pipe(map(() => ({ type: 'timed-out' }) as const)),
  onEffectError: () => ({ type: 'timed-out' }),
  letters: {
    a: { type: 'ask' },
    r: { type: 'ready' },
    f: { type: 'finish' },
    p: { type: 'prolong' },
    x: { type: 'bad' },
  },
  phase: ({ phase }) => ({ idle: 'I', waiting: 'W', working: 'R', finished: 'F', late: 'L' })[phase],
})

t.test('happy path, and a machine that is done completes', t => phases(t, '-a-r-f', '-W-R-(F|)'))
t.test('an unanswered wait ends at its deadline', t => phases(t, '-a', '-W 29ms (L|)'))
t.test('a deadline dies with its phase', t => phases(t, '-a-r', '-W-R 49ms (L|)'))
t.test('a new round of the same phase cancels the timer of the former', t => phases(t, '-a-p', '-W-W 29ms (L|)'))
t.test('the end of the inbox cancels everything', t => phases(t, '-a-|', '-W-|'))
t.test('a throw in step errors the stream and cancels everything', async t => {
  const cancelled: string[] = []
  const inbox$ = new Subject<Message>()
  const seen: string[] = []
  runMachine(
    machine,
    inbox$,
    () => new Observable(() => () => void cancelled.push(`after ${seen.length}`)),
    () => ({ type: 'timed-out' }),
  ).subscribe({ next: ({ state }) => seen.push(state.phase), error: (cause: Error) => seen.push(cause.message) })
  inbox$.next({ type: 'ask' })
  inbox$.next({ type: 'bad' })
  inbox$.next({ type: 'ready' })
  t.strictSame(seen, ['waiting', 'bad message'])
  t.equal(cancelled.length, 1)
  t.notOk(inbox$.observed)
})

type Letter = string
const recorder = (over: Partial<Machine<string, Letter, Letter>> = {}): Machine<string, Letter, Letter> => ({
  initial: { state: '', effects: ['0'] },
  step: (state, letter) => ({ state: state + letter, effects: letter === 'a' ? ['1', '2'] : [] }),
  scope: () => 'same',
  ...over,
})
const statesOf = (run: Observable<{ readonly state: string }>) => {
  const states: string[] = []
  const subscription = run.subscribe({
    next: ({ state }) => states.push(state),
    error: cause => states.push(`${cause}`),
  })
  return { states, subscription }
}

t.test('initial effects run, and an effect that answers synchronously waits for its turn', async t => {
  const inbox$ = new Subject<Letter>()
  const { states } = statesOf(
    runMachine(
      recorder(),
      inbox$,
      effect => of(effect, effect.toUpperCase()),
      () => '!',
    ),
  )
  inbox$.next('a')
  inbox$.next('b')
  t.strictSame(states, ['0', '00', '00a', '00a1', '00a11', '00a112', '00a1122', '00a1122b'])
})

t.test('an inbox that is there at once loses nothing and comes after the initial effects', async t => {
  const { states } = statesOf(
    runMachine(
      recorder(),
      of('x', 'y', 'z'),
      () => EMPTY,
      () => '!',
    ),
  )
  t.strictSame(states, ['x', 'xy', 'xyz'])
})

t.test('an effect that fails becomes a message: thrown at once, thrown by the stream', async t => {
  const inbox$ = new Subject<Letter>()
  const errors: unknown[] = []
  const { states } = statesOf(
    runMachine(
      recorder({ initial: { state: '', effects: [] } }),
      inbox$,
      effect => {
        if (effect === '1') throw new TypeError('one')
        return throwError(() => new TypeError('two'))
      },
      (effect, cause) => {
        errors.push((cause as Error).message)
        return `!${effect}`
      },
    ),
  )
  inbox$.next('a')
  t.strictSame(states, ['a', 'a!1', 'a!1!2'])
  t.strictSame(errors, ['one', 'two'])
})

t.test('effects of the scope left are cancelled before those of the next start', async t => {
  const inbox$ = new Subject<Letter>()
  const log: string[] = []
  const scoped = recorder({
    initial: { state: '', effects: ['start'] },
    step: (state, letter) => ({ state: state + letter, effects: [letter] }),
    scope: state => state,
  })
  const interpret = (effect: Letter) =>
    new Observable<Letter>(() => {
      log.push(`+${effect}`)
      return () => void log.push(`-${effect}`)
    })
  const { subscription } = statesOf(runMachine(scoped, inbox$, interpret, () => '!'))
  inbox$.next('a')
  inbox$.next('b')
  subscription.unsubscribe()
  t.strictSame(log, ['+start', '-start', '+a', '-a', '+b', '-b'])
})

t.test('the effects of the last step are started before the machine stops', async t => {
  const inbox$ = new Subject<Letter>()
  const log: string[] = []
  const interpret = (effect: Letter) =>
    new Observable<Letter>(() => {
      log.push(`+${effect}`)
      return () => void log.push(`-${effect}`)
    })
  let completed = false
  runMachine(
    recorder({ initial: { state: '', effects: [] }, done: state => state === 'a' }),
    inbox$,
    interpret,
    () => '!',
  ).subscribe({
    complete: () => {
      completed = true
    },
  })
  inbox$.next('a')
  t.strictSame(log, ['+1', '+2', '-1', '-2'])
  t.ok(completed)
})

t.test('a teardown that throws is reported and cancels nothing else', async t => {
  const inbox$ = new Subject<Letter>()
  const failed: unknown[] = []
  const { states } = statesOf(
    runMachine(
      recorder({ scope: state => state }),
      inbox$,
      effect =>
        effect === '0'
          ? new Observable<Letter>(() => () => {
              throw new TypeError('cannot cancel')
            })
          : NEVER,
      () => '!',
      (effect, cause) => failed.push([effect, /cannot cancel/.test(`${cause}`)]),
    ),
  )
  inbox$.next('x')
  inbox$.next('y')
  t.strictSame(states, ['x', 'xy'])
  t.strictSame(failed, [['0', true]])
})

// Random scripts against the runner: messages from outside at random turns, effects that answer at once, later or never.

import fc from 'fast-check'
import { EMPTY, map, type Observable, of, Subject } from 'rxjs'
import { TestScheduler } from 'rxjs/testing'
import t from 'tap'
import { schedulerClock } from '../../actors/system/clock.js'
import type { Machine } from '../../actors/system/machine.js'
import { runMachine } from '../../actors/system/run-machine.js'

type Answer = 'none' | 'at once' | 'twice at once' | 'later' | 'throws'
interface Outside {
  readonly from: 'outside'
  readonly n: number
  readonly answers: readonly Answer[]
}
type Message = Outside | { readonly from: 'effect'; readonly of: number; readonly index: number; readonly time: number }
interface Effect {
  readonly of: number
  readonly index: number
  readonly answer: Answer
}

const recorder: Machine<readonly Message[], Message, Effect> = {
  initial: { state: [], effects: [] },
  step: (seen, message) => ({
    state: [...seen, message],
    effects:
      message.from === 'outside' ? message.answers.map((answer, index) => ({ of: message.n, index, answer })) : [],
  }),
  scope: () => 'one',
}

const answerOf = fc.constantFrom<Answer>('none', 'at once', 'twice at once', 'later', 'throws')
const script = fc.array(fc.record({ waitMs: fc.nat({ max: 5 }), answers: fc.array(answerOf, { maxLength: 4 }) }), {
  maxLength: 30,
})

t.test('no message is lost, doubled or reordered', async t => {
  fc.assert(
    fc.property(script, entries => {
      const scheduler = new TestScheduler(() => {})
      let last: readonly Message[] = []
      scheduler.run(({ flush }) => {
        const clock = schedulerClock(scheduler)
        const inbox$ = new Subject<Message>()
        const interpret = ({ of: parent, index, answer }: Effect): Observable<Message> => {
          const reply = (time: number): Message => ({ from: 'effect', of: parent, index, time })
          switch (answer) {
            case 'none':
              return EMPTY
            case 'at once':
              return of(reply(1))
            case 'twice at once':
              return of(reply(1), reply(2))
            case 'later':
              return clock.timer$(3).pipe(map(() => reply(1)))
            case 'throws':
              throw new Error('effect')
          }
        }
        runMachine(
          recorder,
          inbox$,
          interpret,
          ({ of: parent, index }): Message => ({ from: 'effect', of: parent, index, time: 1 }),
        ).subscribe(({ state }) => {
          last = state
        })
        let at = 0
        for (const [n, { waitMs, answers }] of entries.entries()) {
          at += waitMs
          scheduler.schedule(() => inbox$.next({ from: 'outside', n, answers }), at)
        }
        flush()
      })
      const outside = last.filter((message): message is Outside => message.from === 'outside')
      t.strictSame(
        outside.map(({ n }) => n),
        entries.map((_, n) => n),
      )
      const wanted = entries.flatMap(({ answers }, parent) =>
        answers.flatMap((answer, index) => timesOf(answer).map(time => `${parent}.${index}.${time}`)),
      )
      const got = last.flatMap((message, position) =>
        message.from === 'effect' ? [{ key: `${message.of}.${message.index}.${message.time}`, position }] : [],
      )
      t.strictSame(got.map(({ key }) => key).sort(), wanted.sort())
      // What an effect says comes after the message that asked for it, and its own messages keep their order.
      const positionOf = new Map(got.map(({ key, position }) => [key, position]))
      for (const [key, position] of positionOf) {
        const [parent, index, time] = key.split('.').map(Number)
        if ((last.findIndex(message => message.from === 'outside' && message.n === parent) ?? -1) >= position)
          t.fail(`${key} came before its cause`)
        if (time === 2 && (positionOf.get(`${parent}.${index}.1`) ?? Number.POSITIVE_INFINITY) > position)
          t.fail(`${key} overtook`)
      }
    }),
    { numRuns: 300 },
  )
})

function timesOf(answer: Answer): readonly number[] {
  if (answer === 'none') return []
  return answer === 'twice at once' ? [1, 2] : [1]
}

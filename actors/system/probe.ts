// A ref that records what it is told, in place of an actor one does not want to run: for tests, and for users of the library.

import { defer, EMPTY } from 'rxjs'
import { RolloutError } from '../../src/domain/errors.js'
import { after, realClock } from './clock.js'
import type { ActorRef, AnyMessage } from './ref.js'
import type { ActorSystem } from './system.js'

export interface Probe<M extends AnyMessage> {
  readonly ref: ActorRef<M>
  /**
   * The next message of that type not yet expected, now or within `withinMs` of real time (also under a virtual clock);
   * messages of other types before it stay for later calls. Rejects with ACTOR_ASK_TIMEOUT, naming what came instead.
   */
  expectMessage<T extends M['type']>(type: T, withinMs: number): Promise<Extract<M, { readonly type: T }>>
  /** Everything told so far, in order. */
  messages(): readonly M[]
}

/** Messages a probe keeps; what comes after is refused to the sender like by any full mailbox. */
const PROBE_CAPACITY = 100_000

export function spawnProbe<M extends AnyMessage>(system: ActorSystem, name: string): Probe<M> {
  const seen: M[] = []
  const unexpected = new Set<M>()
  const waiting = new Set<(message: M) => boolean>()
  const clock = realClock()

  const record = (message: M) => {
    seen.push(message)
    for (const take of waiting) if (take(message)) return
    unexpected.add(message)
  }
  const ref = system.spawn<M, M, null, M>(
    {
      behavior: () => ({
        machine: {
          initial: { state: null, effects: [] },
          step: (state, message) => ({ state, effects: [message] }),
          scope: () => 'recording',
        },
        interpret: () => message =>
          defer(() => {
            record(message)
            return EMPTY
          }),
        onEffectError: message => message,
      }),
      mailbox: { capacity: PROBE_CAPACITY, overflow: 'refuse' },
      supervision: { restart: 'temporary', strategy: 'one-for-one', intensity: 0, periodMs: 1000 },
      shutdownMs: 100,
    },
    name,
  )

  return {
    ref,
    messages: () => [...seen],
    expectMessage<T extends M['type']>(type: T, withinMs: number) {
      // `type` is the discriminant of the union, so the message found is that variant.
      const wanted = (message: M): message is Extract<M, { readonly type: T }> => message.type === type
      for (const message of unexpected) {
        if (!wanted(message)) continue
        unexpected.delete(message)
        return Promise.resolve(message)
      }
      return new Promise<Extract<M, { readonly type: T }>>((resolve, reject) => {
        const take = (message: M) => {
          if (!wanted(message)) return false
          cancel()
          waiting.delete(take)
          resolve(message)
          return true
        }
        const cancel = after(clock, withinMs, () => {
          waiting.delete(take)
          const instead = [...unexpected].map(message => message.type).join(', ') || 'nothing'
          reject(
            new RolloutError('ACTOR_ASK_TIMEOUT', `${name} was not told ${type} within ${withinMs} ms, but ${instead}`),
          )
        })
        waiting.add(take)
      })
    },
  }
}

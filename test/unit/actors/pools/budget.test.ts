// A time limit and a cancel over work that listens, and over work that does not.

import t from 'tap'
import { withinBudget } from '../../../../actors/pools/budget.js'
import { virtualClock } from '../../../../actors/system/virtual-clock.js'

const never = new AbortController().signal

/** Ends `ms` after its signal fires. */
const listening =
  (clock: ReturnType<typeof virtualClock>, ms: number, ended: () => void) =>
  (signal: AbortSignal): Promise<string> =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        void clock.sleep(ms).then(() => {
          ended()
          reject(signal.reason)
        })
      })
    })

t.test('work that ends in time gives its value, and leaves no timer', async t => {
  const clock = virtualClock()
  t.strictSame(await withinBudget(clock, 100, never, async () => 'value'), { ended: 'done', value: 'value' })
  t.equal(clock.pending(), 0)
})

t.test('work that fails rejects with its own error', async t => {
  const work = () => Promise.reject(new Error('own'))
  await t.rejects(withinBudget(virtualClock(), 100, never, work), { message: 'own' })
})

t.test('at the limit listening work is waited for: nothing of it goes on afterwards', async t => {
  const clock = virtualClock()
  let ended = false
  const result = withinBudget(
    clock,
    100,
    never,
    listening(clock, 2_000, () => {
      ended = true
    }),
  )
  await clock.advance(2_100)
  t.strictSame(await result, { ended: 'timeout' })
  t.ok(ended)
})

t.test('work that does not listen is left behind after its grace', async t => {
  const clock = virtualClock()
  const result = withinBudget(clock, 100, never, () => new Promise<never>(() => {}))
  await clock.advance(100)
  await clock.advance(5_000)
  t.strictSame(await result, { ended: 'timeout' })
  t.equal(clock.pending(), 0)
})

t.test('a cancel stops it, also one that came before', async t => {
  const clock = virtualClock()
  const cancel = new AbortController()
  const result = withinBudget(
    clock,
    100,
    cancel.signal,
    listening(clock, 0, () => {}),
  )
  cancel.abort()
  await clock.advance(1)
  t.strictSame(await result, { ended: 'cancelled' })
  const late = await withinBudget(clock, 100, cancel.signal, async signal => {
    signal.throwIfAborted()
    return 'value'
  })
  t.strictSame(late, { ended: 'cancelled' })
})

import { map, merge } from 'rxjs'
import { TestScheduler } from 'rxjs/testing'
import t from 'tap'
import { after, realClock, schedulerClock, settledWithin } from '../../../../actors/system/clock.js'
import { virtualClock } from '../../../../actors/system/virtual-clock.js'

t.test('a virtual clock fires in order of time, then of arming, and stands still otherwise', async t => {
  const clock = virtualClock(1_000)
  const fired: string[] = []
  const note = (name: string) => () => fired.push(`${name} ${clock.now()}`)
  after(clock, 20, note('late'))
  after(clock, 10, note('first'))
  after(clock, 10, note('second'))
  const cancel = after(clock, 15, note('cancelled'))
  cancel()
  await clock.advance(9)
  t.strictSame(fired, [])
  await clock.advance(30)
  t.strictSame(fired, ['first 1010', 'second 1010', 'late 1020'])
  t.equal(clock.now(), 1_039)
  t.equal(clock.pending(), 0)
})

t.test('what a virtual timer sets off happens before the next one fires', async t => {
  const clock = virtualClock()
  const seen: string[] = []
  const run = async () => {
    await clock.sleep(10)
    seen.push(`a ${clock.now()}`)
    await clock.sleep(10)
    seen.push(`b ${clock.now()}`)
  }
  const running = run()
  after(clock, 25, () => seen.push(`c ${clock.now()}`))
  await clock.advance(100)
  await running
  t.strictSame(seen, ['a 10', 'b 20', 'c 25'])
})

for (const [name, make] of Object.entries({ real: realClock, virtual: virtualClock })) {
  t.test(`${name} clock: an aborted sleep rejects with the reason and disarms`, async t => {
    const clock = make()
    const abort = new AbortController()
    const sleeping = t.rejects(clock.sleep(60_000, abort.signal), { message: 'enough' })
    abort.abort(new Error('enough'))
    await sleeping
    await t.rejects(clock.sleep(60_000, abort.signal), { message: 'enough' }, 'aborted before')
  })
}

t.test('a real timer fires once, also after a wait longer than the platform allows', async t => {
  const clock = realClock()
  let fired = 0
  const cancel = after(clock, 2 ** 31 + 5, () => {
    fired += 1
  })
  await new Promise<void>(resolve => after(clock, 5, resolve))
  t.equal(fired, 0, 'setTimeout by itself would fire at once')
  cancel()
})

t.test('settledWithin says whether it came in time, and a rejection counts as settled', async t => {
  const clock = virtualClock()
  const late = settledWithin(clock, 10, clock.sleep(11))
  const inTime = settledWithin(clock, 10, clock.sleep(9))
  const rejected = settledWithin(clock, 10, Promise.reject(new Error('no')))
  await clock.advance(11)
  t.strictSame(await Promise.all([late, inTime, rejected]), [false, true, true])
  t.equal(clock.pending(), 0)
})

t.test('a scheduler clock runs on the virtual time of marbles', async t => {
  const scheduler = new TestScheduler((actual, expected) => {
    t.strictSame(actual, expected)
  })
  scheduler.run(({ expectObservable }) => {
    const clock = schedulerClock(scheduler)
    const timers = merge(clock.timer$(3).pipe(map(() => 'a')), clock.timer$(1).pipe(map(() => 'b')))
    expectObservable(timers).toBe('-b-(a|)')
  })
})

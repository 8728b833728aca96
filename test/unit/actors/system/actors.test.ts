import { defer, EMPTY } from 'rxjs'
import t from 'tap'
import type { ActorProps } from '../../../../actors/system/behavior.js'
import { realClock } from '../../../../actors/system/clock.js'
import type { ActorRef } from '../../../../actors/system/ref.js'
import { type SampleMessage, sampleActor, type Total } from '../../../support/sample-actor.js'
import { createRealTimeSystem, createTestSystem } from '../../../support/test-system.js'

t.test('messages are handled in the order they were told, and a question is answered', async t => {
  const { system } = createTestSystem(t)
  const sample = system.spawn(sampleActor(), 'sample')
  for (let n = 1; n <= 10; n++) sample.tell({ type: 'add', n })
  const reply = await system.ask(sample, { type: 'total-requested' }, 1_000)
  t.strictSame(reply, { type: 'total', total: 55 })
})

t.test('messages told before the first turn wait in the mailbox', async t => {
  const { system, probe } = createTestSystem(t)
  const told = probe<Total>()
  const sample = system.spawn(sampleActor(), 'sample')
  sample.tell({ type: 'add', n: 2 })
  sample.tell({ type: 'pass-on', to: told.ref })
  t.strictSame(await told.expectMessage('total', 1_000), { type: 'total', total: 2 })
})

t.test('an unanswered question ends at its deadline and leaves nothing behind', async t => {
  const { system, clock } = createTestSystem(t)
  const sample = system.spawn(sampleActor(), 'sample')
  const asked = t.rejects(system.ask(sample, { type: 'silence-requested' }, 500), { code: 'ACTOR_ASK_TIMEOUT' })
  await clock.advance(499)
  t.equal(system.inspect().asks, 1)
  await clock.advance(1)
  await asked
  t.equal(system.inspect().asks, 0)
  t.equal(clock.pending(), 0)
})

t.test('a reply after the deadline is a dead letter', async t => {
  const { system, clock, deadLetters, probe } = createTestSystem(t)
  const asked = probe<{ type: 'question'; replyTo: ActorRef<Total> }>()
  const answer = t.rejects(system.ask(asked.ref, { type: 'question' }, 10), { code: 'ACTOR_ASK_TIMEOUT' })
  const { replyTo } = await asked.expectMessage('question', 1_000)
  await clock.advance(10)
  await answer
  replyTo.tell({ type: 'total', total: 1 })
  t.match(deadLetters, [{ reason: 'late-reply', type: 'total', address: { system: 'test' } }])
})

t.test('ten thousand questions leave no entries behind', async t => {
  const { system, clock } = createTestSystem(t)
  const sample = system.spawn(sampleActor({ mailbox: { capacity: 10_000, overflow: 'refuse' } }), 'sample')
  const replies = await Promise.all(
    Array.from({ length: 10_000 }, () => system.ask(sample, { type: 'total-requested' }, 60_000)),
  )
  t.equal(replies.length, 10_000)
  t.match(system.inspect(), { asks: 0, watches: 0 })
  t.equal(clock.pending(), 0)
})

t.test('a message to nobody is a dead letter with reason, type and address', async t => {
  const { system, deadLetters } = createTestSystem(t)
  const nobody = system.refOf<{ type: 'hello'; secret: string }>({ system: 'test', path: '/nobody/' })
  nobody.tell({ type: 'hello', secret: 'payload' })
  t.strictSame(deadLetters, [
    { reason: 'unknown-address', type: 'hello', address: { system: 'test', path: '/nobody/' } },
  ])
  t.strictSame(system.inspect().deadLetters, { total: 1, byReason: { 'unknown-address': 1 } })
})

t.test('a question to nobody is refused at once', async t => {
  const { system } = createTestSystem(t)
  const nobody = system.refOf<Parameters<typeof ask>[0]>({ system: 'test', path: '/nobody/' })
  const ask = (message: SampleMessage) => message
  await t.rejects(system.ask(nobody, { type: 'total-requested' }, 60_000), { code: 'ACTOR_DEAD' })
})

t.test('a full mailbox refuses the asker and counts one dead letter', async t => {
  const { system, deadLetters } = createTestSystem(t)
  const sample = system.spawn(sampleActor({ mailbox: { capacity: 2, overflow: 'refuse' } }), 'sample')
  sample.tell({ type: 'add', n: 1 })
  sample.tell({ type: 'add', n: 1 })
  await t.rejects(system.ask(sample, { type: 'total-requested' }, 60_000), { code: 'ACTOR_MAILBOX_FULL' })
  t.match(deadLetters, [{ reason: 'mailbox-full', type: 'total-requested' }])
  t.match(await system.ask(sample, { type: 'total-requested' }, 1_000), { total: 2 })
  t.match(system.inspect().actors, [{ path: '/sample/', mailbox: { depth: 0, capacity: 2, overflows: 1 } }])
})

t.test('a mailbox that drops the oldest keeps the newest and counts the rest', async t => {
  const { system, deadLetters } = createTestSystem(t)
  const sample = system.spawn(sampleActor({ mailbox: { capacity: 3, overflow: 'drop-oldest' } }), 'sample')
  for (const n of [1, 10, 100, 1_000, 10_000]) sample.tell({ type: 'add', n })
  await system
    .ask(sample, { type: 'total-requested' }, 1_000)
    .then(reply => t.match(reply, { total: 11_000 }, 'the question pushed out a third'))
  t.strictSame(
    deadLetters.map(letter => letter.reason),
    ['dropped-oldest', 'dropped-oldest', 'dropped-oldest'],
  )
})

t.test('an actor that is done stops, and its address is free', async t => {
  const { system, probe } = createTestSystem(t)
  const sample = system.spawn(sampleActor({ supervision: { restart: 'transient' } }), 'sample')
  const ended = new Promise(resolve => system.watch(sample, (address, reason) => resolve({ address, reason })))
  sample.tell({ type: 'finish' })
  t.strictSame(await ended, { address: { system: 'test', path: '/sample/' }, reason: 'stopped' })
  t.strictSame(system.inspect().actors, [])
  const next = system.spawn(sampleActor(), 'sample')
  const told = probe<Total>()
  sample.tell({ type: 'add', n: 7 })
  next.tell({ type: 'pass-on', to: told.ref })
  t.match(await told.expectMessage('total', 1_000), { total: 7 }, 'a ref is its address')
})

t.test('an actor is told when one it watches ends, also when there was none', async t => {
  const { system } = createTestSystem(t)
  const watcher = system.spawn(sampleActor(), 'watcher')
  const watched = system.spawn(sampleActor(), 'watched')
  watcher.tell({ type: 'watch-other', other: watched })
  watcher.tell({ type: 'watch-other', other: system.refOf({ system: 'test', path: '/nobody/' }) })
  await system.ask(watcher, { type: 'total-requested' }, 1_000)
  await system.stopActor(watched)
  await system.ask(watcher, { type: 'total-requested' }, 1_000)
  t.match(system.inspect().actors, [
    { path: '/watcher/', summary: { ended: ['/nobody/ unknown-address', '/watched/ stopped'] } },
  ])
  t.equal(system.inspect().watches, 0)
})

t.test('names are checked', async t => {
  const { system } = createTestSystem(t)
  system.spawn(sampleActor(), 'one')
  t.throws(() => system.spawn(sampleActor(), 'one'), { code: 'INTERNAL_BUG', message: /there already/ })
  t.throws(() => system.spawn(sampleActor(), 'a/b'), { code: 'INTERNAL_BUG', message: /letters, digits/ })
  t.throws(() => system.spawn(sampleActor(), 'ask'), { code: 'INTERNAL_BUG', message: /reserved/ })
  t.throws(() => system.spawn(sampleActor({ mailbox: { capacity: 0, overflow: 'refuse' } }), 'zero'), {
    code: 'INTERNAL_BUG',
    message: /capacity/,
  })
})

interface Ball {
  readonly type: 'ball'
}
const player = (other: () => ActorRef<Ball>, counts: { n: number }): ActorProps<Ball, Ball, null, 'hit'> => ({
  behavior: () => ({
    machine: {
      initial: { state: null, effects: [] },
      step: state => ({ state, effects: ['hit'] }),
      scope: () => 'playing',
    },
    interpret: () => () =>
      defer(() => {
        counts.n += 1
        other().tell({ type: 'ball' })
        return EMPTY
      }),
    onEffectError: () => ({ type: 'ball' }),
  }),
  mailbox: { capacity: 10, overflow: 'refuse' },
  supervision: { restart: 'temporary', strategy: 'one-for-one', intensity: 0, periodMs: 1_000 },
  shutdownMs: 100,
})

t.test('actors that keep each other busy starve neither timers nor other actors', async t => {
  const clock = realClock()
  const { system } = createRealTimeSystem(t, clock)
  const counts = { n: 0 }
  const one: ActorRef<Ball> = system.spawn(
    player(() => two, counts),
    'one',
  )
  const two: ActorRef<Ball> = system.spawn(
    player(() => one, counts),
    'two',
  )
  const sample = system.spawn(sampleActor(), 'sample')
  one.tell({ type: 'ball' })
  await clock.sleep(20)
  const before = counts.n
  t.ok(before > 100)
  t.match(await system.ask(sample, { type: 'total-requested' }, 5_000), { total: 0 })
  await clock.sleep(1)
  t.ok(counts.n > before, 'and they still play')
})

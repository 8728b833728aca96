import t from 'tap'
import { type SampleMessage, sampleActor } from '../../../support/sample-actor.js'
import { createTestSystem } from '../../../support/test-system.js'

const never = () => new Promise<void>(() => {})

t.test('children stop in reverse order of start, before their parent', async t => {
  const { system, clock } = createTestSystem(t)
  const log: string[] = []
  const noted = (name: string) => ({ signal: ({ type }: { type: string }) => void log.push(`${name} ${type}`) })
  system.spawn(sampleActor({ ...noted('first'), children: { a: noted('a'), b: noted('b') } }), 'first')
  system.spawn(sampleActor(noted('second')), 'second')
  await clock.settle()
  t.strictSame(await system.stop(1_000), { missed: [] })
  t.strictSame(log, ['second post-stop', 'b post-stop', 'a post-stop', 'first post-stop'])
})

t.test('a stop waits for what is being released', async t => {
  const { system, clock } = createTestSystem(t)
  let released = false
  const signal = async () => {
    await clock.sleep(400)
    released = true
  }
  const sample = system.spawn(sampleActor({ signal }), 'sample')
  await clock.settle()
  const stopping = system.stopActor(sample)
  await clock.advance(400)
  t.strictSame(await stopping, { missed: [] })
  t.ok(released)
})

t.test('who misses its deadline is ended by force and named', async t => {
  const { system, clock, log } = createTestSystem(t)
  system.spawn(sampleActor({ children: { slow: { signal: never, shutdownMs: 200 } } }), 'top')
  system.spawn(sampleActor({ signal: never, shutdownMs: 300 }), 'slower')
  await clock.settle()
  const stopping = system.stop(10_000)
  await clock.advance(500)
  t.strictSame(await stopping, {
    missed: [
      { system: 'test', path: '/slower/' },
      { system: 'test', path: '/top/slow/' },
    ],
  })
  t.equal(log.lines.filter(({ event }) => event === 'actor-deadline-miss').length, 2)
  t.equal(clock.pending(), 0)
})

t.test('the deadline of the whole stop cuts those of the actors short', async t => {
  const { system, clock } = createTestSystem(t)
  for (const name of ['a', 'b']) system.spawn(sampleActor({ signal: never, shutdownMs: 60_000 }), name)
  await clock.settle()
  const stopping = system.stop(100)
  await clock.advance(100)
  t.same(new Set((await stopping).missed.map(({ path }) => path)), new Set(['/a/', '/b/']))
})

t.test('neighbours that are temporary stop together', async t => {
  const { system, clock } = createTestSystem(t)
  const slow = { signal: () => clock.sleep(1_000), supervision: { restart: 'temporary' } as const, shutdownMs: 2_000 }
  for (let n = 0; n < 100; n++) system.spawn(sampleActor(slow), `session-${n}`)
  await clock.settle()
  const stopping = system.stop(5_000)
  await clock.advance(1_000)
  t.strictSame(await stopping, { missed: [] })
})

t.test('messages that waited and questions that were asked do not vanish with an actor', async t => {
  const { system, clock, deadLetters } = createTestSystem(t)
  const sample = system.spawn(sampleActor(), 'sample')
  const open = t.rejects(system.ask(sample, { type: 'silence-requested' }, 60_000), { code: 'ACTOR_DEAD' })
  await clock.settle()
  sample.tell({ type: 'crash' })
  await clock.settle()
  sample.tell({ type: 'add', n: 1 })
  const waiting = t.rejects(system.ask(sample, { type: 'total-requested' }, 60_000), { code: 'ACTOR_DEAD' })
  await system.stopActor(sample)
  await Promise.all([open, waiting])
  t.match(deadLetters, [
    { reason: 'stopped', type: 'add' },
    { reason: 'stopped', type: 'total-requested' },
  ])
})

t.test('after a stop nothing starts and every message is a dead letter', async t => {
  const { system, clock, deadLetters } = createTestSystem(t)
  const sample = system.spawn(sampleActor(), 'sample')
  await clock.settle()
  await system.stop(1_000)
  t.throws(() => system.spawn(sampleActor(), 'other'), { code: 'ACTOR_DEAD' })
  await t.rejects(system.ask(sample, { type: 'total-requested' }, 1_000), { code: 'ACTOR_DEAD' })
  t.equal(system.inspect().deadLetters.total, 1)
  t.equal(deadLetters.length, 0, 'the stream has completed')
  t.equal(clock.pending(), 0)
})

t.test('an actor may stop its children, and no others', async t => {
  const { system, clock, log } = createTestSystem(t)
  const top = system.spawn(sampleActor({ children: { child: {} } }), 'top')
  await clock.settle()
  top.tell({ type: 'stop-child', name: 'child' })
  await clock.settle()
  t.match(system.inspect().actors, [{ path: '/top/', children: { length: 0 } }])
  top.tell({ type: 'stop-child', name: 'other' })
  await clock.settle()
  t.match(
    system.inspect().actors,
    [{ path: '/top/', phase: 'running', restarts: 0 }],
    'the effect failed, not the actor',
  )
  t.strictSame(
    log.lines.filter(({ level }) => level === 'error'),
    [],
  )
})

t.test('a signal that throws is logged and holds nothing up', async t => {
  const { system, clock, log } = createTestSystem(t)
  const sample = system.spawn(
    sampleActor({
      signal: () => {
        throw new TypeError('cannot release')
      },
    }),
    'sample',
  )
  await clock.settle()
  t.strictSame(await system.stopActor(sample), { missed: [] })
  t.match(
    log.lines.filter(({ event }) => event === 'signal-fail'),
    [{ fields: { signal: 'post-stop', actor: 'test:/sample/' } }],
  )
})

t.test('a stop during the back-off ends it', async t => {
  const { system, clock } = createTestSystem(t)
  const sample = system.spawn(sampleActor(), 'sample')
  sample.tell({ type: 'crash' })
  await clock.settle()
  t.equal(clock.pending(), 1)
  await system.stopActor(sample)
  t.equal(clock.pending(), 0)
  await clock.advance(200)
  t.strictSame(system.inspect().actors, [])
  system.refOf<SampleMessage>(sample.address).tell({ type: 'add', n: 1 })
  t.match(system.inspect().deadLetters.byReason, { 'unknown-address': 1 })
})

import t from 'tap'
import { backoffMs, decide, restartBudget } from '../../../../actors/system/supervision.js'
import { type SampleMessage, sampleActor, type Total } from '../../../support/sample-actor.js'
import { createTestSystem } from '../../../support/test-system.js'

const temporary = { restart: 'temporary' } as const

t.test('the wait before a restart doubles from 100 ms to 10 s', async t => {
  t.strictSame([1, 2, 3, 4, 7, 8, 20].map(backoffMs), [100, 200, 400, 800, 6_400, 10_000, 10_000])
})

t.test('who is restarted depends on the restart type and the kind of end', async t => {
  const action = (restart: 'permanent' | 'transient' | 'temporary', ended: 'crashed' | 'stopped') =>
    decide({ restart, strategy: 'one-for-one', intensity: 1, periodMs: 1_000 }, ended, restartBudget(1, 1_000), 0)
      .action
  t.strictSame(
    (['permanent', 'transient', 'temporary'] as const).map(type => [action(type, 'crashed'), action(type, 'stopped')]),
    [
      ['restart', 'restart'],
      ['restart', 'end'],
      ['end', 'end'],
    ],
  )
})

t.test('a restart budget counts within its period only', async t => {
  const budget = restartBudget(2, 1_000)
  t.strictSame(
    [0, 10, 20, 1_005, 1_006, 1_011].map(at => budget.take(at)),
    [1, 2, null, 2, null, 2],
  )
})

t.test('a crashed actor starts anew at the same address, with the messages that waited', async t => {
  const { system, clock } = createTestSystem(t)
  const signals: string[] = []
  const sample = system.spawn(
    sampleActor({ signal: ({ type }, { total }) => void signals.push(`${type} ${total}`) }),
    'sample',
  )
  sample.tell({ type: 'add', n: 5 })
  sample.tell({ type: 'crash' })
  sample.tell({ type: 'add', n: 2 })
  const asked = system.ask(sample, { type: 'total-requested' }, 60_000)
  await clock.advance(99)
  t.match(system.inspect().actors, [
    { phase: 'restarting', mailbox: { depth: 2 }, lastError: { message: 'crash wanted' } },
  ])
  await clock.advance(1)
  t.strictSame(await asked, { type: 'total', total: 2 }, 'state is new, the message that crashed it is gone')
  t.match(system.inspect().actors, [{ phase: 'running', restarts: 1 }])
  t.strictSame(signals, ['pre-restart 5'])
})

t.test('a behavior that cannot be made counts as a crash', async t => {
  const { system, clock, failures } = createTestSystem(t)
  let tries = 0
  const onStart = () => {
    tries += 1
    throw new TypeError('no behavior')
  }
  system.spawn(sampleActor({ onStart, supervision: { intensity: 2 } }), 'sample')
  await clock.advance(1_000)
  t.equal(tries, 3)
  t.match(failures, [{ message: /sample.*failed too often, last: no behavior/ }])
})

t.test('a temporary actor ends with its crash, after releasing what it holds, and watchers are told', async t => {
  const { system } = createTestSystem(t)
  const signals: string[] = []
  const sample = system.spawn(
    sampleActor({ supervision: temporary, signal: ({ type }) => void signals.push(type) }),
    's',
  )
  const ended = new Promise(resolve => system.watch(sample, (_, reason) => resolve(reason)))
  sample.tell({ type: 'crash' })
  t.equal(await ended, 'crashed')
  t.strictSame(signals, ['post-stop'])
  t.strictSame(system.inspect().actors, [])
})

t.test('a restart is no end to watchers', async t => {
  const { system, clock } = createTestSystem(t)
  const sample = system.spawn(sampleActor(), 'sample')
  const unwatch = system.watch(sample, () => t.fail('not ended'))
  sample.tell({ type: 'crash' })
  await clock.advance(100)
  t.match(system.inspect().actors, [{ phase: 'running', restarts: 1 }])
  t.equal(system.inspect().watches, 1)
  unwatch()
  t.equal(system.inspect().watches, 0)
})

t.test('a child that fails too often takes its parent down, whose restart brings it back', async t => {
  const { system, clock, failures } = createTestSystem(t)
  const starts: number[] = []
  const child = { onStart: () => void starts.push(clock.now()), supervision: { intensity: 1, periodMs: 60_000 } }
  system.spawn(sampleActor({ children: { child } }), 'parent')
  await clock.settle()
  const ref = system.refOf<SampleMessage>({ system: 'test', path: '/parent/child/' })
  ref.tell({ type: 'crash' })
  await clock.advance(100)
  t.match(system.inspect().actors, [{ restarts: 0, children: [{ restarts: 1 }] }])
  ref.tell({ type: 'crash' })
  await clock.advance(100)
  t.match(system.inspect().actors, [
    { restarts: 1, lastError: { message: /child.*failed too often, last: crash wanted/ }, children: [{ restarts: 0 }] },
  ])
  t.strictSame(starts, [0, 100, 200])
  t.strictSame(failures, [])
})

t.test('beyond the intensity at the top the system fails', async t => {
  const { system, clock, failures, log } = createTestSystem(t)
  const sample = system.spawn(sampleActor({ supervision: { intensity: 2, periodMs: 10_000 } }), 'sample')
  for (let n = 0; n < 3; n++) {
    sample.tell({ type: 'crash' })
    await clock.advance(500)
  }
  t.match(failures, [{ code: 'INTERNAL_BUG', message: /test:\/sample\/ failed too often, last: crash wanted/ }])
  t.strictSame(system.inspect().actors, [])
  t.ok(log.lines.some(({ level, event }) => level === 'error' && event === 'system-fail'))
})

t.test('rest-for-one restarts those started after, in order, and leaves those before', async t => {
  const { system, clock } = createTestSystem(t)
  const log: string[] = []
  const child = (name: string, restart: 'permanent' | 'temporary' = 'permanent') => ({
    onStart: () => void log.push(`start ${name}`),
    signal: ({ type }: { type: string }) => void log.push(`${type} ${name}`),
    supervision: { strategy: 'rest-for-one', restart } as const,
  })
  system.spawn(
    sampleActor({ children: { a: child('a'), b: child('b'), c: child('c'), d: child('d', 'temporary') } }),
    'top',
  )
  await clock.settle()
  log.length = 0
  system.refOf<SampleMessage>({ system: 'test', path: '/top/b/' }).tell({ type: 'crash' })
  await clock.advance(100)
  t.strictSame(log, ['post-stop d', 'pre-restart c', 'pre-restart b', 'start b', 'start c'])
  const [top] = system.inspect().actors
  t.match(top?.children, [
    { path: '/top/a/', restarts: 0 },
    { path: '/top/b/', restarts: 1 },
    { path: '/top/c/', restarts: 1 },
  ])
  t.equal(top?.children.length, 3)
})

t.test('two restarts at once: the later one decides when the common ones start', async t => {
  const { system, clock } = createTestSystem(t)
  const log: string[] = []
  const child = (name: string) => ({
    onStart: () => void log.push(name),
    supervision: { strategy: 'rest-for-one' } as const,
  })
  system.spawn(sampleActor({ children: { a: child('a'), b: child('b') } }), 'top')
  await clock.settle()
  log.length = 0
  const ref = (name: string) => system.refOf<SampleMessage>({ system: 'test', path: `/top/${name}/` })
  ref('b').tell({ type: 'crash' })
  await clock.advance(50)
  ref('a').tell({ type: 'crash' })
  await clock.advance(60)
  t.strictSame(log, [], 'b waits for a')
  await clock.advance(40)
  t.strictSame(log, ['a', 'b'])
})

t.test('an effect of the crashed life does not reach the next', async t => {
  const { system, clock, probe } = createTestSystem(t)
  const told = probe<Total>()
  const sample = system.spawn(sampleActor(), 'sample')
  const watched = system.spawn(sampleActor(), 'watched')
  sample.tell({ type: 'watch-other', other: watched })
  sample.tell({ type: 'crash' })
  await clock.advance(100)
  await system.stopActor(watched)
  sample.tell({ type: 'pass-on', to: told.ref })
  await told.expectMessage('total', 1_000)
  t.match(system.inspect().actors, [{}, { path: '/sample/', summary: { ended: [] } }])
  t.equal(system.inspect().watches, 0)
})

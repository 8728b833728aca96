import { MessageChannel } from 'node:worker_threads'
import t from 'tap'
import { realClock } from '../../../../actors/system/clock.js'
import type { ActorRef } from '../../../../actors/system/ref.js'
import { transferTypedArrays } from '../../../../actors/system/transfer.js'
import { type SampleMessage, sampleActor, type Total } from '../../../support/sample-actor.js'
import { createRealTimeSystem } from '../../../support/test-system.js'

/** main is the hub; proxy-1 and merge-1 reach each other through it. */
function threeSystems(t: Tap) {
  const main = createRealTimeSystem(t, realClock(), 'main')
  const proxy = createRealTimeSystem(t, realClock(), 'proxy-1')
  const merge = createRealTimeSystem(t, realClock(), 'merge-1')
  const toProxy = link(main, proxy, 'proxy-1')
  const toMerge = link(main, merge, 'merge-1')
  return { main, proxy, merge, toProxy, toMerge }
}
type Tap = Parameters<typeof createRealTimeSystem>[0]
type System = ReturnType<typeof createRealTimeSystem>

function link(main: System, thread: System, peer: string) {
  const { port1, port2 } = new MessageChannel()
  thread.system.connect({ port: port2, peer: 'main', uplink: true })
  return main.system.connect({ port: port1, peer })
}
const there = (system: System, name: string, path: string) => system.system.refOf<SampleMessage>({ system: name, path })

t.test('a question crosses a link and so does its reply', async t => {
  const { main, proxy } = threeSystems(t)
  proxy.system.spawn(sampleActor(), 'sample')
  const sample = there(main, 'proxy-1', '/sample/')
  sample.tell({ type: 'add', n: 3 })
  sample.tell({ type: 'add', n: 4 })
  t.strictSame(await main.system.ask(sample, { type: 'total-requested' }, 5_000), { type: 'total', total: 7 })
  t.equal(main.system.inspect().asks, 0)
})

t.test('threads talk through the hub, and refs in messages stay refs', async t => {
  const { proxy, merge } = threeSystems(t)
  merge.system.spawn(sampleActor(), 'sample')
  const told = proxy.probe<Total>()
  const sample = there(proxy, 'merge-1', '/sample/')
  sample.tell({ type: 'add', n: 5 })
  sample.tell({ type: 'pass-on', to: told.ref })
  t.strictSame(await told.expectMessage('total', 5_000), { type: 'total', total: 5 })
})

interface Nested {
  readonly type: 'nested'
  readonly session: { readonly list: readonly { readonly ref: ActorRef<Total> }[] }
  readonly schema: unknown
}

t.test('a ref is revived where it stood, and data that looks like a ref stays data', async t => {
  const { main, proxy } = threeSystems(t)
  const received = proxy.probe<Nested>('received')
  const told = main.probe<Total>()
  const fake = { $ref: { system: 'main', path: '/rollout/' } }
  const message: Nested = { type: 'nested', session: { list: [{ ref: told.ref }] }, schema: fake }
  main.system.refOf<Nested>({ system: 'proxy-1', path: '/received/' }).tell(message)
  const arrived = await received.expectMessage('nested', 5_000)
  t.strictSame(arrived.schema, fake)
  t.equal(message.session.list[0]?.ref, told.ref, 'the sender keeps its message')
  arrived.session.list[0]?.ref.tell({ type: 'total', total: 9 })
  t.strictSame(await told.expectMessage('total', 5_000), { type: 'total', total: 9 })
})

interface Tokens {
  readonly type: 'tokens'
  readonly ledger: { readonly calls: readonly { readonly ids: Int32Array; readonly logprobs: Float32Array }[] }
  readonly part: Int32Array
}

t.test('typed arrays are moved when the message says so, else copied; also through the hub', async t => {
  const { proxy, merge } = threeSystems(t)
  const received = merge.probe<Tokens>('received')
  const to = proxy.system.refOf<Tokens>({ system: 'merge-1', path: '/received/' })
  const make = (): Tokens => ({
    type: 'tokens',
    ledger: { calls: [{ ids: Int32Array.of(1, 2, 3), logprobs: Float32Array.of(-0.5, -1, -1.5) }] },
    part: Int32Array.of(7, 8, 9).subarray(1),
  })
  const copied = make()
  to.tell(copied)
  t.strictSame(await received.expectMessage('tokens', 5_000), make())
  t.strictSame(copied, make())

  const moved = make()
  to.tell(transferTypedArrays(moved))
  t.strictSame(await received.expectMessage('tokens', 5_000), make())
  t.equal(moved.ledger.calls[0]?.ids.length, 0, 'the sender gave it away')
  t.equal(moved.part.length, 2, 'a view on a part is copied')
})

t.test('a message that cannot travel is a dead letter, and its asker is told', async t => {
  const { main, proxy } = threeSystems(t)
  proxy.system.spawn(sampleActor(), 'sample')
  const sample = main.system.refOf<SampleMessage & { bad?: () => void }>({ system: 'proxy-1', path: '/sample/' })
  const bad = { type: 'total-requested' as const, bad: () => {} }
  await t.rejects(main.system.ask(sample, bad, 60_000), { code: 'ACTOR_DEAD', message: /unserialisable/ })
  t.match(main.deadLetters, [{ reason: 'unserialisable', type: 'total-requested' }])
})

t.test('a question to nobody over there is refused at once', async t => {
  const { main, proxy } = threeSystems(t)
  await t.rejects(main.system.ask(there(main, 'proxy-1', '/nobody/'), { type: 'total-requested' }, 60_000), {
    code: 'ACTOR_DEAD',
  })
  await t.rejects(main.system.ask(there(main, 'elsewhere', '/nobody/'), { type: 'total-requested' }, 60_000), {
    code: 'ACTOR_DEAD',
  })
  await t.rejects(proxy.system.ask(there(proxy, 'elsewhere', '/nobody/'), { type: 'total-requested' }, 60_000), {
    code: 'ACTOR_DEAD',
  })
})

t.test('a full mailbox over there refuses the asker here', async t => {
  const { main, proxy } = threeSystems(t)
  proxy.system.spawn(sampleActor({ mailbox: { capacity: 1, overflow: 'refuse' } }), 'sample')
  const sample = there(main, 'proxy-1', '/sample/')
  // While it backs off after the crash, messages wait in its mailbox: there is place for one.
  sample.tell({ type: 'crash' })
  const waits = main.system.ask(sample, { type: 'total-requested' }, 5_000)
  await t.rejects(main.system.ask(sample, { type: 'total-requested' }, 5_000), { code: 'ACTOR_MAILBOX_FULL' })
  t.match(proxy.deadLetters, [{ reason: 'mailbox-full', type: 'total-requested' }])
  t.match(await waits, { total: 0 })
})

t.test('a watch crosses a link: end, unknown address, and taking it back', async t => {
  const { main, merge, proxy } = threeSystems(t)
  const sample = merge.system.spawn(sampleActor(), 'sample')
  const ends: string[] = []
  const told = (who: string) =>
    new Promise<void>(resolve => {
      const from = who === 'proxy' ? proxy : main
      from.system.watch(there(from, 'merge-1', '/sample/'), (_, reason) => resolve(void ends.push(`${who} ${reason}`)))
    })
  const both = Promise.all([told('proxy'), told('main')])
  const unwatch = main.system.watch(there(main, 'merge-1', '/sample/'), () => t.fail('taken back'))
  unwatch()
  await main.system.ask(there(main, 'merge-1', '/sample/'), { type: 'total-requested' }, 5_000)
  await proxy.system.ask(there(proxy, 'merge-1', '/sample/'), { type: 'total-requested' }, 5_000)
  await merge.system.stopActor(sample)
  await both
  t.strictSame(ends.sort(), ['main stopped', 'proxy stopped'])
  const unknown = new Promise(resolve => proxy.system.watch(there(proxy, 'merge-1', '/nobody/'), (_, r) => resolve(r)))
  t.equal(await unknown, 'unknown-address')
  t.equal(main.system.inspect().watches + proxy.system.inspect().watches, 0)
})

t.test('the death of a link tells watchers and fails questions, here and behind the hub', async t => {
  const { main, proxy, merge, toMerge } = threeSystems(t)
  merge.system.spawn(sampleActor(), 'sample')
  const reasons: string[] = []
  const watched = [main, proxy].map(
    from =>
      new Promise<void>(resolve => {
        from.system.watch(there(from, 'merge-1', '/sample/'), (_, reason) => resolve(void reasons.push(reason)))
      }),
  )
  const asked = [main, proxy].map(from =>
    t.rejects(from.system.ask(there(from, 'merge-1', '/sample/'), { type: 'silence-requested' }, 60_000), {
      code: 'ACTOR_DEAD',
    }),
  )
  await main.system.ask(there(main, 'merge-1', '/sample/'), { type: 'total-requested' }, 5_000)
  await proxy.system.ask(there(proxy, 'merge-1', '/sample/'), { type: 'total-requested' }, 5_000)
  toMerge.end()
  await Promise.all([...watched, ...asked])
  t.strictSame(reasons, ['thread-died', 'thread-died'])
  there(main, 'merge-1', '/sample/').tell({ type: 'add', n: 1 })
  t.match(main.deadLetters.at(-1), { reason: 'thread-died', type: 'add' })

  const again = createRealTimeSystem(t, realClock(), 'merge-1')
  again.system.spawn(sampleActor(), 'sample')
  link(main, again, 'merge-1')
  t.match(await proxy.system.ask(there(proxy, 'merge-1', '/sample/'), { type: 'total-requested' }, 5_000), { total: 0 })
})

t.test('what is no packet is a malformed dead letter', async t => {
  const main = createRealTimeSystem(t, realClock(), 'main')
  const { port1, port2 } = new MessageChannel()
  main.system.connect({ port: port1, peer: 'odd' })
  const three = new Promise<void>(resolve => {
    main.system.deadLetters$.subscribe(() => main.deadLetters.length === 3 && resolve())
  })
  const to = { system: 'main', path: '/x/' }
  port2.postMessage('hello')
  port2.postMessage({ kind: 'tell', to, envelope: { message: { type: 'x', a: 1 }, refs: [['a']] }, transfer: false })
  port2.postMessage({ kind: 'tell', to, envelope: { message: {}, refs: [] }, transfer: false })
  await three
  t.strictSame(
    main.deadLetters.map(letter => letter.reason),
    ['malformed', 'malformed', 'malformed'],
  )
  port2.close()
})

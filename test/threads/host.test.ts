import t from 'tap'
import type { ThreadHostMessage } from '../../actors/protocol/threads.js'
import { realClock } from '../../actors/system/clock.js'
import type { ActorRef } from '../../actors/system/ref.js'
import { type ActorSystem, createActorSystem } from '../../actors/system/system.js'
import { transferTypedArrays } from '../../actors/system/transfer.js'
import { type ThreadGroup, threadHost } from '../../actors/threads/host.js'
import type { SampleThreadData } from '../support/sample.thread.js'
import type { SampleMessage } from '../support/sample-actor.js'
import { createRealTimeSystem, recordingLogger } from '../support/test-system.js'

type Tap = Parameters<typeof createRealTimeSystem>[0]
type Heard = { readonly type: 'heard'; readonly by: string; readonly greeting: string }

const entry = new URL('../support/sample.thread.js', import.meta.url)

const hosted = (name: string, data: SampleThreadData): ThreadGroup['threads'][number] => ({
  name,
  entry,
  data: last => ({ ...data, ...(last && { port: last['port'] }) }),
  startMs: 10_000,
  drainMs: 2_000,
})

const group = (system: ActorSystem, mode: 'real' | 'inline'): ThreadGroup => ({
  threads: [hosted('merge-1', { port: 0 }), hosted('proxy-1', { port: 0 })],
  channels: [{ name: 'neighbour', between: ['merge-1', 'proxy-1'] }],
  strategy: 'rest-for-one',
  intensity: 5,
  periodMs: 30_000,
  mode,
  logLevel: 'silent',
  system,
})

for (const mode of ['real', 'inline'] as const) {
  t.test(`${mode} threads`, async t => {
    t.test('a question goes to an actor on another thread and comes back', async t => {
      const { main, pair } = await startPair(t, mode)
      const sample = pair.sample('proxy-1')
      sample.tell({ type: 'add', n: 5 })
      t.strictSame(await main.system.ask(sample, { type: 'total-requested' }, 5_000), { type: 'total', total: 5 })
    })

    t.test('the pair gets a port to one another at the start', async t => {
      const { pair } = await startPair(t, mode)
      t.strictSame(await pair.heard(2), ['merge-1 heard hello from proxy-1', 'proxy-1 heard hello from merge-1'])
    })

    t.test('a proxy that dies is restarted alone, on its old TCP port, with a fresh port to merge', async t => {
      const { main, pair, restarts } = await startPair(t, mode)
      await pair.heard(2)
      const merge = pair.sample('merge-1')
      merge.tell({ type: 'add', n: 9 })
      const before = await pair.started()
      const ended = new Promise(resolve => main.system.watch(pair.sample('proxy-1'), (_, reason) => resolve(reason)))
      const asked = main.system.ask(pair.sample('proxy-1'), { type: 'silence-requested' }, 60_000)
      pair.host.tell({ type: 'kill-thread', thread: 'proxy-1' })
      await t.rejects(asked, { code: 'ACTOR_DEAD' })
      t.equal(await ended, 'thread-died')
      t.strictSame(await restarts.next(), ['proxy-1'])
      const after = await pair.started()
      t.equal(after['proxy-1']?.['port'], before['proxy-1']?.['port'])
      t.equal(after['merge-1']?.['port'], before['merge-1']?.['port'])
      t.match(await main.system.ask(merge, { type: 'total-requested' }, 5_000), { total: 9 }, 'merge lived on')
      t.match(await main.system.ask(pair.sample('proxy-1'), { type: 'total-requested' }, 5_000), { total: 0 })
      t.strictSame(await pair.heard(2), ['merge-1 heard hello from proxy-1', 'proxy-1 heard hello from merge-1'])
    })

    t.test('a merge that dies takes its proxy with it: both are restarted', async t => {
      const { main, pair, restarts } = await startPair(t, mode)
      await pair.heard(2)
      const before = await pair.started()
      pair.sample('proxy-1').tell({ type: 'add', n: 1 })
      pair.host.tell({ type: 'kill-thread', thread: 'merge-1' })
      t.strictSame(await restarts.next(), ['merge-1', 'proxy-1'])
      t.match(await main.system.ask(pair.sample('proxy-1'), { type: 'total-requested' }, 5_000), { total: 0 })
      t.equal((await pair.started())['proxy-1']?.['port'], before['proxy-1']?.['port'])
      t.strictSame(await pair.heard(2), ['merge-1 heard hello from proxy-1', 'proxy-1 heard hello from merge-1'])
      const { threads } = await main.system.ask(pair.host, { type: 'threads-described' }, 5_000)
      t.match(threads, [
        { name: 'merge-1', phase: 'up', restarts: 1, system: { name: 'merge-1' } },
        { name: 'proxy-1', phase: 'up', restarts: 1, system: { name: 'proxy-1', actors: [{ path: '/sample/' }, {}] } },
      ])
      t.ok(threads.every(({ heapUsedBytes }) => (heapUsedBytes ?? 0) > 0))
    })

    t.test('a thread whose actors fail beyond repair ends, and is restarted', async t => {
      const { main, pair, restarts } = await startPair(t, mode)
      main.system.refOf<SampleMessage>({ system: 'proxy-1', path: '/fragile/' }).tell({ type: 'crash' })
      t.strictSame(await restarts.next(), ['proxy-1'])
      t.match(await main.system.ask(pair.sample('proxy-1'), { type: 'total-requested' }, 5_000), { total: 0 })
    })

    t.test('a stop drains in reverse order and leaves no thread', async t => {
      const { main, pair } = await startPair(t, mode)
      const ends: string[] = []
      for (const name of ['merge-1', 'proxy-1']) {
        main.system.watch(pair.sample(name), (_, reason) => ends.push(`${name} ${reason}`))
      }
      await main.system.ask(pair.sample('merge-1'), { type: 'total-requested' }, 5_000)
      await main.system.ask(pair.sample('proxy-1'), { type: 'total-requested' }, 5_000)
      t.strictSame(await main.system.stopActor(pair.host), { missed: [] })
      t.strictSame(ends, ['proxy-1 stopped', 'merge-1 stopped'])
      t.strictSame(main.system.inspect().links, [])
    })

    t.test('a start that fails again and again escalates with its error', async t => {
      const failed = new Promise<unknown>(resolve => {
        const system = createActorSystem({
          name: 'main',
          clock: realClock(),
          log: recordingLogger(),
          onFailure: resolve,
        })
        t.teardown(() => system.stop(5_000))
        const unlucky = hosted('merge-1', { port: 0, fail: 'no luck' })
        system.spawn(threadHost({ ...group(system, mode), threads: [unlucky], intensity: 1 }), 'pair-1')
      })
      t.match(await failed, { message: /thread merge-1: 2 deaths in 30000 ms, last: no luck/ })
    })
  })
}

interface Tokens {
  readonly type: 'tokens'
  readonly ids: Int32Array
}

t.test('typed arrays are moved to a real thread when the message says so', async t => {
  const { pair, main } = await startPair(t, 'real')
  const ids = Int32Array.of(1, 2, 3)
  const to = main.system.refOf<Tokens>(pair.sample('proxy-1').address)
  to.tell(transferTypedArrays({ type: 'tokens', ids }))
  t.equal(ids.length, 0)
})

async function startPair(t: Tap, mode: 'real' | 'inline') {
  const main = createRealTimeSystem(t, realClock(), 'main')
  const ears = main.probe<Heard>('ears')
  const announced: (readonly string[])[] = []
  const waiting: ((threads: readonly string[]) => void)[] = []
  const host: ActorRef<ThreadHostMessage> = main.system.spawn(
    threadHost({
      ...group(main.system, mode),
      onRestarted: threads => {
        const resolve = waiting.shift()
        if (resolve === undefined) announced.push(threads)
        else resolve(threads)
      },
    }),
    'pair-1',
  )
  const started = async () => (await main.system.ask(host, { type: 'threads-started-requested' }, 10_000)).replies
  await started()
  return {
    main,
    restarts: {
      next: () =>
        new Promise<readonly string[]>(resolve => {
          const threads = announced.shift()
          if (threads === undefined) waiting.push(resolve)
          else resolve(threads)
        }),
    },
    pair: {
      host,
      started,
      sample: (system: string) => main.system.refOf<SampleMessage>({ system, path: '/sample/' }),
      async heard(count: number) {
        const lines: string[] = []
        for (let n = 0; n < count; n++) {
          const { by, greeting } = await ears.expectMessage('heard', 5_000)
          lines.push(`${by} heard ${greeting}`)
        }
        return lines.sort()
      },
    },
  }
}

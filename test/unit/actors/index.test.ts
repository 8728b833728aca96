import t from 'tap'
import { createSystem, type HostedThread } from '../../../actors/index.js'
import { limits } from '../../support/limits.js'
import { type SampleMessage, sampleActor, type Total } from '../../support/sample-actor.js'
import { recordingLogger } from '../../support/test-system.js'

const sampleThread = (name: string): HostedThread => ({
  name,
  entry: new URL('../../support/sample.thread.js', import.meta.url),
  data: last => ({ port: last?.['port'] ?? 0 }),
  startMs: 10_000,
  drainMs: 2_000,
})

for (const threads of ['inline', 'real'] as const) {
  t.test(`a library user spawns, probes, asks, kills and stops with ${threads} threads`, async t => {
    const failures: unknown[] = []
    const system = createSystem({
      plan: { limits },
      threads,
      log: recordingLogger(),
      logLevel: 'silent',
      onFailure: error => failures.push(error),
    })
    t.teardown(() => system.stop(5_000))

    const told = system.probe<Total>()
    const sample = system.spawn(sampleActor(), 'sample')
    sample.tell({ type: 'add', n: 4 })
    sample.tell({ type: 'pass-on', to: told.ref })
    t.strictSame(await told.expectMessage('total', 1_000), { type: 'total', total: 4 })

    const { replies } = await system.startThreads('group', {
      threads: [sampleThread('sample-1')],
      channels: [],
      strategy: 'one-for-one',
      intensity: 5,
      periodMs: 30_000,
    })
    const port = replies['sample-1']?.['port']
    t.type(port, 'number')
    const remote = system.refOf<SampleMessage>({ system: 'sample-1', path: '/sample/' })
    t.match(await system.ask(remote, { type: 'total-requested' }, 5_000), { total: 0 })

    const ended = new Promise(resolve => system.watch(remote, (_, reason) => resolve(reason)))
    system.kill('sample-1')
    t.equal(await ended, 'thread-died')
    t.throws(() => system.kill('other'), { code: 'ACTOR_DEAD', message: /no thread is called other/ })

    t.match(system.inspect(), {
      name: 'main',
      actors: [{ path: '/probe-1/' }, { path: '/sample/' }, { path: '/group/' }],
    })
    t.strictSame(await system.stop(), { missed: [] })
    t.strictSame(failures, [])
  })
}

t.test('a probe names what came instead of what was expected', async t => {
  const system = createSystem({ plan: { limits }, threads: 'inline', log: recordingLogger() })
  t.teardown(() => system.stop(1_000))
  const probe = system.probe<{ type: 'a' } | { type: 'b' }>('ears')
  probe.ref.tell({ type: 'a' })
  await t.rejects(probe.expectMessage('b', 10), {
    code: 'ACTOR_ASK_TIMEOUT',
    message: /ears was not told b within 10 ms, but a/,
  })
  t.strictSame(await probe.expectMessage('a', 10), { type: 'a' })
  t.strictSame(probe.messages(), [{ type: 'a' }])
})

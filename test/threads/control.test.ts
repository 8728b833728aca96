import { once } from 'node:events'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import t from 'tap'
import { realClock } from '../../actors/system/clock.js'
import { virtualClock } from '../../actors/system/virtual-clock.js'
import { type ControlledThread, controlThread, exposeControl } from '../../actors/threads/control.js'
import { startThread, threadOptions } from '../../actors/threads/spawn.js'
import { RolloutError } from '../../src/domain/errors.js'
import { recordingLogger } from '../support/test-system.js'

const inspection = { name: 'x', actors: [], deadLetters: { total: 0, byReason: {} }, asks: 0, watches: 0, links: [] }

/** Both ends of the control plane in this thread. */
function bothEnds(over: Partial<ControlledThread>, clock = realClock()) {
  const { port1, port2 } = new MessageChannel()
  let die = () => {}
  const exited = new Promise<void>(resolve => {
    die = () => {
      port2.close()
      resolve()
    }
  })
  exposeControl(port2, {
    start: async () => ({}),
    attach: () => {},
    drain: async () => [],
    inspect: () => inspection,
    heap: () => ({
      usedBytes: 1,
      totalBytes: 2,
      limitBytes: 3,
      externalBytes: 4,
      loopDelay: { p50Ms: 0, p99Ms: 0, maxMs: 0 },
    }),
    ...over,
  })
  const kill = async () => die()
  return { control: controlThread({ port: port1, name: 'thread-1', clock, exited, kill }), die }
}

t.test('a call is answered, and a port goes with it', async t => {
  const { control, die } = bothEnds({
    start: async (data, [named]) => {
      named?.port.postMessage('hello')
      return { given: data, name: named?.name }
    },
  })
  t.teardown(die)
  const { port1, port2 } = new MessageChannel()
  t.teardown(() => port1.close())
  const heard = once(port1, 'message')
  const reply = await control.start({ a: Int32Array.of(1, 2) }, [{ name: 'capture', port: port2 }], 5_000)
  t.strictSame(reply, { given: { a: Int32Array.of(1, 2) }, name: 'capture' })
  t.strictSame(await heard, ['hello'])
})

t.test('an error arrives with its code and details', async t => {
  const { control, die } = bothEnds({
    start: async () => {
      throw new RolloutError('CONFIG_INVALID', 'no such port', { details: { field: 'gateway.port' } })
    },
    inspect: () => {
      throw new TypeError('a bug')
    },
  })
  t.teardown(die)
  await t.rejects(control.start(null, [], 5_000), {
    code: 'CONFIG_INVALID',
    message: 'no such port',
    details: { field: 'gateway.port' },
  })
  await t.rejects(control.inspect(5_000), { code: 'INTERNAL_BUG', message: 'a bug' })
})

t.test('a call without an answer ends at its deadline', async t => {
  const clock = virtualClock()
  const { control, die } = bothEnds({ start: () => new Promise(() => {}) }, clock)
  t.teardown(die)
  const call = t.rejects(control.start(null, [], 700), {
    code: 'ACTOR_ASK_TIMEOUT',
    message: /thread-1 did not answer start within 700 ms/,
  })
  await clock.advance(700)
  await call
  t.equal(clock.pending(), 0)
})

t.test('when the thread dies, calls in flight and later ones end with ACTOR_DEAD', async t => {
  const { control, die } = bothEnds({ start: () => new Promise(() => {}) })
  const calls = [control.start(null, [], 60_000), control.start(null, [], 60_000)]
  die()
  for (const call of calls) await t.rejects(call, { code: 'ACTOR_DEAD', message: /thread-1 has ended/ })
  await t.rejects(control.heap(60_000), { code: 'ACTOR_DEAD' })
})

const start = (entry: string) =>
  startThread({
    entry: new URL(entry, import.meta.url),
    name: 'sample-1',
    mode: 'real',
    clock: realClock(),
    log: recordingLogger(),
    logLevel: 'silent',
  })
const close = (...ports: MessagePort[]) => {
  for (const port of ports) port.close()
}

t.test('a real thread is killed in the middle of a call', async t => {
  const thread = start('../support/sample.thread.js')
  await thread.control.heap(10_000)
  const stuck = t.rejects(thread.control.start({ port: 0, stuck: true }, [], 60_000), { code: 'ACTOR_DEAD' })
  await thread.control.kill()
  await stuck
  t.match(await thread.exited, { code: 1, error: null })
  close(thread.systemPort)
})

t.test('a real thread answers heap and inspect, and drains', async t => {
  const thread = start('../support/sample.thread.js')
  t.ok(((await thread.control.start({ port: 0 }, [], 10_000))['port'] as number) > 0)
  const heap = await thread.control.heap(5_000)
  t.ok(heap.usedBytes > 0 && heap.usedBytes <= heap.limitBytes)
  const { p50Ms, p99Ms, maxMs } = heap.loopDelay
  t.ok(p50Ms >= 0 && p50Ms <= p99Ms && p99Ms <= maxMs && maxMs < 60_000)
  t.match(await thread.control.inspect(5_000), {
    name: 'sample-1',
    actors: [{ path: '/sample/' }, { path: '/fragile/' }],
    links: ['main'],
  })
  t.strictSame(await thread.control.drain(5_000), [])
  t.match(await thread.control.inspect(5_000), { actors: [] })
  await thread.control.kill()
})

t.test('an entry that is none says so', async t => {
  const missing = start('./no-such.thread.js')
  t.match(await missing.exited, { code: 1, error: { message: /no-such\.thread\.js/ } })
  const wrong = start('../support/sample-actor.js')
  t.match(await wrong.exited, { code: 1, error: { message: /exports no `thread`/ } })
  close(missing.systemPort, wrong.systemPort)
})

t.test('no flag or loader of this process reaches a thread', async t => {
  t.strictSame(
    threadOptions({ env: { PATH: '/bin', NODE_OPTIONS: '--inspect' }, resourceLimits: { maxOldGenerationSizeMb: 64 } }),
    {
      execArgv: [],
      env: { PATH: '/bin', NODE_OPTIONS: '' },
      stdout: false,
      stderr: false,
      resourceLimits: { maxOldGenerationSizeMb: 64 },
    },
  )
})

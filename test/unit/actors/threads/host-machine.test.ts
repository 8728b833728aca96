import t from 'tap'
import {
  type HostEffect,
  type HostMessage,
  type HostSpec,
  type HostState,
  hostMachine,
} from '../../../../actors/threads/host-machine.js'
import type { ErrorData } from '../../../../src/domain/errors.js'

const pair: HostSpec = { threads: ['merge-1', 'proxy-1'], strategy: 'rest-for-one', intensity: 3, periodMs: 30_000 }
const error: ErrorData = { code: 'ACTOR_DEAD', message: 'gone' }

/** Feeds messages in order; phases and effects after each. */
function play(spec: HostSpec, messages: readonly HostMessage[]) {
  const machine = hostMachine(spec)
  let state: HostState = machine.initial.state
  const effects: (readonly HostEffect[])[] = [machine.initial.effects]
  for (const message of messages) {
    const step = machine.step(state, message)
    state = step.state
    effects.push(step.effects)
  }
  return { state, effects, phases: state.threads.map(({ phase }) => phase).join(' '), last: effects.at(-1) ?? [] }
}

const up = (index: number, life = 1, reply = {}): HostMessage => ({ type: 'thread-up', index, life, reply })
const gone = (index: number, life: number, atMs: number): HostMessage => ({
  type: 'thread-gone',
  index,
  life,
  error,
  atMs,
})
const over = (round: number): HostMessage => ({ type: 'back-off-over', round })
const bothUp = [up(0, 1, { port: 1 }), up(1, 1, { port: 2 })]

t.test('threads start in order, one after the other', async t => {
  const { effects, phases } = play(pair, bothUp)
  t.strictSame(effects, [
    [{ type: 'start-thread', index: 0, life: 1, lastReply: null }],
    [{ type: 'start-thread', index: 1, life: 1, lastReply: null }],
    [],
  ])
  t.equal(phases, 'up up')
})

t.test('the last of the pair is restarted alone, after a wait, with what it replied before', async t => {
  const { effects, phases } = play(pair, [...bothUp, gone(1, 1, 5_000), over(1), up(1, 2)])
  t.strictSame(effects.slice(3), [
    [{ type: 'arm-back-off', round: 1, ms: 100 }],
    [{ type: 'start-thread', index: 1, life: 2, lastReply: { port: 2 } }],
    [{ type: 'announce-restart', threads: ['proxy-1'], error }],
  ])
  t.equal(phases, 'up up')
})

t.test('the first of the pair takes the rest with it; the end of the rest is no second death', async t => {
  const { effects, phases, state } = play(pair, [
    ...bothUp,
    gone(0, 1, 5_000),
    gone(1, 1, 5_001),
    over(1),
    up(0, 2),
    up(1, 2),
  ])
  t.strictSame(effects.slice(3), [
    [
      { type: 'end-thread', index: 1 },
      { type: 'arm-back-off', round: 1, ms: 100 },
    ],
    [],
    [{ type: 'start-thread', index: 0, life: 2, lastReply: { port: 1 } }],
    [{ type: 'start-thread', index: 1, life: 2, lastReply: { port: 2 } }],
    [{ type: 'announce-restart', threads: ['merge-1', 'proxy-1'], error }],
  ])
  t.equal(phases, 'up up')
  t.strictSame(state.deathsAtMs, [5_000])
})

t.test('one-for-one leaves the rest alone', async t => {
  const { phases, last } = play({ ...pair, strategy: 'one-for-one' }, [...bothUp, gone(0, 1, 5_000)])
  t.equal(phases, 'down up')
  t.strictSame(last, [{ type: 'arm-back-off', round: 1, ms: 100 }])
})

t.test('a second death during the wait begins a new wait, and both are announced once', async t => {
  const messages = [...bothUp, gone(1, 1, 5_000), gone(0, 1, 5_050), over(1), over(2), up(0, 2), up(1, 2)]
  const { effects } = play(pair, messages)
  t.strictSame(effects.slice(4), [
    [{ type: 'arm-back-off', round: 2, ms: 200 }],
    [],
    [{ type: 'start-thread', index: 0, life: 2, lastReply: { port: 1 } }],
    [{ type: 'start-thread', index: 1, life: 2, lastReply: { port: 2 } }],
    [{ type: 'announce-restart', threads: ['merge-1', 'proxy-1'], error }],
  ])
})

t.test('a death while starting is tried again, and a first start is not announced as a restart', async t => {
  const { effects, phases } = play(pair, [gone(0, 1, 10), over(1), up(0, 2), up(1, 1)])
  t.strictSame(effects.slice(1), [
    [{ type: 'arm-back-off', round: 1, ms: 100 }],
    [{ type: 'start-thread', index: 0, life: 2, lastReply: null }],
    [{ type: 'start-thread', index: 1, life: 1, lastReply: null }],
    [],
  ])
  t.equal(phases, 'up up')
})

t.test('messages about a former life change nothing', async t => {
  const before = play(pair, [...bothUp, gone(1, 1, 5_000), over(1)])
  const after = play(pair, [...bothUp, gone(1, 1, 5_000), over(1), gone(1, 1, 5_200), up(1, 1)])
  t.strictSame(after.state, before.state)
})

t.test('too many deaths within the period: the host gives up; spread out, it does not', async t => {
  const cycle = (n: number, atMs: number) => [gone(1, n, atMs), over(n), up(1, n + 1)]
  const quick = [1, 2, 3, 4].flatMap(n => cycle(n, n * 1_000))
  t.throws(() => play(pair, [...bothUp, ...quick]), {
    code: 'ACTOR_DEAD',
    message: /thread proxy-1: 4 deaths in 30000 ms, last: gone/,
  })
  const slow = [1, 2, 3, 4, 5].flatMap(n => cycle(n, n * 20_000))
  t.equal(play(pair, [...bothUp, ...slow]).phases, 'up up')
})

t.test('whoever asks for the start is told once all are up', async t => {
  const to = { address: { system: 'main', path: '/ask/1/' }, tell: () => {} }
  const asked: HostMessage = { type: 'threads-started-requested', replyTo: to }
  const replies = { 'merge-1': { port: 1 }, 'proxy-1': { port: 2 } }
  t.strictSame(play(pair, [asked, ...bothUp]).effects, [
    [{ type: 'start-thread', index: 0, life: 1, lastReply: null }],
    [],
    [{ type: 'start-thread', index: 1, life: 1, lastReply: null }],
    [{ type: 'tell-started', to, replies }],
  ])
  t.strictSame(play(pair, [...bothUp, asked]).last, [{ type: 'tell-started', to, replies }])
})

t.test('a thread is killed by name when it is there', async t => {
  const kill = (thread: string): HostMessage => ({ type: 'kill-thread', thread })
  t.strictSame(play(pair, [...bothUp, kill('proxy-1')]).last, [{ type: 'end-thread', index: 1 }])
  t.strictSame(play(pair, [...bothUp, kill('other')]).last, [])
  t.strictSame(play(pair, [...bothUp, gone(1, 1, 1), kill('proxy-1')]).last, [])
})

t.test('an effect that fails is a crash with its code', async t => {
  t.throws(() => play(pair, [{ type: 'effect-failed', error }]), { code: 'ACTOR_DEAD', message: /gone/ })
})

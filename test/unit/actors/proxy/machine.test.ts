// The proxy machine: what waits until the port is open, who is answered when a session has drained.

import t from 'tap'
import type { ProxySession } from '../../../../actors/protocol/proxy.js'
import { type ProxyEffect, type ProxyInput, type ProxyState, proxyMachine } from '../../../../actors/proxy/machine.js'
import type { ActorRef } from '../../../../actors/system/ref.js'
import type { SessionId } from '../../../../src/domain/ids.js'

const ref = <M>(path: string): ActorRef<M> => ({ address: { system: 'test', path }, tell: () => {} })
const sessionId = 's-1' as SessionId
const session = { sessionId, keyHash: 'h' } as ProxySession
const [replyTo, other] = [ref<unknown>('/a/'), ref<unknown>('/b/')]
const listening: ProxyInput = { type: 'gateway-listening', port: 7, url: 'http://h:7' }

function run(messages: readonly ProxyInput[], from: ProxyState = proxyMachine.initial.state) {
  let state = from
  const effects: ProxyEffect[] = []
  for (const message of messages) {
    const step = proxyMachine.step(state, message)
    state = step.state
    effects.push(...step.effects)
  }
  return { state, effects }
}

t.test('the gateway is opened first; what comes before waits and keeps its order', async t => {
  t.strictSame(proxyMachine.initial.effects, [{ type: 'open-gateway' }])
  const early = run([
    { type: 'session-put', session, replyTo },
    { type: 'forget-session', sessionId },
    { type: 'proxy-described', replyTo },
  ])
  t.strictSame(early.effects, [])
  t.strictSame(run([listening], early.state).effects, [
    { type: 'put-session', session, replyTo, url: 'http://h:7' },
    { type: 'forget-session', sessionId },
    { type: 'describe', replyTo },
  ])
})

t.test('a session is closed once, however many ask, and all are answered when it has drained', async t => {
  const asked = run([
    listening,
    { type: 'session-close-requested', sessionId, replyTo },
    { type: 'session-close-requested', sessionId, replyTo: other },
  ])
  t.strictSame(asked.effects, [{ type: 'close-session', sessionId }])
  const drained = run([{ type: 'session-drained', sessionId, calls: 3, aborted: 1 }], asked.state)
  t.strictSame(drained.effects, [{ type: 'reply-closed', replyTo: [replyTo, other], calls: 3, aborted: 1 }])
  const again = run([{ type: 'session-close-requested', sessionId, replyTo }], drained.state)
  t.strictSame(again.effects, [{ type: 'close-session', sessionId }], 'asking later closes again')
})

t.test('a gateway that cannot run is a crash, in every phase', async t => {
  const failed: ProxyInput = { type: 'gateway-failed', error: 'EADDRINUSE' }
  t.throws(() => run([failed]), /EADDRINUSE/)
  t.throws(() => run([listening, failed]), /EADDRINUSE/)
})

t.test('a drain told before the port is open changes nothing', async t => {
  const { state, effects } = run([{ type: 'session-drained', sessionId, calls: 0, aborted: 0 }])
  t.strictSame([state, effects], [proxyMachine.initial.state, []])
})

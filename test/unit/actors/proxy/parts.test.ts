// Parts of the proxy by themselves: slots, keep-alives, facts of a template, globs.

import t from 'tap'
import { heldStream } from '../../../../actors/proxy/held-stream.js'
import { globMatches } from '../../../../actors/proxy/side-calls.js'
import { Slots } from '../../../../actors/proxy/slots.js'
import { tokenFacts } from '../../../../actors/proxy/token-facts.js'
import { virtualClock } from '../../../../actors/system/virtual-clock.js'
import { dialects } from '../../../../src/dialects/registry.js'
import type { CanonicalRequest, CanonicalResponse } from '../../../../src/domain/conversation.js'
import type { AnswerWriter } from '../../../../src/http/answer.js'
import { createHttpClient } from '../../../../src/http/client.js'
import { upstreams } from '../../../../src/upstreams/registry.js'
import { scriptedEngine } from '../../../support/scripted-engine.js'

const request: CanonicalRequest = {
  dialect: 'openai_chat',
  model: 'm',
  messages: [{ role: 'user', content: 'hi' }],
  tools: [],
  sampling: {},
  stream: true,
  losses: [],
  echo: {},
}

t.test('slots are given in order, once each, and a waiting list has an end', async t => {
  const slots = new Slots(1, 2)
  const { signal } = new AbortController()
  const release = await slots.acquire(signal)
  const order: string[] = []
  const abort = new AbortController()
  const second = slots.acquire(abort.signal).catch((cause: Error) => order.push(cause.message))
  const third = slots.acquire(signal).then(free => {
    order.push('third')
    return free
  })
  await t.rejects(slots.acquire(signal), { code: 'DIALECT_RATE_LIMITED' })
  abort.abort(new Error('left'))
  await second
  release()
  release()
  const free = await third
  t.strictSame(order, ['left', 'third'])
  t.equal(slots.held, 1, 'releasing twice is releasing once')
  free()
  t.equal(slots.held, 0)
  t.equal(typeof (await slots.acquire(signal)), 'function')
})

function recordingAnswer() {
  const written: string[] = []
  let started = false
  const answer: AnswerWriter = {
    get started() {
      return started
    },
    closed: false,
    delivered: Promise.resolve(true),
    json: () => {},
    start: () => {
      started = true
    },
    async write(text) {
      written.push(text)
    },
    end: text => {
      if (text) written.push(text)
    },
    destroy: () => {},
  }
  return { answer, written }
}

const route = { operation: 'generate', model: null, stream: null, sse: true } as const

t.test('a waiting stream is kept alive where the dialect tolerates it', async t => {
  for (const [id, beats] of [
    ['openai_chat', 3],
    ['anthropic_messages', 3],
    ['google_generate', 0],
  ] as const) {
    const dialect = dialects[id]
    const clock = virtualClock()
    const { answer, written } = recordingAnswer()
    const stream = heldStream(answer, dialect, route, dialect.streamEncoder(request))
    const stop = new AbortController()
    const alive = stream.keepAlive(clock, stop.signal)
    await clock.advance(35_000)
    t.strictSame(written, Array(beats).fill(dialect.keepAlive), id)
    t.equal(answer.started, beats > 0)
    stop.abort()
    await alive
  }
})

t.test('a stream that is not quiet needs no keep-alive, and one that has ended gets none', async t => {
  const clock = virtualClock()
  const { answer, written } = recordingAnswer()
  const stream = heldStream(answer, dialects.openai_chat, route, dialects.openai_chat.streamEncoder(request))
  const stop = new AbortController()
  const alive = stream.keepAlive(clock, stop.signal)
  await stream.push([{ type: 'response-start', id: 'msg_1', createdAt: 1, model: 'm', promptTokens: 1 }])
  await clock.advance(9_000)
  await stream.push([{ type: 'text-delta', text: 'a' }])
  await clock.advance(2_000)
  t.notOk(written.some(text => text.startsWith(':')))
  const response: CanonicalResponse = {
    id: 'msg_1',
    createdAt: 1,
    model: 'm',
    content: 'a',
    toolCalls: [],
    finish: 'stop',
    usage: { promptTokens: 1, completionTokens: 1, cachedTokens: 0 },
  }
  await stream.push([{ type: 'response-end', response }])
  t.notOk(written.join('').includes('[DONE]'), 'held')
  await stream.release()
  t.ok(written.join('').includes('[DONE]'))
  stream.end()
  const count = written.length
  await clock.advance(60_000)
  await alive
  t.equal(written.length, count)
  stop.abort()
})

t.test(
  'facts of a template come from the engine’s tokenizer, once; where there is none they are not known',
  async t => {
    const engine = await scriptedEngine(t)
    const client = createHttpClient({ connections: 2 })
    t.teardown(() => client.close())
    const target = (url: string, profile: keyof typeof upstreams) => ({
      plan: {
        id: `${profile} at ${url}`,
        profile,
        urls: [url],
        modelServed: 'served',
        concurrency: 1,
        history: 'messages' as const,
        tokenizer: null,
        sampling: {},
        contextWindow: null,
        probe: 'off' as const,
      },
      profile: upstreams[profile],
      slots: new Slots(1, 1),
    })
    let now = 0
    const facts = tokenFacts(client, () => now)
    const vllm = target(engine.url, 'vllm')
    const wanted = { generationPromptLength: 2, endTokenId: 99, window: 4096 }
    t.strictSame(await facts.template(vllm, request, 'm'), wanted)
    t.strictSame(await facts.template(vllm, request, 'm'), wanted)
    t.equal(engine.tokenizations.length, 4)
    await facts.template(vllm, { ...request, enableThinking: false }, 'm')
    t.equal(engine.tokenizations.length, 8, 'another template mode is another question')
    const unknown = { generationPromptLength: 0, endTokenId: null, window: null }
    t.strictSame(await facts.template(target(engine.url, 'openai_compatible'), request, 'm'), unknown)
    t.equal(await facts.count(target(engine.url, 'openai_compatible'), request, 'm'), null)

    const gone = await scriptedEngine(t)
    await gone.close()
    const lost = target(gone.url, 'vllm')
    t.strictSame(await facts.template(lost, request, 'm'), unknown, 'never rejects')
    t.equal(await facts.count(lost, request, 'm'), null)
    const back = target(engine.url, 'vllm')
    const moved = { ...lost, plan: { ...lost.plan, urls: back.plan.urls } }
    t.strictSame(await facts.template(moved, request, 'm'), unknown, 'not asked again at once')
    now += 60_001
    t.strictSame(await facts.template(moved, request, 'm'), wanted, 'but after a minute')
  },
)

t.test('globs match whole names, slashes too', async t => {
  t.equal(globMatches('org/*', 'org/a/b'), true)
  t.equal(globMatches('gpt-?.4*', 'gpt-5.4-nano'), true)
  t.equal(globMatches('gpt-5.4', 'gpt-5x4'), false, 'a dot is a dot')
  t.equal(globMatches('nano', 'x-nano'), false)
})

// For every way of cutting an answer into events, a streaming client has what a non-streaming client gets.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { dialects } from '../../src/dialects/registry.js'
import type { CanonicalEvent, CanonicalResponse, ToolCall } from '../../src/domain/conversation.js'
import { answer, decode, eventsOf, framesOf } from '../support/dialects.js'
import { accumulate } from '../support/stream-clients.js'

const REQUESTS = {
  anthropic_messages: { messages: [{ role: 'user', content: 'hi' }], stream: true },
  openai_chat: { messages: [{ role: 'user', content: 'hi' }], stream: true, stream_options: { include_usage: true } },
  openai_responses: {
    input: 'hi',
    stream: true,
    include: ['reasoning.encrypted_content'],
    tools: [
      { type: 'custom', name: 'patch' },
      { type: 'namespace', name: 'mcp__x__', tools: [{ type: 'function', name: 'status' }] },
      { type: 'local_shell' },
    ],
  },
  google_generate: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
} as const

const names = fc.constantFrom('ls', 'patch', 'mcp__x__status', 'shell')
const args = fc.oneof(
  fc.dictionary(fc.string(), fc.jsonValue()),
  fc.record({ input: fc.string({ unit: 'binary' }) }),
  fc.record({ command: fc.string() }),
)
const calls = fc
  .array(fc.tuple(names, args), { maxLength: 3 })
  .map(list =>
    list.map(([name, value], index): ToolCall => ({ id: `c${index}`, name, arguments: JSON.stringify(value) })),
  )
const text = fc.string({ unit: 'grapheme' })
const answers = fc
  .record({
    reasoning: text,
    content: text,
    toolCalls: calls,
    finish: fc.constantFrom('stop', 'tool_calls', 'length', 'content_filter'),
    cached: fc.nat(100),
  })
  .map(({ reasoning, content, toolCalls, finish, cached }): CanonicalResponse => {
    const usage = { promptTokens: 100, completionTokens: 2, cachedTokens: cached }
    return answer({ content: content || null, toolCalls, finish, usage, ...(reasoning && { reasoning }) })
  })

/** Cuts at pseudo-random places, also inside surrogate pairs. */
const cutter = (sizes: readonly number[]) => {
  let next = 0
  return (whole: string): string[] => {
    const pieces: string[] = []
    for (let start = 0; start < whole.length; ) {
      const size = sizes[next++ % sizes.length] ?? 1
      pieces.push(whole.slice(start, start + size))
      start += size
    }
    return pieces
  }
}
const sizes = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 5 })

for (const dialect of Object.values(dialects)) {
  t.test(`${dialect.id}: any cut of an answer gives a streaming client what a whole answer holds`, async () => {
    const request = decode(dialect.id, REQUESTS[dialect.id])
    fc.assert(
      fc.property(answers, sizes, (response, cuts) => {
        const frames = framesOf(dialect.streamEncoder(request), eventsOf(response, cutter(cuts)))
        const whole = JSON.parse(JSON.stringify(dialect.encodeResponse(response, request)))
        assert.deepEqual(accumulate(dialect.id, frames), whole)
        const firstHeld = frames.findIndex(({ hold }) => hold)
        assert.ok(firstHeld >= 0 && frames.slice(firstHeld).every(({ hold }) => hold), 'once held, all later is held')
      }),
      { numRuns: 150 },
    )
  })

  t.test(`${dialect.id}: calls whose pieces are interleaved come out one after the other`, async () => {
    const request = decode(dialect.id, REQUESTS[dialect.id])
    fc.assert(
      fc.property(calls, sizes, (toolCalls, cuts) => {
        const response = answer({ toolCalls, finish: 'tool_calls' })
        const [start, ...rest] = eventsOf(response, cutter(cuts)) as [CanonicalEvent, ...CanonicalEvent[]]
        const end = rest.pop() as CanonicalEvent
        const frames = framesOf(dialect.streamEncoder(request), [start, ...roundRobin(rest), end])
        const whole = JSON.parse(JSON.stringify(dialect.encodeResponse(response, request)))
        assert.deepEqual(accumulate(dialect.id, frames), whole)
      }),
      { numRuns: 50 },
    )
  })

  t.test(`${dialect.id}: an answer that came whole is streamed whole`, async () => {
    const request = decode(dialect.id, REQUESTS[dialect.id])
    const toolCalls = [{ id: 'c1', name: 'ls', arguments: '{"path": "."}' }]
    const response = answer({ reasoning: 'hm', content: 'Ok.', toolCalls, finish: 'tool_calls' })
    const [start, end] = [eventsOf(response).at(0), eventsOf(response).at(-1)] as [CanonicalEvent, CanonicalEvent]
    const frames = framesOf(dialect.streamEncoder(request), [start, end])
    assert.deepEqual(
      accumulate(dialect.id, frames),
      JSON.parse(JSON.stringify(dialect.encodeResponse(response, request))),
    )
  })
}

/** One event of each call in turn, each call's own in order. */
function roundRobin(events: readonly CanonicalEvent[]): CanonicalEvent[] {
  const queues = new Map<number, CanonicalEvent[]>()
  for (const event of events) {
    const index = 'index' in event ? event.index : -1
    queues.set(index, [...(queues.get(index) ?? []), event])
  }
  const out: CanonicalEvent[] = []
  while (out.length < events.length) for (const queue of queues.values()) out.push(...queue.splice(0, 1))
  return out
}

// The case book's group anthropic-response, from the canonical answer on, streaming and not.

import t from 'tap'
import { dialects } from '../../../src/dialects/registry.js'
import type { CanonicalResponse } from '../../../src/domain/conversation.js'
import { answer, dataOf, decode, eventsOf, framesOf } from '../../support/dialects.js'
import { accumulate } from '../../support/stream-clients.js'

const dialect = dialects.anthropic_messages
const request = decode('anthropic_messages', { messages: [{ role: 'user', content: 'hi' }], stop_sequences: ['###'] })
const whole = (response: CanonicalResponse) => dialect.encodeResponse(response, request)
const stream = (response: CanonicalResponse, cut?: (text: string) => readonly string[]) =>
  framesOf(dialect.streamEncoder(request), eventsOf(response, cut))
const types = (response: CanonicalResponse) => stream(response).map(({ frame }) => frame.event)
const ls = { id: 'c1', name: 'ls', arguments: '{"path":"."}' }

t.test('anthropic-response-1, anthropic-response-2: message_start has every key, and the counts are real', async t => {
  const [start, ...rest] = dataOf(stream(answer({ content: 'ok' })))
  t.strictSame(start, {
    type: 'message_start',
    message: {
      id: 'msg_0123456789ab',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 100, output_tokens: 0 },
    },
  })
  t.strictSame(rest.at(-2)?.['usage'], { input_tokens: 100, output_tokens: 2 })
  const cached = answer({ content: 'ok', usage: { promptTokens: 10, completionTokens: 2, cachedTokens: 4 } })
  t.strictSame(whole(cached)['usage'], { input_tokens: 6, cache_read_input_tokens: 4, output_tokens: 2 })
})

t.test('a prompt count that comes late stands in message_delta', async t => {
  const events = eventsOf(answer({ content: 'ok' })).map(event =>
    event.type === 'response-start' ? { ...event, promptTokens: null } : event,
  )
  const frames = framesOf(dialect.streamEncoder(request), events)
  t.match(accumulate('anthropic_messages', frames), { usage: { input_tokens: 100, output_tokens: 2 } })
})

t.test('anthropic-response-3: a block closes before the next opens', async t => {
  t.strictSame(types(answer({ content: 'Ok.', toolCalls: [ls], finish: 'tool_calls' })), [
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ])
})

t.test('anthropic-response-4: arguments that arrive at once reach the client', async t => {
  const [, start, delta, stop] = dataOf(stream(answer({ toolCalls: [ls], finish: 'tool_calls' })))
  t.match(start, { content_block: { type: 'tool_use', id: 'c1', name: 'ls', input: {} } })
  t.match(delta, { delta: { type: 'input_json_delta', partial_json: '{"path":"."}' } })
  t.match(stop, { type: 'content_block_stop', index: 0 })
})

t.test('anthropic-response-5, anthropic-response-6: stop reasons', async t => {
  const cases: [Partial<CanonicalResponse>, string, string | null][] = [
    [{ content: 'a', finish: 'stop' }, 'end_turn', null],
    [{ toolCalls: [ls], finish: 'tool_calls' }, 'tool_use', null],
    [{ content: 'a', finish: 'length' }, 'max_tokens', null],
    [{ content: 'a', finish: 'content_filter' }, 'refusal', null],
    [{ content: 'a', finish: 'stop', stopSequence: '###' }, 'stop_sequence', '###'],
    [{ toolCalls: [ls], finish: 'stop' }, 'tool_use', null],
    [{ content: 'a', finish: 'tool_calls' }, 'end_turn', null],
  ]
  for (const [fields, reason, sequence] of cases) {
    const wanted = { stop_reason: reason, stop_sequence: sequence }
    t.match(whole(answer(fields)), wanted)
    t.match(dataOf(stream(answer(fields))).at(-2), { type: 'message_delta', delta: wanted })
  }
})

t.test('anthropic-response-7: a cut call is no call with an input of ours', async t => {
  const cut = answer({ toolCalls: [{ id: 'c1', name: 'write', arguments: '{"path": "a' }], finish: 'length' })
  t.match(whole(cut), {
    stop_reason: 'max_tokens',
    content: [{ type: 'text', text: '<tool_call>\n{"name": "write", "arguments": {"path": "a' }],
  })
  const data = dataOf(stream(cut))
  t.strictSame(
    data.map(({ type }) => type),
    [
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ],
  )
  t.match(data[2], { delta: { partial_json: '{"path": "a' } })
  t.match(data[4], { delta: { stop_reason: 'max_tokens' } })
  const unstarted = answer({ toolCalls: [{ id: 'c1', name: 'write', arguments: '' }], finish: 'length' })
  t.match(whole(unstarted), { content: [{ type: 'text' }] }, 'a call cut before its arguments has none')
})

t.test('broken arguments are shown as text without streaming, never repaired', async t => {
  const broken = answer({ toolCalls: [{ id: 'c1', name: 'f', arguments: '{"a": ' }], finish: 'tool_calls' })
  t.match(whole(broken), {
    stop_reason: 'end_turn',
    content: [{ type: 'text', text: '<tool_call>\n{"name": "f", "arguments": {"a": }\n</tool_call>' }],
  })
  const bare = answer({ toolCalls: [{ id: 'c1', name: 'f', arguments: '' }], finish: 'tool_calls' })
  t.match(whole(bare), { content: [{ type: 'tool_use', input: {} }] }, 'no text at all is a call without arguments')
})

t.test('anthropic-response-8: thinking without text is an answer', async t => {
  const thinking = answer({ reasoning: 'hm', content: '' })
  t.match(whole(thinking), {
    stop_reason: 'end_turn',
    content: [{ type: 'thinking', thinking: 'hm', signature: 'sg_2' }],
  })
  t.strictSame(accumulate('anthropic_messages', stream(thinking)), whole(thinking))
})

t.test('anthropic-response-9: an over-long prompt is told in the words that start compaction', async t => {
  const message = dialect.contextLengthMessage(250_000, 200_000)
  t.strictSame(dialect.errorBody(400, message), {
    type: 'error',
    error: { type: 'invalid_request_error', message: 'prompt is too long: 250000 tokens > 200000 maximum' },
  })
  t.equal(dialect.contextLengthMessage(null, null), 'prompt is too long')
})

t.test(
  'anthropic-response-10: a failure in mid-stream is an error event, and half an answer never ends cleanly',
  async t => {
    const encoder = dialect.streamEncoder(request)
    framesOf(encoder, eventsOf(answer({ content: 'half' })).slice(0, 2))
    const [frame, ...rest] = encoder.fail(502, 'the engine closed the connection')
    t.equal(frame?.event, 'error')
    t.strictSame(JSON.parse(frame?.data ?? ''), {
      type: 'error',
      error: { type: 'api_error', message: 'the engine closed the connection' },
    })
    t.strictSame(rest, [])
    for (const finish of ['abort', 'error'] as const) {
      t.throws(() => whole(answer({ content: 'half', finish })), { code: 'UPSTREAM_ERROR' })
      t.throws(() => stream(answer({ content: 'half', finish })), { code: 'UPSTREAM_ERROR' })
    }
  },
)

t.test('held: the end of a tool call and all after, else the message end; text flows', async t => {
  const held = (response: CanonicalResponse) => stream(response).find(({ hold }) => hold)?.frame.data
  t.match(held(answer({ content: 'Ok.', toolCalls: [ls], finish: 'tool_calls' })), /content_block_stop","index":1/)
  t.match(held(answer({ content: 'Ok.' })), /message_delta/)
})

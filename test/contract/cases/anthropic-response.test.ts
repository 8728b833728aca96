// Case book, group anthropic-response, over real HTTP.

import t from 'tap'
import { type Case, runCases } from '../../support/cases.js'
import type { ScriptedAnswer } from '../../support/scripted-engine.js'

const dialect = 'anthropic_messages'
const body = { messages: [{ role: 'user', content: 'hi' }] }
const ls = { id: 'c1', name: 'ls', arguments: '{"path":"."}' }
const types = (events: readonly { readonly type?: unknown }[]) => events.map(event => event['type'])

const stop = (
  name: string,
  engine: ScriptedAnswer,
  reason: string,
  sequence: string | null,
  engineFinish: string,
): Case => ({
  name,
  dialect,
  body: { ...body, stop_sequences: ['###'] },
  engine,
  check(t, { answer, record }) {
    t.match(answer, { stop_reason: reason, stop_sequence: sequence })
    t.equal(record.engineFinish, engineFinish, 'the record keeps the word of the engine')
  },
})

const cases: Case[] = [
  {
    name: 'anthropic-response-1, anthropic-response-2: message_start has every key, and the usage is real',
    dialect,
    body,
    engine: { pieces: ['ok'], promptIds: Array.from({ length: 100 }, (_, id) => id), ids: [10, 99] },
    check(t, { stream, answer, events }) {
      t.match(answer, { model: 'm', usage: { output_tokens: 2 } })
      if (!stream) {
        t.equal(answer['usage']?.['input_tokens'], 100)
        return
      }
      const [start] = events
      t.match(start, {
        type: 'message_start',
        message: { type: 'message', role: 'assistant', model: 'm', stop_reason: null, stop_sequence: null },
      })
      t.strictSame(start?.['message']?.['content'], [])
      const told = [start?.['message']?.['usage'], events.at(-2)?.['usage']].map(usage => usage?.['input_tokens'])
      t.ok(told.includes(100 as never), `input tokens told: ${told.join(', ')}`)
    },
  },
  {
    name: 'anthropic-response-3: a block closes before the next opens',
    dialect,
    body,
    engine: { pieces: ['Ok.'], toolCalls: [ls] },
    check(t, { stream, answer, events }) {
      t.match(answer['content'], [
        { type: 'text', text: 'Ok.' },
        { type: 'tool_use', name: 'ls', input: { path: '.' } },
      ])
      if (!stream) return
      const blocks = events.filter(({ type }) => /content_block_(start|stop)/.test(String(type)))
      t.strictSame(
        blocks.map(({ type, index }) => `${type} ${index}`),
        ['content_block_start 0', 'content_block_stop 0', 'content_block_start 1', 'content_block_stop 1'],
      )
      t.strictSame(types(events.slice(-2)), ['message_delta', 'message_stop'])
    },
  },
  {
    name: 'anthropic-response-4: arguments that arrive at once reach the client',
    dialect,
    body,
    engine: { toolCalls: [ls] },
    modes: [true],
    check(t, { events }) {
      const start = events.find(({ type }) => type === ('content_block_start' as never))
      t.strictSame(start?.['content_block']?.['input'], {})
      const pieces = events.flatMap(({ delta }) => delta?.['partial_json'] ?? [])
      t.equal(pieces.join(''), '{"path":"."}')
    },
  },
  stop('anthropic-response-5: stop is end_turn', { pieces: ['a'] }, 'end_turn', null, 'stop'),
  stop('anthropic-response-5: tool_calls is tool_use', { toolCalls: [ls] }, 'tool_use', null, 'tool_calls'),
  stop('anthropic-response-5: length is max_tokens', { pieces: ['a'], finish: 'length' }, 'max_tokens', null, 'length'),
  stop(
    'anthropic-response-5: content_filter is refusal',
    { pieces: ['a'], finish: 'content_filter' },
    'refusal',
    null,
    'content_filter',
  ),
  stop(
    'anthropic-response-5: a matched stop string is stop_sequence',
    { pieces: ['a'], stopReason: '###' },
    'stop_sequence',
    '###',
    'stop',
  ),
  stop(
    'anthropic-response-5: a stop id is no stop string',
    { pieces: ['a'], stopReason: 151645 as unknown as string },
    'end_turn',
    null,
    'stop',
  ),
  stop(
    'anthropic-response-6: a finish "stop" with tool calls is tool_use',
    { toolCalls: [ls], finish: 'stop' },
    'tool_use',
    null,
    'stop',
  ),
  {
    name: 'anthropic-response-7: a cut call is no call with an input of ours, and the record has all of it',
    dialect,
    body,
    engine: {
      toolCalls: [{ id: 'c1', name: 'write', arguments: '{"path": "a' }],
      finish: 'length',
      ids: [10, 11, 12],
    },
    check(t, { stream, text, answer, record }) {
      t.match(text, /"stop_reason":"max_tokens"/)
      if (stream) t.match(text, /"partial_json":"\{\\"path\\": \\"a"/)
      else t.notMatch(JSON.stringify(answer), /"type":"tool_use"/)
      t.equal(record.sampledIds?.length, 3)
      t.match(record.response, { choices: [{ message: { tool_calls: [{ function: { arguments: '{"path": "a' } }] } }] })
    },
  },
  {
    name: 'anthropic-response-8: thinking without text is an answer',
    dialect,
    body,
    engine: { reasoning: 'hm', pieces: [], ids: [10, 99] },
    check(t, { answer }) {
      t.match(answer, { stop_reason: 'end_turn', content: [{ type: 'thinking', thinking: 'hm' }] })
    },
  },
  ...[true, false].map(
    (isNested): Case => ({
      name: `anthropic-response-9: an over-long prompt is told in the words that start compaction, ${isNested ? 'nested' : 'flat'}`,
      dialect,
      body,
      status: 400,
      engine: { status: 400, error: tooLong(isNested) },
      check(t, { answer, record, failed }) {
        t.strictSame(answer, {
          type: 'error',
          error: { type: 'invalid_request_error', message: 'prompt is too long: 250000 tokens > 200000 maximum' },
        })
        t.notOk(record.completionId, 'no turn')
        t.equal(failed?.status, 400)
      },
    }),
  ),
  ...[{ cutAfter: 2 }, { errorAfter: 2 }].map(
    (fault): Case => ({
      name: `anthropic-response-10: an engine that fails in mid-stream (${Object.keys(fault)[0]}) gives an error event`,
      dialect,
      body,
      modes: [true],
      engine: { pieces: ['half', ' an', ' answer'], ...fault },
      check(t, { frames, events, record, failed }) {
        t.equal(frames.at(-1)?.event, 'error')
        t.match(events.at(-1), { type: 'error', error: { type: 'api_error', message: /./ } })
        t.notOk(types(events).includes('message_stop'))
        t.notOk(record.completionId)
        t.equal(failed?.abortedTokens, 2)
      },
    }),
  ),
]

function tooLong(isNested: boolean) {
  const message =
    "This model's maximum context length is 200000 tokens. However, you passed 250000 input tokens and requested 64 output tokens."
  return isNested
    ? { error: { message, type: 'BadRequestError', param: null, code: 400 } }
    : { object: 'error', message, type: 'BadRequestError', param: null, code: 400 }
}

t.test('one answer each', t => runCases(t, cases))

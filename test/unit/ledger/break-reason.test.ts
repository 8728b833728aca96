// Every break has a name. Ids are characters here, so that prompts are written as text: `>` opens an answer, `;` ends it.

import t from 'tap'
import { prefixMerging } from '../../../src/builders/prefix-merging.js'
import type { CapturedCall } from '../../../src/domain/completion.js'
import type { JsonObject } from '../../../src/domain/json.js'
import { ledgerOf, recordOf, SESSION } from '../../support/ledger-fixtures.js'

const idsOf = (text: string): number[] => [...text].map(char => char.codePointAt(0) ?? 0)
const decode = async (ids: Int32Array): Promise<string> => String.fromCodePoint(...ids)

const user: JsonObject = { role: 'user', content: 'q' }
const tool: JsonObject = { role: 'tool', tool_call_id: 'c', content: 'r' }
const assistant = (content: string | null, more: JsonObject = {}): JsonObject => ({
  role: 'assistant',
  content,
  ...more,
})
const calling = (args: string, more: JsonObject = {}): JsonObject =>
  assistant(null, { ...more, tool_calls: [{ id: 'c', type: 'function', function: { name: 'bash', arguments: args } }] })

interface Break {
  readonly title: string
  /** What was sampled after `q>`, and its message. */
  readonly said: string
  readonly answer: JsonObject
  /** The later prompt, and the message in the answer's place. */
  readonly prompt: string
  readonly replay: JsonObject
  readonly reason: string
  readonly generation?: number
  readonly decode?: (ids: Int32Array) => Promise<string | null>
}

const CASES: readonly Break[] = [
  {
    title: 'the harness dropped the thinking',
    said: '<t>plan</t>yes;',
    answer: assistant('yes', { reasoning_content: 'plan' }),
    prompt: 'q>yes;more>',
    replay: assistant('yes'),
    reason: 'thinking_stripped',
  },
  {
    title: 'the template dropped the thinking',
    said: '<t>plan</t>yes;',
    answer: assistant('yes', { reasoning_content: 'plan' }),
    prompt: 'q>yes;more>',
    replay: assistant('yes', { reasoning_content: 'plan' }),
    reason: 'thinking_stripped',
  },
  {
    title: 'the server hid the thinking, so nobody replays it',
    said: '<t>plan to bash</t>yes call bash {};',
    answer: { ...calling('{}'), content: 'yes' },
    prompt: 'q>yes call bash {};r>',
    replay: { ...calling('{}'), content: 'yes' },
    reason: 'thinking_stripped',
  },
  {
    title: 'white space before a call whose name the thinking mentions',
    said: '<t>use bash</t>\n\n\ncall bash {};',
    answer: calling('{}', { reasoning_content: 'use bash' }),
    prompt: 'q><t>use bash</t>\ncall bash {};r>',
    replay: calling('{}', { reasoning_content: 'use bash' }),
    reason: 'whitespace',
  },
  {
    title: 'white space inside the arguments',
    said: 'call bash {"a":1};',
    answer: calling('{"a":1}'),
    prompt: 'q>call bash {"a": 1};r>',
    replay: calling('{"a":1}'),
    reason: 'arguments_reserialised',
  },
  {
    title: 'the harness wrote the arguments anew',
    said: 'call bash {"a":1,"b":2};',
    answer: calling('{"a":1,"b":2}'),
    prompt: 'q>call bash {"b": 2, "a": 1};r>',
    replay: calling('{"b": 2, "a": 1}'),
    reason: 'arguments_reserialised',
  },
  {
    title: 'the template wrote the arguments anew',
    said: 'call bash {"a":true};',
    answer: calling('{"a":true}'),
    prompt: 'q>call bash {"a":True};r>',
    replay: calling('{"a":true}'),
    reason: 'arguments_reserialised',
  },
  {
    title: 'white space at the edges of the text',
    said: '\n\nyes;',
    answer: assistant('\n\nyes'),
    prompt: 'q>yes;more>',
    replay: assistant('yes'),
    reason: 'whitespace',
  },
  {
    title: 'the template took white space away',
    said: '\n\nyes;',
    answer: assistant('yes'),
    prompt: 'q>yes;more>',
    replay: assistant('yes'),
    reason: 'whitespace',
  },
  {
    title: 'the answer was edited',
    said: 'yes;',
    answer: assistant('yes'),
    prompt: 'q>no;more>',
    replay: assistant('no'),
    reason: 'answer_edited',
  },
  {
    title: 'another tool was called in the replay',
    said: 'call bash {};',
    answer: calling('{}'),
    prompt: 'q>call bash {"x":1};r>',
    replay: calling('{"x":1}'),
    reason: 'answer_edited',
  },
  {
    title: 'a call that is no JSON came back without its arguments',
    said: 'call bash {"a":;',
    answer: calling('{"a":'),
    prompt: 'q>call bash {};r>',
    replay: calling('{}'),
    reason: 'tool_call_unparsed',
  },
  {
    title: 'a call that is no JSON came back repaired',
    said: 'call bash {"a":1;',
    answer: calling('{"a":1'),
    prompt: 'q>call bash {"a":1};r>',
    replay: calling('{"a":1}'),
    reason: 'tool_call_unparsed',
  },
  {
    title: 'a call that is no JSON came back as text',
    said: 'yes call bash {"a":1;',
    answer: { ...calling('{"a":1'), content: 'yes' },
    prompt: 'q>yes {"a":1;more>',
    replay: assistant('yes {"a":1'),
    reason: 'tool_call_unparsed',
  },
  {
    title: 'the answer is gone from the history',
    said: 'yes;',
    answer: assistant('yes'),
    prompt: 'q>summary>',
    replay: user,
    reason: 'history_rewritten',
  },
  {
    title: 'the generation prompt is not rendered again',
    said: 'yes;',
    answer: assistant('yes'),
    prompt: 'q<yes;more>',
    replay: assistant('yes'),
    reason: 'generation_prompt',
    generation: 1,
  },
  {
    title: 'the template did something nobody knows',
    said: 'yes;',
    answer: assistant('yes'),
    prompt: 'q>YES;more>',
    replay: assistant('yes'),
    reason: 'unknown',
  },
  {
    title: 'equal messages and no decoder',
    said: '\n\nyes;',
    answer: assistant('yes'),
    prompt: 'q>yes;more>',
    replay: assistant('yes'),
    reason: 'unknown',
    decode: async () => null,
  },
]

for (const { title, said, answer, prompt, replay, reason, generation = 0, decode: text = decode } of CASES)
  t.test(`${title}: ${reason}`, async t => {
    const over = { generationPromptLength: generation, endTokenId: 59 }
    const captured: CapturedCall[] = [
      recordOf({
        id: 'c1',
        prompt: idsOf('q>'),
        sampled: idsOf(said),
        startedAtMs: 1,
        over: { ...over, request: { messages: [user] }, response: { choices: [{ message: answer }] } },
      }),
      recordOf({
        id: 'c2',
        prompt: idsOf(prompt),
        sampled: idsOf('ok;'),
        startedAtMs: 2,
        over: {
          ...over,
          request: { messages: [user, replay, replay['role'] === 'user' ? user : tool] },
          response: { choices: [{ message: assistant('ok') }] },
        },
      }),
    ].map(record => ({ record, delivered: 'yes' }))
    const made = await prefixMerging.build(
      ledgerOf(captured),
      {},
      { decode: text, sessionId: SESSION, taskId: 't', taskMetadata: {} },
    )
    t.strictSame(made.ledger.joins, { rewritten: 1 })
    t.strictSame(made.ledger.breaks, { [reason]: 1 })
    t.strictSame(
      made.traces.map(trace => trace.breakReason),
      [null, reason],
    )
    t.equal(made.ledger.tokens.trained, made.ledger.tokens.sampled)
  })

t.test('a break in mid-trace is named too: the later call goes on from an older answer', async t => {
  const call = (id: string, at: number, prompt: string, said: string, messages: JsonObject[], answer: JsonObject) =>
    recordOf({
      id,
      prompt: idsOf(prompt),
      sampled: idsOf(said),
      startedAtMs: at,
      over: { endTokenId: 59, request: { messages }, response: { choices: [{ message: answer }] } },
    })
  const first = calling('{}')
  const captured: CapturedCall[] = [
    call('c1', 1, 'q>', 'call bash {};', [user], first),
    call('c2', 2, 'q>call bash {};r>', 'yes;', [user, first, tool], assistant('yes')),
    call('c3', 3, 'q>call bash {};r>no;more>', 'ok;', [user, first, tool, assistant('no'), user], assistant('ok')),
  ].map(record => ({ record, delivered: 'yes' }))
  const made = await prefixMerging.build(
    ledgerOf(captured),
    {},
    { decode, sessionId: SESSION, taskId: 't', taskMetadata: {} },
  )
  t.strictSame(made.ledger.joins, { exact: 1, rewritten: 1 })
  t.strictSame(made.ledger.breaks, { answer_edited: 1 })
  t.strictSame(
    made.traces.map(trace => [trace.breakReason, trace.calls.map(({ completionId }) => completionId)]),
    [
      [null, ['c1', 'c2']],
      [null, ['c1', 'c3']],
    ],
  )
})

t.test('of several differences the gravest is named', async t => {
  const { compareAnswers } = await import('../../../src/ledger/break-reason.js')
  const { viewOf } = await import('../../../src/ledger/chat.js')
  const compare = (left: JsonObject, right: JsonObject) => compareAnswers(viewOf(left), viewOf(right))
  const thought = { reasoning_content: 'plan' }
  t.equal(compare(calling('{"a":1}', thought), calling('{"a": 1}')), 'thinking_stripped')
  t.equal(compare(calling('{"a":1}', thought), calling('{"a": 2}')), 'answer_edited')
  t.equal(
    compare(calling('{"a":1}', thought), calling('{"a": 1}', { reasoning_content: 'plan ' })),
    'arguments_reserialised',
  )
  t.equal(compare(assistant('a', thought), assistant('a', { reasoning: 'other' })), 'answer_edited')
  t.equal(compare(assistant(''), assistant(null)), null)
  const both = (first: string, second: string): JsonObject => ({
    role: 'assistant',
    content: 'a',
    tool_calls: [first, second].map((args, i) => ({ id: `c${i}`, function: { name: 'bash', arguments: args } })),
  })
  t.equal(compare(both('{"a":', '{"b":1}'), both('{}', '{"b":1}')), 'tool_call_unparsed')
  t.equal(compare(both('{"a":', '{"b":1}'), { ...both('{}', '{"b":1}'), content: 'b' }), 'answer_edited')
  t.equal(compare(both('{"a":', '{"b":1}'), both('{}', '{"b":2}')), 'answer_edited')
  t.equal(compare(both('"a"', '{"b":1}'), calling('{"b":1}', { content: 'a' })), 'tool_call_unparsed')
  t.equal(compare(both('[]', '[]'), both('[]', '[]')), null)
})

// The training filter of the contract (9.6).

import t from 'tap'
import type { JsonObject } from '../../../src/domain/json.js'
import { findInvalidToolCall } from '../../../src/ledger/invalid-tool-call.js'

const call = [{ id: 'x', type: 'function', function: { name: 'bash', arguments: '{}' } }]
const CASES: readonly [title: string, finish: string, message: JsonObject, expected: RegExp | null][] = [
  ['plain text is fine', 'stop', { content: 'done' }, null],
  ['a structured call is fine', 'tool_calls', { content: null, tool_calls: call }, null],
  ['finish tool_calls without a call', 'tool_calls', { content: 'x' }, /finish reason tool_calls/],
  [
    'a raw marker on a line of its own',
    'stop',
    { content: 'I will\n  <tool_call>\n{"name": "bash"' },
    /raw <tool_call>/,
  ],
  ['a raw function marker', 'stop', { content: '<function=bash>\n<parameter=x>' }, /raw <function=bash>/],
  ['an inline mention is fine', 'stop', { content: 'write <tool_call> before the JSON' }, null],
  ['a fenced example is fine', 'stop', { content: '```\n<tool_call>\n```\nso' }, null],
  ['a marker beside a structured call is fine', 'stop', { content: '<tool_call>', tool_calls: call }, null],
  [
    'an annotation of the parser',
    'stop',
    { content: 'x', tool_call_parse_error: 'bad JSON' },
    /tool_call_parse_error: bad JSON/,
  ],
  [
    'a nested annotation',
    'stop',
    { content: 'x', parse_result: { invalid_tool_call: true } },
    /invalid_tool_call: true/,
  ],
  ['an annotation that says no', 'stop', { content: 'x', invalid_tool_call: false }, null],
]
for (const [title, finish, message, expected] of CASES)
  t.test(title, t => {
    const found = findInvalidToolCall(finish, [
      { role: 'user', content: '<tool_call>' },
      { role: 'assistant', ...message },
    ])
    if (expected === null) t.equal(found, null)
    else t.match(found, expected)
    t.end()
  })

t.test('a trace without an assistant message has nothing to find', t => {
  t.equal(findInvalidToolCall('tool_calls', [{ role: 'user', content: 'x' }]), null)
  t.end()
})

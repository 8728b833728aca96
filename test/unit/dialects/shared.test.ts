// The pieces that all dialects share, by themselves.

import t from 'tap'
import { callAsText } from '../../../src/dialects/shared/answer.js'
import { openText, sealText } from '../../../src/dialects/shared/base64.js'
import { BlockSequencer } from '../../../src/dialects/shared/blocks.js'
import { createHistory } from '../../../src/dialects/shared/history.js'
import { openaiContextLength } from '../../../src/dialects/shared/openai.js'
import { decodeSegment } from '../../../src/dialects/shared/paths.js'
import { pythonJson } from '../../../src/dialects/shared/python-json.js'
import { answer } from '../../support/dialects.js'

t.test('JSON is written as Python writes it', async t => {
  t.equal(
    pythonJson({ b: [1, 'é"\n', null, true, false], a: { x: 1e-7, y: 0.00001, z: 1e21, w: 0.5 }, none: undefined }),
    '{"b": [1, "é\\"\\n", null, true, false], "a": {"x": 1e-07, "y": 1e-05, "z": 1e+21, "w": 0.5}}',
  )
  t.equal(pythonJson(undefined), 'null')
  t.equal(pythonJson({}), '{}')
  t.equal(pythonJson([]), '[]')
})

t.test('sealed text opens exactly, anything else does not', async t => {
  t.equal(openText(sealText('größer 🙂\n')), 'größer 🙂\n')
  t.equal(openText(sealText('')), '')
  for (const foreign of [null, 7, '', 'opaque', 'c2lnbmF0dXJl', '====', 'A']) t.equal(openText(foreign), null)
})

t.test('a call is shown in the form in which it was sampled', async t => {
  const call = { name: 'f', arguments: '{"a": 1' }
  t.equal(callAsText(call, true), '<tool_call>\n{"name": "f", "arguments": {"a": 1')
  t.equal(callAsText(call, false), '<tool_call>\n{"name": "f", "arguments": {"a": 1}\n</tool_call>')
})

t.test('a piece of a call that never started is a bug, and says so', async t => {
  const blocks = new BlockSequencer()
  t.throws(() => blocks.push({ type: 'tool-call-delta', index: 3, arguments: 'x' }), { code: 'INTERNAL_BUG' })
})

t.test('text that comes after a call waits for it, and the order stays', async t => {
  const blocks = new BlockSequencer()
  const steps = [
    ...blocks.push({ type: 'tool-call-start', index: 0, id: 'c', name: 'f' }),
    ...blocks.push({ type: 'text-delta', text: 'later' }),
    ...blocks.push({ type: 'tool-call-delta', index: 0, arguments: '{}' }),
    ...blocks.push({ type: 'tool-call-end', index: 0 }),
    ...blocks.push({ type: 'response-end', response: answer({ finish: 'length' }) }),
  ]
  t.strictSame(steps, [
    { type: 'open', kind: 'call', id: 'c', name: 'f' },
    { type: 'delta', text: '{}' },
    { type: 'close', kind: 'call', call: { id: 'c', name: 'f', arguments: '{}' }, cut: false },
    { type: 'open', kind: 'text' },
    { type: 'delta', text: 'later' },
    { type: 'close', kind: 'text', text: 'later', cut: true },
  ])
})

t.test('results without calls, calls without results and notices between them all keep their text', async t => {
  const history = createHistory()
  history.result({ id: null, text: 'orphan' })
  history.user([{ type: 'text', text: 'go' }])
  history.assistant({ text: '', toolCalls: [{ id: 'a', name: 'f', arguments: '{}' }] })
  history.system('notice')
  history.user([{ type: 'text', text: 'on' }])
  history.system('')
  t.strictSame(history.finish(), {
    messages: [
      { role: 'tool', toolCallId: 'call_0_0', content: 'orphan' },
      { role: 'user', content: 'go' },
      { role: 'assistant', content: null, toolCalls: [{ id: 'a', name: 'f', arguments: '{}' }] },
      { role: 'user', content: 'notice' },
      { role: 'user', content: 'on' },
    ],
    rules: ['notice_as_user_message'],
    losses: [],
  })
})

t.test('only system text: it is the only message', async t => {
  const history = createHistory()
  history.system('A')
  t.strictSame(history.finish().messages, [{ role: 'system', content: 'A' }])
})

t.test('words for an over-long prompt need no numbers, and a path that is badly encoded stays as it is', async t => {
  t.equal(
    openaiContextLength(null, null),
    "This model's maximum context length is exceeded. Please reduce the length of the messages.",
  )
  t.equal(decodeSegment('%zz'), '%zz')
})

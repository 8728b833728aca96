// Which echoes count as the recorded turn, and which are another history.

import t from 'tap'
import { TurnMemory } from '../../../../actors/proxy/turn-memory.js'
import type { CanonicalMessage } from '../../../../src/domain/conversation.js'

const user = (content: string): CanonicalMessage => ({ role: 'user', content })
const says = (content: string | null, reasoning?: string): CanonicalMessage => ({
  role: 'assistant',
  content,
  ...(reasoning !== undefined && { reasoning }),
})
const calls = (id: string, args: string, name = 'run'): CanonicalMessage => ({
  role: 'assistant',
  content: null,
  toolCalls: [{ id, name, arguments: args }],
})

t.test('white space at the ends of a text is restored', async t => {
  const memory = new TurnMemory()
  memory.remember({ content: '\n\nhello ', reasoning: 'hm', toolCalls: [] }, [user('q')])
  t.strictSame(memory.restore([user('q'), says('hello')]), {
    messages: [user('q'), says('\n\nhello ', 'hm')],
    rules: ['content_restored', 'reasoning_reattached'],
  })
})

t.test('a text that says something else is left alone', async t => {
  const memory = new TurnMemory()
  memory.remember({ content: 'hello', reasoning: 'hm', toolCalls: [] }, [user('q')])
  const edited = [user('q'), says('hello, edited')]
  t.strictSame(memory.restore(edited), { messages: edited, rules: [] })
})

t.test('an empty turn that a broken stream left behind is taken out; an empty answer is not', async t => {
  const memory = new TurnMemory()
  memory.remember({ content: 'first', reasoning: 'hm', toolCalls: [] }, [user('q')])
  const echoed = [user('q'), says(''), says(null), says('first'), user('more')]
  const kept = [user('q'), says('first', 'hm'), user('more')]
  t.strictSame(memory.restore(echoed), { messages: kept, rules: ['empty_turn_removed', 'reasoning_reattached'] })
  const off = new Set(['empty_turn_removed'])
  t.equal(memory.restore(echoed, { off }).messages.length, echoed.length)
  const last = [user('q'), says(''), user('go on')]
  t.strictSame(memory.restore(last), { messages: last, rules: [] })
  const answered = new TurnMemory()
  answered.remember({ content: null, reasoning: null, toolCalls: [] }, [user('q')])
  t.equal(answered.restore([user('q'), says(''), says('first')]).messages.length, 3)
})

t.test('reasoning that the harness changed is its own', async t => {
  const memory = new TurnMemory()
  memory.remember({ content: 'x', reasoning: 'long thought', toolCalls: [] }, [user('q')])
  t.strictSame(memory.restore([user('q'), says('x', 'summary')]).messages[1], says('x', 'summary'))
  t.strictSame(memory.restore([user('q'), says('x', ' long thought\n')]), {
    messages: [user('q'), says('x', 'long thought')],
    rules: ['reasoning_reattached'],
  })
})

t.test('ids that lost their underscores are found, and results follow the restored id', async t => {
  const memory = new TurnMemory()
  memory.remember(
    { content: null, reasoning: null, toolCalls: [{ id: 'call_a_1', name: 'run', arguments: '{"b":1, "a":2}' }] },
    [user('q')],
  )
  t.strictSame(
    memory.restore([user('q'), calls('calla1', '{"a":2,"b":1}'), { role: 'tool', toolCallId: 'calla1', content: 'r' }]),
    {
      messages: [
        user('q'),
        calls('call_a_1', '{"b":1, "a":2}'),
        { role: 'tool', toolCallId: 'call_a_1', content: 'r' },
      ],
      rules: ['arguments_restored', 'call_ids_restored'],
    },
  )
})

t.test('calls without the recorded ids are found by what they say; equal ones by their place', async t => {
  const memory = new TurnMemory()
  const turn = (reasoning: string, id: string) => ({
    content: null,
    reasoning,
    toolCalls: [{ id, name: 'ls', arguments: '{}' }],
  })
  const first = [user('q')]
  const second = [...first, calls('x', '', 'ls'), user('again')]
  memory.remember(turn('first', 'c1'), first)
  memory.remember(turn('second', 'c2'), second)
  const { messages } = memory.restore([...second, calls('y', '', 'ls')])
  t.match(messages[1], { reasoning: 'first' })
  t.match(messages[3], { reasoning: 'second' })
})

t.test('arguments that are no JSON come back as they were written', async t => {
  const memory = new TurnMemory()
  memory.remember({ content: null, reasoning: null, toolCalls: [{ id: 'c1', name: 'run', arguments: '{"a": ' }] }, [])
  const wrapped = (raw: string): string => JSON.stringify({ __unparsedToolInput: { raw, len: 6 } })
  for (const echo of ['{}', '', '{"a": ', wrapped('{"a": '), wrapped('{"a')]) {
    t.strictSame(memory.restore([calls('c1', echo)]).messages, [calls('c1', '{"a": ')])
  }
  t.strictSame(
    memory.restore([calls('c1', '{"a":1}')]).messages,
    [calls('c1', '{"a":1}')],
    'a repaired call is an edit',
  )
  const other = [calls('c1', wrapped('{"b": '))]
  t.strictSame(memory.restore(other).messages, other, 'other words in the wrapping are another call')
  t.strictSame(memory.restore([calls('c1', '{}', 'other')]).messages, [calls('c1', '{}', 'other')])
})

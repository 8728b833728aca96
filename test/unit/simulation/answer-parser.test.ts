// The parser gives the same answer however the text is cut, and splits it as vLLM's parsers do.

import fc from 'fast-check'
import t from 'tap'
import { type AnswerDelta, answerParser, parseAnswer } from '../../../src/simulation/answer-parser.js'

const options = { tools: true, raw: false }
const call = (body: string): string => `<tool_call>\n${body}\n</tool_call>`
const LS = '{"name": "bash", "arguments": {"command": "ls </tool> \\"x\\" {"}}'

interface Joined {
  readonly reasoning: string
  readonly content: string
  readonly calls: readonly { readonly name: string; readonly arguments: string }[]
}

function join(deltas: readonly AnswerDelta[]): Joined {
  const text = { reasoning: '', content: '' }
  const calls: { name: string; arguments: string }[] = []
  for (const delta of deltas) {
    if (delta.type === 'reasoning' || delta.type === 'content') text[delta.type] += delta.text
    else if (delta.type === 'call-start') calls[delta.index] = { name: delta.name, arguments: '' }
    else {
      const known = calls[delta.index]
      if (known) known.arguments += delta.text
    }
  }
  return { ...text, calls }
}

const streamed = (text: string, cuts: readonly number[], tools = true): Joined => {
  const parser = answerParser({ ...options, tools })
  const places = [0, ...cuts.map(cut => cut % (text.length + 1)).sort((a, b) => a - b), text.length]
  const pieces = places.slice(1).map((end, index) => text.slice(places[index], end))
  return join([...pieces.flatMap(piece => parser.push(piece)), ...parser.end()])
}

const ANSWERS: Readonly<Record<string, readonly [string, Joined]>> = {
  'thinking and text': ['<think>\nA.\nB.\n</think>\n\nSaid.\n', { reasoning: 'A.\nB.', content: 'Said.\n', calls: [] }],
  'thinking, text and a call': [
    `<think>\nA.\n</think>\n\nLet me.\n${call(LS)}`,
    {
      reasoning: 'A.',
      content: 'Let me.',
      calls: [{ name: 'bash', arguments: '{"command": "ls </tool> \\"x\\" {"}' }],
    },
  ],
  'no thinking, two calls': [
    `${call(LS)}\n${call('{"name":"b","arguments":[1,{"x":[]}]}')}`,
    {
      reasoning: '',
      content: '',
      calls: [
        { name: 'bash', arguments: '{"command": "ls </tool> \\"x\\" {"}' },
        { name: 'b', arguments: '[1,{"x":[]}]' },
      ],
    },
  ],
  'a call inside thinking that never ends stays thinking': [
    `<think>\nHm.\n\n${call(LS)}`,
    { reasoning: `Hm.\n\n${call(LS)}`, content: '', calls: [] },
  ],
  'empty thinking': ['<think>\n\n</think>\n\n', { reasoning: '', content: '', calls: [] }],
  'text that looks like a tag': [
    'a <tool_cal b </think> <thin',
    { reasoning: '', content: 'a <tool_cal b </think> <thin', calls: [] },
  ],
  'a head that cannot be read is lost': [`${call('{name: x}')}`, { reasoning: '', content: '', calls: [] }],
  'arguments that break off are given as far as they came': [
    call('{"name": "bash", "arguments": {"command": "ls"'),
    { reasoning: '', content: '', calls: [{ name: 'bash', arguments: '{"command": "ls"\n' }] },
  ],
  'white space alone': ['\n\n', { reasoning: '', content: '', calls: [] }],
}

for (const [name, [text, wanted]] of Object.entries(ANSWERS)) {
  t.test(`${name}, in pieces of any size`, async t => {
    t.strictSame(streamed(text, []), wanted)
    fc.assert(
      fc.property(fc.array(fc.nat()), cuts => {
        const found = streamed(text, cuts)
        return JSON.stringify(found) === JSON.stringify(wanted)
      }),
      { numRuns: 200 },
    )
    fc.assert(
      fc.property(
        fc.constant(text),
        whole =>
          JSON.stringify(
            streamed(
              whole,
              [...whole].map((_, i) => i),
            ),
          ) === JSON.stringify(wanted),
      ),
    )
  })
}

t.test('whole answers print arguments again and keep broken calls as text', async t => {
  t.strictSame(
    parseAnswer(`<think>\nA\n</think>\n\nB\n${call('{"name":"f","arguments":{"b":1.0,"a":"\\u00e9"}}')}`, options),
    {
      reasoning: 'A',
      content: 'B',
      calls: [{ name: 'f', arguments: '{"b": 1.0, "a": "é"}' }],
    },
  )
  const broken = `${call(LS)}\n${call('{"name": "g", "arguments": {"x": 1')}`
  t.strictSame(parseAnswer(broken, options), { reasoning: null, content: broken, calls: [] })
  t.strictSame(parseAnswer(call(LS), { ...options, tools: false }), { reasoning: null, content: call(LS), calls: [] })
  t.strictSame(parseAnswer(call('{"name": "f"}'), options).calls, [{ name: 'f', arguments: '{}' }])
})

t.test('raw keeps the line feeds around text, as vLLM does', async t => {
  const text = `<think>\nA\n</think>\n\nB\n${call(LS)}`
  t.match(parseAnswer(text, { tools: true, raw: true }), { reasoning: '\nA\n', content: '\n\nB\n' })
  const parser = answerParser({ tools: true, raw: true })
  t.match(join([...parser.push(text), ...parser.end()]), { reasoning: '\nA\n', content: '\n\nB\n' })
})

t.test(
  'an answer without `</think>` is all reasoning to vLLM while thinking is on, and all content while it is off',
  t => {
    const tools = true
    const raw = false
    for (const text of ['Hello', '<think>\nHello']) {
      t.strictSame(parseAnswer(text, { tools, raw, reasoning: 'always' }), {
        reasoning: 'Hello',
        content: null,
        calls: [],
      })
      t.strictSame(parseAnswer(text, { tools, raw, reasoning: 'never' }), { reasoning: null, content: text, calls: [] })
    }
    const closed = parseAnswer('Hm.\n</think>\n\nHello', { tools, raw, reasoning: 'always' })
    t.strictSame(closed, { reasoning: 'Hm.', content: 'Hello', calls: [] })
    t.end()
  },
)

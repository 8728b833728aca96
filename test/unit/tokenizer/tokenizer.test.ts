// The tokenizer and the chat template against ids and texts of the real model (case book, reconstruction 1 to 8).

import { readFileSync } from 'node:fs'
import t from 'tap'
import { loadTokenizer } from '../../../src/tokenizer/tokenizer.js'
import { projectRoot } from '../../support/paths.js'

interface Cases {
  readonly prompts: readonly {
    readonly name: string
    readonly messages: readonly Record<string, unknown>[]
    readonly tools?: readonly Record<string, unknown>[]
    readonly kwargs?: Record<string, unknown>
    readonly prompt: readonly number[]
  }[]
  readonly texts: readonly { readonly text: string; readonly ids: readonly number[] }[]
}

const cases: Cases = JSON.parse(readFileSync(`${projectRoot}/test/fixtures/tokenizer/qwen3-cases.json`, 'utf8'))
const qwen3 = loadTokenizer('qwen3')

for (const { name, messages, tools, kwargs, prompt } of cases.prompts) {
  t.test(`renders and encodes as the real model does: ${name}`, async t => {
    const input = { messages, addGenerationPrompt: true, ...(tools && { tools }), ...(kwargs && { kwargs }) }
    t.strictSame([...qwen3.encode(qwen3.renderChat(input))], prompt)
  })
}

t.test('texts have the ids of the real vocabulary', async t => {
  for (const { text, ids } of cases.texts) t.strictSame([...qwen3.encode(text)], ids, JSON.stringify(text))
})

t.test('ids decode to the text they came from', async t => {
  const texts = [
    '',
    'plain',
    'Grüße, 世界 👩‍👩‍👧 \u0000 tabs\tand\r\nlines',
    '<think>\nx\n</think>\n\n<tool_call>',
    '\ufeffbom',
    'a'.repeat(300),
  ]
  for (const text of texts) t.equal(qwen3.decode(qwen3.encode(text)), text)
})

t.test('pieces of a stream never hold half a character', async t => {
  const text = 'naïve 👩‍🚀 日本語 𝔘𝔫𝔦 done'
  const decoder = qwen3.decoder()
  let joined = ''
  for (const id of qwen3.encode(text)) {
    const piece = decoder.push(id)
    t.notMatch(piece, /\ufffd/)
    joined += piece
  }
  t.equal(joined + decoder.end(), text)
  const cut = qwen3.decoder()
  const rocket = qwen3.encode('🛰')
  t.ok(rocket.length > 1, 'the character is spread over several ids')
  t.equal(cut.push(rocket[0] ?? -1), '')
  t.equal(cut.end(), '\ufffd')
})

t.test('special tokens are left out on request only, think and tool tags never', async t => {
  const ids = qwen3.encode('<think>a</think><tool_call>b</tool_call><|im_end|>')
  t.equal(qwen3.decode(ids, { skipSpecial: true }), '<think>a</think><tool_call>b</tool_call>')
  t.match(qwen3.decode(ids), /<\|im_end\|>$/)
  t.equal(qwen3.endTokenId, 151645)
})

t.test('a long prompt encodes the same from the cache', async t => {
  const text = `<|im_start|>system\n${'You are careful. '.repeat(500)}<|im_end|>\n<|im_start|>user\nhello<|im_end|>`
  const first = qwen3.encode(text)
  const second = qwen3.encode(text)
  t.strictSame(first, second)
  second.fill(0)
  t.strictSame(qwen3.encode(text), first, 'the caller owns what it got')
})

t.test('arguments are printed as Python prints them', async t => {
  const call = (args: string) =>
    qwen3.renderChat({
      messages: [
        { role: 'user', content: 'x' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ type: 'function', function: { name: 'f', arguments: args } }],
        },
      ],
      addGenerationPrompt: false,
    })
  const printed: readonly (readonly [string, string])[] = [
    [
      '{"a":1.0,"b":1e5,"c":-0.5,"d":1E-7,"e":12345678901234567890}',
      '{"a": 1.0, "b": 100000.0, "c": -0.5, "d": 1e-07, "e": 12345678901234567890}',
    ],
    ['{"z":1,"10":2,"9":[true,null,{}]}', '{"z": 1, "10": 2, "9": [true, null, {}]}'],
    ['{"text":"é \\u00e9 \\/ \\t \\u001F \\" 1.0"}', '{"text": "é é / \\t \\u001f \\" 1.0"}'],
    ['', '{}'],
  ]
  for (const [given, wanted] of printed) t.match(call(given), `"arguments": ${wanted}}\n</tool_call>`)
})

t.test('what the template cannot take is refused by name', async t => {
  const render = (messages: readonly Record<string, unknown>[]) => () =>
    qwen3.renderChat({ messages, addGenerationPrompt: true })
  const code = 'DIALECT_INVALID_REQUEST'
  t.throws(render([{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:' } }] }]), {
    code,
    message: /messages\[0\]\.content\[0\]/,
  })
  t.throws(render([{ role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: '{' } }] }]), {
    code,
    message: /messages\[0\]\.tool_calls\[0\]\.function\.arguments: wanted JSON/,
  })
  t.throws(render([{ content: 'x' }]), { code, message: /messages\[0\]\.role/ })
})

t.test('a folder without a tokenizer is a config error', async t => {
  t.throws(() => loadTokenizer('/nonexistent'), { code: 'CONFIG_INVALID', message: /nonexistent\/tokenizer\.json/ })
  t.throws(() => qwen3.bytesOf(10_000_000), /not in the vocabulary/)
})

// An engine's answer read from its bytes means what JSON.parse says it means, whatever the server wrote and wherever it is broken.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { LogprobList, parseAnswerBytes } from '../../src/http/answer-bytes.js'
import { lastFloat, readFloat, readIds, skipValue } from '../../src/http/json-bytes.js'

const bytesOf = (text: string) => new TextEncoder().encode(text)

/** What was lifted, as plain JSON again; logprobs compared apart, since they are float32. */
function plain(value: unknown, floats: number[][]): unknown {
  if (value instanceof Int32Array) return [...value]
  if (value instanceof LogprobList) {
    floats.push([...value.values])
    return value.entries()
  }
  if (Array.isArray(value)) return value.map(part => plain(part, floats))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, plain(part, floats)]))
}

/** Compares with JSON.parse; gives what was lifted. */
function check(text: string): number[][] | null {
  let wanted: unknown
  try {
    wanted = JSON.parse(text)
  } catch {
    assert.throws(() => parseAnswerBytes(bytesOf(text)), SyntaxError, text)
    return null
  }
  const floats: number[][] = []
  const got = plain(parseAnswerBytes(bytesOf(text)), floats)
  // Signs of zero and order of keys count too.
  assert.equal(JSON.stringify(got), JSON.stringify(wanted), text)
  return floats
}

/** Numbers in all the ways that a server may write them. */
const number = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(value => JSON.stringify(value)),
  fc.float({ noNaN: true, noDefaultInfinity: true, max: 0 }).map(value => JSON.stringify(value)),
  fc.integer({ min: -(2 ** 33), max: 2 ** 33 }).map(String),
  fc.stringMatching(/^-?(0|[1-9]\d{0,24})(\.\d{1,30})?([eE][+-]?\d{1,3})?$/),
)
const space = fc.constantFrom('', '', '', ' ', '\n', '\t', ' \r\n ')
const idText = fc.oneof(
  { weight: 20, arbitrary: fc.nat({ max: 2 ** 31 - 1 }).map(String) },
  { weight: 1, arbitrary: number },
)
const listText = (item: fc.Arbitrary<string>) =>
  fc
    .tuple(fc.array(fc.tuple(space, item, space), { maxLength: 12 }), space)
    .map(([items, gap]) => `[${items.length === 0 ? gap : items.map(parts => parts.join('')).join(',')}]`)
const string = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 8 }).map(text => JSON.stringify(text)),
  fc.constantFrom('"\\u0041\\n\\/"', '"\\ud83d"', '"\\u00zz"', '"\\x"', '"a\nb"', '"token_ids\\":[1,2],\\""'),
)
const valid = fc.oneof(fc.json({ maxDepth: 3 }), number, fc.constantFrom('null', 'true', '[]', '{}', '"a\\n\\u00e4"'))
const anyValue = fc.oneof(
  { weight: 30, arbitrary: valid },
  { weight: 1, arbitrary: string },
  fc.constantFrom('nul', '[1,]', '{"a":1,}', '01', '1.', '.5', '-', '+1'),
)
const objectOf = (field: fc.Arbitrary<string>, maxLength: number) =>
  fc
    .array(fc.tuple(space, field, space), { maxLength })
    .map(fields => `{${fields.map(parts => parts.join('')).join(',')}}`)
const field = (name: string, value: fc.Arbitrary<string>) =>
  fc.tuple(space, space, value).map(([a, b, text]) => `"${name}"${a}:${b}${text}`)

const usualEntry = fc
  .tuple(number, fc.string({ unit: 'binary', maxLength: 4 }), listText(fc.nat({ max: 255 }).map(String)))
  .map(([value, token, bytes]) => `{"token":${JSON.stringify(token)},"logprob":${value},"bytes":${bytes}}`)
const oddEntry = objectOf(
  fc.oneof(
    { weight: 6, arbitrary: field('logprob', number) },
    { weight: 2, arbitrary: field('token', string) },
    { weight: 1, arbitrary: field('logpro\\u0062', number) },
    { weight: 1, arbitrary: field('top_logprobs', anyValue) },
  ),
  2,
)
const entry = fc.oneof({ weight: 12, arbitrary: usualEntry }, { weight: 1, arbitrary: oddEntry })
const logprobs = fc.oneof(
  { weight: 5, arbitrary: objectOf(field('content', listText(entry)), 1) },
  { weight: 1, arbitrary: objectOf(fc.oneof(field('content', anyValue), field('content', listText(entry))), 2) },
  { weight: 1, arbitrary: anyValue },
)
const ids = fc.oneof({ weight: 6, arbitrary: listText(idText) }, { weight: 1, arbitrary: anyValue })
const choice = objectOf(
  fc.oneof(
    field('token_ids', ids),
    field('prompt_token_ids', ids),
    field('logprobs', logprobs),
    field('message', anyValue),
    field('token\\u005fids', ids),
  ),
  4,
)
const body = objectOf(
  fc.oneof(
    { weight: 4, arbitrary: field('prompt_token_ids', ids) },
    { weight: 4, arbitrary: field('choices', listText(choice)) },
    { weight: 1, arbitrary: field('choices', anyValue) },
    { weight: 1, arbitrary: field('usage', anyValue) },
    { weight: 1, arbitrary: field('x', choice) },
  ),
  4,
)

const usualBody = fc
  .tuple(ids, ids, listText(entry), valid, space)
  .map(
    ([prompt, sampled, entries, other, gap]) =>
      `{"x":${other},"choices":${gap}[{"logprobs":{"content":${entries}},${gap}"token_ids":${sampled}}],"prompt_token_ids":${prompt}}`,
  )

t.test('that any body means the same as by JSON.parse, and what JSON.parse refuses is refused', async t => {
  let lifted = 0
  fc.assert(
    fc.property(fc.oneof(usualBody, body, anyValue), space, (text, gap) => {
      lifted += check(gap + text + gap)?.flat().length ?? 0
    }),
    { numRuns: 4_000 },
  )
  t.ok(lifted > 500, `the bodies have lists to read: ${lifted} logprobs`)
})

t.test('that a body cut short or with a byte changed is refused where JSON.parse refuses it', async t => {
  const text =
    '{"id":"a","prompt_token_ids":[1,22,333],"choices":[{"index":0,"message":{"content":"hé \\"token_ids\\":[1]"},' +
    '"logprobs":{"content":[{"token":" a","logprob":-0.5,"bytes":[32,97],"top_logprobs":[]},{"logprob":-1.25e-7}]},' +
    '"token_ids":[7,8]}],"usage":{"prompt_tokens":3}}'
  t.strictSame(check(text), [[-0.5, Math.fround(-1.25e-7)]])
  for (let at = 0; at < text.length; at += 1) {
    check(text.slice(0, at))
    for (const other of ['"', '\\', ',', ':', ']', '}', '[', '{', '0', '-', 'e', ' ', '\n', '']) {
      check(text.slice(0, at) + other + text.slice(at + 1))
    }
  }
})

t.test('that logprobs are the float32 of what JSON.parse reads, to the last bit', async t => {
  fc.assert(
    fc.property(number, text => {
      const value: unknown = JSON.parse(text)
      const end = readFloat(bytesOf(`${text},`), 0)
      if (end !== text.length) throw new Error(`${text}: ended at ${end}`)
      if (!Object.is(Math.fround(lastFloat[0] ?? 0), Math.fround(value as number))) throw new Error(text)
    }),
    { numRuns: 20_000 },
  )
  // Between two float32, and a hair to each side: where a wrong last bit would show.
  for (const text of [
    '-1.000000059604644775390625',
    '-1.00000005960464477539062',
    '-1.0000000596046448',
    '0e-50',
    '-0.0',
  ]) {
    readFloat(bytesOf(text), 0)
    t.ok(Object.is(Math.fround(lastFloat[0] ?? 0), Math.fround(JSON.parse(text))), text)
  }
})

t.test('that ids are read or refused, never changed', async t => {
  const read = (text: string) => readIds(bytesOf(text), 0)
  t.strictSame(read('[0,2147483639, 10 ]')?.ids, Int32Array.of(0, 2_147_483_639, 10))
  t.strictSame(read('[]')?.ids, new Int32Array(0))
  for (const text of [
    '[2147483648]',
    '[-1]',
    '[1.0]',
    '[1e3]',
    '[01]',
    '[1',
    '[1,',
    '[1,]',
    '[,1]',
    '[1 2]',
    '{}',
    '[null]',
  ]) {
    t.equal(read(text), null, text)
  }
  const many = Array.from({ length: 10_000 }, (_, index) => index * 200_003)
  t.strictSame([...(read(JSON.stringify(many))?.ids ?? [])], many, 'more than the first scratch holds')
})

t.test('that a value too deep is left to JSON.parse', async t => {
  const deep = `${'['.repeat(100)}1${']'.repeat(100)}`
  t.equal(skipValue(bytesOf(deep), 0), -1)
  t.strictSame(check(`{"prompt_token_ids":[1],"x":${deep}}`), [])
})

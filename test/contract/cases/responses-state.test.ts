// Case book, responses-request-11 and -13: requests that go on from an answer, and compressed bodies, over real HTTP.

import { gzipSync } from 'node:zlib'
import t from 'tap'
import { StoredAnswers } from '../../../actors/proxy/stored-answers.js'
import { caseWorld, type Loose, lengthOf } from '../../support/cases.js'
import { BOMB, COMPRESSED } from '../../support/zstd.js'

const dialect = 'openai_responses'
const user = (content: string) => ({ role: 'user', content })
const ls = { type: 'function', name: 'ls', parameters: { type: 'object', properties: {} } }

t.test('responses-request-11: a request goes on from a stored answer, with its whole history', async t => {
  for (const stream of [false, true]) {
    const world = await caseWorld(t)
    const session = await world.pair.session(`s-${stream}`)
    const call = (body: object, engine?: object) =>
      world.call(session, { dialect, body, ...(engine && { engine }) }, stream)
    const first = await call(
      { instructions: 'S1', tools: [ls], input: 'go' },
      { reasoning: 'plan', toolCalls: [{ name: 'ls', arguments: '{ }' }] },
    )
    t.match(first.answer, { store: true, previous_response_id: null })
    const [, item] = first.answer['output'] as unknown as readonly Loose[]
    const second = await call({
      previous_response_id: first.answer['id'],
      instructions: 'S2',
      tools: [ls],
      input: [{ type: 'function_call_output', call_id: item?.['call_id'], output: 'a.py' }],
    })
    t.equal(second.status, 200)
    t.equal(second.answer['previous_response_id'], first.answer['id'])
    t.match(second.engine['messages'], [
      { role: 'system', content: 'S2' },
      user('go'),
      { role: 'assistant', reasoning_content: 'plan', tool_calls: [{ function: { name: 'ls', arguments: '{ }' } }] },
      { role: 'tool', content: 'a.py' },
    ])
    const third = await call({ previous_response_id: second.answer['id'], input: 'and now?' })
    t.match(third.engine['messages'], [user('go'), {}, { role: 'tool' }, { role: 'assistant', content: 'ok' }, {}])
    t.strictSame(third.engine['messages']?.[4], user('and now?'))
    const branch = await call({ previous_response_id: first.answer['id'], input: 'or else?' })
    t.equal(lengthOf(branch.engine['messages']), 3, 'an answer may be gone on from more than once')
    const counted = await world.pair.post(
      '/v1/responses/input_tokens',
      { model: 'm', previous_response_id: second.answer['id'], input: 'and now?' },
      { key: session.key },
    )
    t.match(await counted.json(), { input_tokens: 22 }, 'five messages of the scripted template')
    const { calls } = await world.pair.ledger(session)
    t.strictSame(
      calls.map(({ record }) => record.losses),
      [[], [], [], []],
    )
  }
})

t.test('responses-request-11: an answer that is unknown, not to be stored, or another session’s is a 400', async t => {
  const world = await caseWorld(t)
  const session = await world.pair.session('s-a')
  const other = await world.pair.session('s-b')
  const stored = await world.call(session, { dialect, body: { input: 'go' } }, false)
  const unstored = await world.call(session, { dialect, body: { store: false, input: 'go' } }, false)
  t.match(unstored.answer, { store: false })
  const asked = world.engine.generations.length
  for (const [who, id] of [
    [session, 'resp_1'],
    [session, unstored.answer['id']],
    [other, stored.answer['id']],
  ] as const) {
    for (const stream of [false, true]) {
      const refused = await world.call(who, { dialect, body: { previous_response_id: id, input: 'x' } }, stream)
      t.equal(refused.status, 400)
      t.match(refused.headers.get('content-type'), /^application\/json/)
      t.match(refused.answer, { error: { type: 'invalid_request_error', message: /^previous_response_id: / } })
    }
  }
  t.equal(world.engine.generations.length, asked, 'nothing is sampled')
})

t.test('what is stored is bounded, and what is gone is unknown', async t => {
  const stored = new StoredAnswers(10)
  const answer = (previousId: string | null, name: string) => ({ previousId, items: [{ name }], size: 4 })
  stored.keep('a', answer(null, 'a'))
  stored.keep('b', answer('a', 'b'))
  t.strictSame(stored.conversation('b'), [{ name: 'a' }, { name: 'b' }])
  stored.keep('b', answer('a', 'b'))
  t.ok(stored.conversation('a'), 'kept twice counts once')
  stored.keep('c', answer(null, 'c'))
  t.strictSame([stored.conversation('a'), stored.conversation('b')], [null, null], 'b had its beginning in a')
  t.strictSame(stored.conversation('c'), [{ name: 'c' }])
})

t.test('responses-request-13: compressed bodies are served, and what expands over the limit is a 413', async t => {
  const world = await caseWorld(t, { bodyBytes: 100_000 })
  const session = await world.pair.session('s-a')
  const post = (encoding: string, body: Uint8Array) =>
    fetch(`${world.pair.url}/v1/responses`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${session.key}`,
        'content-type': 'application/json',
        'content-encoding': encoding,
      },
      body: Uint8Array.from(body),
    })
  world.script({ pieces: ['ok'] })
  t.equal((await post('zstd', COMPRESSED)).status, 200)
  t.match(world.engine.generations[0]?.body, { messages: [{ role: 'user', content: /^zstd body, naïve 🙂/ }] })
  for (const [encoding, body] of [
    ['zstd', BOMB],
    ['gzip', gzipSync(Buffer.alloc(1_000_000, ' '))],
  ] as const) {
    const large = await post(encoding, body)
    t.equal(large.status, 413)
    t.match(await large.json(), { error: { code: 'request_too_large', message: /100000/ } })
  }
  const unknown = await post('compress', COMPRESSED)
  t.equal(unknown.status, 415)
  t.match(await unknown.json(), { error: { code: /^unsupported_encoding$/, message: /zstd/ } })
  const broken = await post('zstd', Buffer.from('{"input":"hi"}'))
  t.equal(broken.status, 400)
  t.match(await broken.json(), { error: { type: 'invalid_request_error' } })
  t.equal(world.engine.generations.length, 1)
})

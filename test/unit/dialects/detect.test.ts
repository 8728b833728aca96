// Paths as the harnesses send them: with prefixes, without /v1, with it twice; and what is no route of ours.

import t from 'tap'
import { detect, nearestDialect } from '../../../src/dialects/detect.js'
import { framing } from '../../../src/dialects/framing.js'
import { dialects } from '../../../src/dialects/registry.js'
import { head } from '../../support/dialects.js'

const ROUTES: readonly [method: string, url: string, headers: Record<string, string>, wanted: string][] = [
  ['POST', '/v1/messages?beta=true', {}, 'anthropic_messages generate'],
  ['POST', '/some/prefix/v1/messages', {}, 'anthropic_messages generate'],
  ['POST', '/v1/v1/messages', {}, 'anthropic_messages generate'],
  ['POST', '/messages', {}, 'anthropic_messages generate'],
  ['POST', '/v1/messages/count_tokens?beta=true', {}, 'anthropic_messages count'],
  ['HEAD', '/', {}, 'anthropic_messages hello'],
  ['HEAD', '/api/hello', {}, 'anthropic_messages hello'],
  ['POST', '/v1/chat/completions', {}, 'openai_chat generate'],
  ['POST', '/chat/completions/', {}, 'openai_chat generate'],
  ['POST', '/v1beta/openai/chat/completions', {}, 'openai_chat generate'],
  ['POST', '/v1/tokenize', {}, 'openai_chat count'],
  ['POST', '/v1/responses', {}, 'openai_responses generate'],
  ['POST', '/v1/responses/input_tokens', {}, 'openai_responses count'],
  ['POST', '/v1beta/models/gemini-2.5-pro:generateContent', {}, 'google_generate generate gemini-2.5-pro false'],
  [
    'POST',
    '/v1beta/models/m:streamGenerateContent?alt=sse',
    { 'anthropic-version': 'x' },
    'google_generate generate m true',
  ],
  ['POST', '/v1/models/m:streamGenerateContent', {}, 'google_generate generate m true array'],
  [
    'POST',
    '/v1beta1/publishers/google/models/qwen3%3A8b:generateContent',
    {},
    'google_generate generate qwen3:8b false',
  ],
  ['POST', '/v1/models/qwen3:8b:countTokens', {}, 'google_generate count qwen3:8b false'],
  ['GET', '/v1/models', {}, 'openai_chat models'],
  ['GET', '/v1/models?limit=1000', { 'anthropic-version': '2023-06-01' }, 'anthropic_messages models'],
  ['GET', '/v1/models', { 'x-goog-api-key': 'k' }, 'google_generate models false'],
  ['GET', '/v1beta/models', {}, 'google_generate models false'],
  ['GET', '/v1beta/models/m', {}, 'google_generate model m false'],
  ['GET', '/v1/models/m', {}, 'openai_chat model m'],
  ['POST', '/v1/embeddings', {}, 'none, openai_chat'],
  ['POST', '/anything', {}, 'none, openai_chat'],
  ['POST', '/v1/responses/compact', {}, 'none, openai_responses'],
  ['GET', '/v1/responses', {}, 'none, openai_responses'],
  ['POST', '/v1/threads/t/messages', {}, 'none, anthropic_messages'],
  ['POST', '/v1/messages/batches', {}, 'none, anthropic_messages'],
  ['GET', '/v1/messages', {}, 'none, anthropic_messages'],
  ['POST', '/v1beta/models/m:embedContent', {}, 'none, google_generate'],
  ['DELETE', '/v1/models/m', {}, 'none, openai_chat'],
]

t.test('a path means one operation of one dialect, or none (A-60, A-62, A-64, life-cycle-11)', async t => {
  for (const [method, url, headers, wanted] of ROUTES) {
    const request = head(method, url, headers)
    const found = detect(request)
    const got = found
      ? [found.dialect.id, found.route.operation, found.route.model, found.route.stream]
          .filter(part => part !== null)
          .concat(found.route.stream && !found.route.sse ? ['array'] : [])
          .join(' ')
      : `none, ${nearestDialect(request).id}`
    t.equal(got, wanted, `${method} ${url}`)
  }
})

t.test('the session key is found in every carrier, and in none', async t => {
  const key = (headers: Record<string, string>, url = '/v1/messages') =>
    dialects.openai_chat.sessionKey(head('POST', url, headers))
  t.equal(key({ authorization: 'Bearer sk-a' }), 'sk-a')
  t.equal(key({ authorization: 'bearer  sk-a' }), 'sk-a')
  t.equal(key({ 'x-api-key': 'sk-b' }), 'sk-b')
  t.equal(key({ x_api_key: 'sk-b' }), 'sk-b')
  t.equal(key({ 'x-goog-api-key': 'sk-c' }), 'sk-c')
  t.equal(key({}, '/v1beta/models/m:generateContent?key=sk-d'), 'sk-d')
  t.equal(key({ authorization: 'Basic abc' }), null)
  t.equal(key({ 'x-api-key': ' ', 'x-session-id': 's-1' }), null, 'a session header never stands in for the key')
})

t.test('a Google stream without alt=sse is one JSON array', async t => {
  const array = framing({ sse: false })
  t.equal(array.contentType, 'application/json; charset=utf-8')
  t.equal(array.takesKeepAlive, false)
  const text = ['{"a":1}', '{"b":2}'].map(data => array.write({ event: null, data })).join('') + array.end()
  t.strictSame(JSON.parse(text), [{ a: 1 }, { b: 2 }])
  t.equal(framing({ sse: false }).end(), '[]')
  const events = framing({ sse: true })
  t.equal(
    events.write({ event: 'ping', data: '{}' }) + events.write({ event: null, data: '1' }) + events.end(),
    'event: ping\ndata: {}\n\ndata: 1\n\n',
  )
})

// The obligations on what goes wrong between harness and engine, in each dialect, streaming and not. (A-86, another replica,
// stands in upstream-errors.test.ts; A-91, keep-alives and budgets in a pause, in pause.test.ts and the session's phases.test.ts.)

import t from 'tap'
import type { DialectId } from '../../../../src/domain/conversation.js'
import { dialectCalls, gatewayPlan, startPair } from '../../../support/pair.js'
import { type Script, scriptedEngine } from '../../../support/scripted-engine.js'

async function world(t: Parameters<typeof startPair>[0], script: Script, profile = 'vllm') {
  const engine = await scriptedEngine(t, script)
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url], profile }]))
  return { engine, pair, session: await pair.session('s-a') }
}

/** Both forms of each dialect's smallest call. */
const FORMS = Object.entries(dialectCalls).flatMap(([dialect, call]) => [
  { dialect: dialect as DialectId, name: `${dialect}, whole`, path: call.path, body: call.body },
  {
    dialect: dialect as DialectId,
    name: `${dialect}, streamed`,
    path: call.streamPath,
    body: { ...call.body, ...call.streamBody },
  },
])

/** What each dialect calls a status. */
const WORDS: Readonly<Record<DialectId, (status: number) => object>> = {
  anthropic_messages: status => ({
    type: 'error',
    error: {
      type: {
        400: 'invalid_request_error',
        404: 'not_found_error',
        429: 'rate_limit_error',
        500: 'api_error',
        503: 'overloaded_error',
        529: 'overloaded_error',
      }[status],
    },
  }),
  openai_chat: status => openai(status),
  openai_responses: status => openai(status),
  google_generate: status => ({
    error: {
      code: status,
      status: {
        400: 'INVALID_ARGUMENT',
        404: 'NOT_FOUND',
        429: 'RESOURCE_EXHAUSTED',
        500: 'INTERNAL',
        503: 'UNAVAILABLE',
        529: 'UNAVAILABLE',
      }[status],
    },
  }),
}
const openai = (status: number) =>
  status === 429
    ? { error: { code: 'rate_limit_exceeded' } }
    : { error: { type: status < 500 ? 'invalid_request_error' : 'server_error', message: 'engine says no' } }

t.test('A-85: an engine’s status and Retry-After are kept, its words told in the dialect’s own vocabulary', async t => {
  const shapes = [
    { error: { message: 'engine says no', type: 'BadRequestError', param: null, code: 400 } },
    { object: 'error', message: 'engine says no', type: 'BadRequestError', param: null, code: 400 },
    { error: 'engine says no', error_type: 'validation' },
    { detail: 'engine says no' },
    'engine says no',
  ]
  for (const status of [400, 404, 429, 500, 503, 529]) {
    const { pair, session } = await world(t, (_, index) => ({
      status,
      error: shapes[index % shapes.length],
      headers: { 'retry-after': '7' },
    }))
    for (const { dialect, name, path, body } of FORMS) {
      const response = await pair.post(path, body, { key: session.key })
      t.equal(response.status, status, name)
      t.equal(response.headers.get('retry-after'), '7')
      const told = (await response.json()) as { error: { message: string } }
      t.match(told, WORDS[dialect](status), `${name} ${status}`)
      t.equal(told.error.message, 'engine says no')
    }
    const { calls, failed } = await pair.ledger(session)
    t.equal(calls.length, 0)
    t.strictSame(
      failed.map(call => [call.status, call.error]),
      FORMS.map(() => [status, 'engine says no']),
      'each is recorded as a failed call',
    )
  }
})

t.test('A-87, A-88: an answer that is no JSON, or has no choices, is a 502 and a failed call', async t => {
  for (const error of ['<html>', '[]', { object: 'chat.completion' }, { choices: [] }, { choices: [{}] }]) {
    const { pair, session } = await world(t, [{ status: 201, error }])
    for (const { dialect, name, path, body } of FORMS) {
      const response = await pair.post(path, body, { key: session.key })
      t.equal(response.status, 502, name)
      t.match(await response.json(), dialect === 'anthropic_messages' ? { type: 'error' } : { error: {} }, name)
    }
    const { calls, failed } = await pair.ledger(session)
    t.equal(calls.length, 0)
    t.equal(failed.length, FORMS.length)
  }
})

/** Section 7 of the book of inference servers: the same fact in the words of each server. */
const TOO_LONG: readonly {
  readonly engine: string
  readonly status: number
  readonly error: object
  readonly prompt?: number
  readonly window?: number
}[] = [
  {
    engine: 'vLLM, nested',
    status: 400,
    error: {
      error: {
        message:
          "This model's maximum context length is 4096 tokens. However, you passed 5000 input tokens and requested 64 output tokens.",
        type: 'BadRequestError',
        param: 'input_tokens',
        code: 400,
      },
    },
    prompt: 5000,
    window: 4096,
  },
  {
    engine: 'vLLM, flat',
    status: 400,
    error: {
      object: 'error',
      message: "The prompt (length 5000) is longer than the model's context length of 4096.",
      type: 'BadRequestError',
      param: null,
      code: 400,
    },
    prompt: 5000,
  },
  {
    engine: 'vLLM, by characters',
    status: 400,
    error: { error: { message: 'Text too long.', type: 'BadRequestError', param: 'input_text', code: 400 } },
  },
  {
    engine: 'SGLang chat',
    status: 400,
    error: {
      object: 'error',
      message: "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
      type: 'BadRequestError',
      param: null,
      code: 400,
    },
    prompt: 5000,
    window: 4096,
  },
  {
    engine: 'SGLang, total',
    status: 400,
    error: {
      error: { message: "Requested token count exceeds the model's maximum context length of 4096 tokens." },
    },
    window: 4096,
  },
  {
    engine: 'TensorRT-LLM',
    status: 400,
    error: {
      object: 'error',
      message: 'The sum of prompt length (5000.0) and query length exceeded model limits.',
      type: 'BadRequestError',
      param: null,
      code: 400,
    },
  },
  {
    engine: 'llama.cpp',
    status: 400,
    error: {
      error: {
        code: 400,
        type: 'exceed_context_size_error',
        message: 'request (5000 tokens) exceeds the available context size (4096 tokens)',
        n_prompt_tokens: 5000,
        n_ctx: 4096,
      },
    },
    prompt: 5000,
    window: 4096,
  },
  {
    engine: 'TGI',
    status: 422,
    error: {
      error:
        'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 64 `max_new_tokens`',
      error_type: 'validation',
    },
    prompt: 5000,
    window: 4096,
  },
]

for (const { engine, status, error, prompt, window } of TOO_LONG) {
  t.test(`A-89: a prompt that is too long, as ${engine} says it, starts compaction in each dialect`, async t => {
    const { pair, session } = await world(t, [{ status, error }])
    for (const { dialect, name, path, body } of FORMS) {
      const response = await pair.post(path, body, { key: session.key })
      t.equal(response.status, 400, name)
      const { error: told } = (await response.json()) as { error: Record<string, unknown> }
      const message = String(told['message'])
      if (dialect === 'anthropic_messages') {
        t.equal(told['type'], 'invalid_request_error')
        t.match(message, /^prompt is too long/)
      } else if (dialect === 'google_generate') t.match(told, { code: 400, status: 'INVALID_ARGUMENT' })
      else t.match(told, { type: 'invalid_request_error', code: 'context_length_exceeded', param: 'messages' })
      if (prompt !== undefined && window !== undefined) t.match(message, new RegExp(`${prompt}|${window}`))
    }
    t.match((await pair.ledger(session)).failed, { length: FORMS.length })
  })
}

t.test('A-90: a call that runs when its session ends is cancelled at the engine, and recorded as aborted', async t => {
  const never = new Promise<void>(() => {})
  for (const stream of [false, true]) {
    const pieces = ['one', ...Array<string>(500).fill('more')]
    const { engine, pair, session } = await world(t, [
      { pieces, pause: { atChunk: 1, until: never }, ...(!stream && { before: never }) },
    ])
    const { path, body } = dialectCalls.openai_chat
    const answer = pair.post(path, { ...body, stream }, { key: session.key })
    const { closedEarly } = await engine.generation(0)
    if (stream) await answer
    await pair.closeSession(session)
    t.equal(await closedEarly, true)
    if (!stream) t.equal((await answer).status, 403)
    t.match(await pair.ledger(session), { calls: [], failed: [{ status: 499, error: /session ended/ }] })
  }
})

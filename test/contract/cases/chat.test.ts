// Case book, groups chat-wire and history, over real HTTP. chat-wire-7 stands with the proxy's other cancels.

import t from 'tap'
import type { DialectId } from '../../../src/domain/conversation.js'
import { bytes, type Case, caseWorld, lengthOf, runCases } from '../../support/cases.js'
import { dialectCalls } from '../../support/pair.js'
import type { ScriptedAnswer } from '../../support/scripted-engine.js'

const dialect = 'openai_chat'
const hi = { messages: [{ role: 'user', content: 'hi' }] }
const toolCall = (text: string) => ({ id: 'c1', type: 'function', function: { name: 'f', arguments: text } })
const counted: ScriptedAnswer = { pieces: ['ok'], ids: [10, 99] }
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }

/** Events of a chat stream in the engine's form, ids in the chunks that bring them. */
const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`
const chunk = (delta: object, ids: readonly number[], finish: string | null = null) =>
  event({
    choices: [
      {
        index: 0,
        delta,
        finish_reason: finish,
        token_ids: ids,
        logprobs: { content: ids.map(() => ({ token: 't', logprob: -0.5, top_logprobs: [] })) },
      },
    ],
    prompt_token_ids: [1, 2, 3],
  })

const wire: Case[] = [
  {
    name: 'chat-wire-1: the usage chunk comes last and alone',
    dialect,
    body: { ...hi, stream_options: { include_usage: true } },
    modes: [true],
    engine: counted,
    check(t, { events, frames, record }) {
      const last = events.at(-1)
      t.match(last, { object: 'chat.completion.chunk', model: 'm', choices: [], usage })
      t.ok(events.slice(0, -1).every(({ usage }) => usage === undefined))
      t.equal(frames.at(-1)?.data, '[DONE]')
      t.match(record, { promptTokens: 3, completionTokens: 2 })
    },
  },
  {
    name: 'chat-wire-1: no chunk has usage that was not asked for, and the record has it',
    dialect,
    body: hi,
    modes: [true],
    engine: counted,
    check(t, { text, record }) {
      t.notMatch(text, /usage/)
      t.match(record, { promptTokens: 3, completionTokens: 2 })
    },
  },
  {
    name: 'chat-wire-5: null booleans are false, and capture is none of their business',
    dialect,
    body: { ...hi, stream: null, logprobs: null },
    modes: [false],
    check(t, { engine, answer, record }) {
      t.match(engine, { logprobs: true, return_token_ids: true })
      t.notMatch(bytes(answer), /logprobs/)
      t.equal(record.notTrainable, null)
    },
  },
  {
    name: 'chat-wire-8: n above 1 is refused by name',
    dialect,
    body: { ...hi, n: 2 },
    status: 400,
    check(t, { answer, asked }) {
      t.match(answer, { error: { type: 'invalid_request_error', message: /^n: / } })
      t.notOk(asked)
    },
  },
  {
    name: 'chat-wire-8: the fields by which the gateway captures are its own',
    dialect,
    body: { ...hi, logprobs: false, top_logprobs: null, return_token_ids: false, input_ids: [1, 2, 3] },
    check(t, { engine, text, record }) {
      t.match(engine, { logprobs: true, top_logprobs: 0, return_token_ids: true })
      t.equal(engine['input_ids'], undefined)
      t.notMatch(text, /token_ids|meta_info|logprobs/)
      t.match(record.losses, [{ path: 'input_ids' }])
      t.strictSame([...(record.sampledIds ?? [])], [10, 99])
    },
  },
  {
    name: 'chat-wire-8: a harness that asks for logprobs gets the standard object and nothing else',
    dialect,
    body: { ...hi, logprobs: true },
    check(t, { text }) {
      t.match(text, /"logprobs":\{"content":\[\{"token":"t","logprob":-0\.5/)
      t.notMatch(text, /token_ids|meta_info/)
    },
  },
]

const history: Case[] = [
  {
    name: 'history-1: broken arguments in history do not end the session, and the record warns once',
    dialect,
    body: {
      messages: [
        { role: 'user', content: 'go' },
        { role: 'assistant', content: null, tool_calls: [toolCall('{"value": ')] },
        { role: 'tool', tool_call_id: 'c1', content: 'error: bad arguments' },
        { role: 'user', content: 'again' },
      ],
    },
    check(t, { engine, record }) {
      // vLLM parses the arguments of the history and refuses what is no JSON.
      t.equal(engine['messages']?.[1]?.['tool_calls']?.[0]?.['function']?.['arguments'], '{}')
      t.equal(record.losses?.length, 1)
      t.match(record.losses, [{ path: 'messages[1].tool_calls[0].function.arguments', reason: /malformed/ }])
    },
  },
  {
    name: 'history-3: leading system messages are one',
    dialect,
    body: { messages: [{ role: 'system', content: 'A' }, { role: 'system', content: 'B' }, ...hi.messages] },
    check(t, { engine }) {
      t.strictSame(engine['messages'], [
        { role: 'system', content: 'A\n\nB' },
        { role: 'user', content: 'hi' },
      ])
    },
  },
]

t.test('one request each', t => runCases(t, wire))
t.test('histories', t => runCases(t, history))

t.test('history-2: an argument text is never quoted once more', async t => {
  const world = await caseWorld(t)
  const session = await world.pair.session('s-a')
  const text = '{"q":"a \\"b\\""}'
  let messages: object[] = [{ role: 'user', content: 'go' }]
  for (const turn of [1, 2, 3, 4]) {
    const seen = await world.call(
      session,
      { dialect, body: { messages }, engine: { toolCalls: [{ id: `c${turn}`, name: 'f', arguments: text }] } },
      turn % 2 === 0,
    )
    const calls = (seen.engine['messages'] as unknown as object[]).flatMap(
      message => (message as { tool_calls?: { function: { arguments: string } }[] }).tool_calls ?? [],
    )
    t.strictSame(
      calls.map(call => call.function.arguments),
      Array(turn - 1).fill(text),
      `turn ${turn}`,
    )
    const message = seen.answer['choices']?.[0]?.['message']
    const result = { role: 'tool', tool_call_id: message?.['tool_calls']?.[0]?.['id'], content: 'ok' }
    messages = [...messages, message as object, result]
  }
})

t.test('chat-wire-2: usage after the finish reason is counted, in every dialect', async t => {
  const world = await caseWorld(t)
  for (const id of Object.keys(dialectCalls) as DialectId[]) {
    for (const stream of [false, true]) {
      const session = await world.pair.session(`${id}-${stream}`)
      const body = { ...dialectCalls[id].body, ...(id === dialect && { stream_options: { include_usage: true } }) }
      const { answer } = await world.call(session, { dialect: id, body, engine: counted }, stream)
      const told = bytes((answer['usage'] ?? answer['usageMetadata']) as never)
      t.match(told, /:3\b/, `${id}: ${told}`)
      t.match(told, /:2\b/)
      const [call] = (await world.pair.ledger(session)).calls
      t.match(call?.record, { promptTokens: 3, completionTokens: 2 })
    }
  }
})

t.test('chat-wire-3: however the engine’s bytes are cut, client, record and ids are the same', async t => {
  const world = await caseWorld(t)
  const session = await world.pair.session('s-a')
  const whole =
    chunk({ content: 'naïve 🙂' }, [10, 11], null) +
    chunk({}, [99], 'stop') +
    event({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 3, total_tokens: 6 } }) +
    'data: [DONE]\n\n'
  const all = Buffer.from(whole)
  const text = whole.indexOf('na')
  const cuts = Array.from({ length: all.byteLength - 1 }, (_, index) => index + 1).filter(
    // Every byte around the text and the ends of events; elsewhere every seventh.
    at =>
      (at > text - 3 && at < text + 16) || at % 7 === 0 || /\n/.test(all.subarray(at - 2, at + 2).toString('latin1')),
  )
  const variants: [string, readonly Uint8Array[]][] = [
    ['one write', [all]],
    ['one byte at a time', [...all].map(byte => Uint8Array.of(byte))],
    ['CRLF', [Buffer.from(whole.replaceAll('\n', '\r\n'))]],
    ['no space', [Buffer.from(whole.replaceAll('data: ', 'data:'))]],
    ['two data lines', [Buffer.from(whole.replace('"delta":{"content"', '"delta":\ndata: {"content"'))]],
    ['no blank line at the end', [Buffer.from(whole.slice(0, -1))]],
    ...cuts.map((at): [string, readonly Uint8Array[]] => [`cut at ${at}`, [all.subarray(0, at), all.subarray(at)]]),
  ]
  const body = { ...hi, stream_options: { include_usage: true } }
  let clients = 0
  for (const [name, raw] of variants) {
    const { answer } = await world.call(session, { dialect, body, engine: { raw } }, true)
    const { message, finish_reason: finish } = (answer['choices']?.[0] ?? {}) as {
      message?: object
      finish_reason?: string
    }
    const isSame =
      (message as { content?: string } | undefined)?.content === 'naïve 🙂' &&
      finish === 'stop' &&
      bytes(answer['usage'] as never) === '{"prompt_tokens":3,"completion_tokens":3,"total_tokens":6}'
    if (isSame) clients += 1
    else t.fail(`${name}: ${bytes(answer)}`)
  }
  t.equal(clients, variants.length, 'every client')
  const { calls } = await world.pair.ledger(session)
  const records = new Set(
    calls.map(({ record: { sampledIds, promptIds, logprobs, response } }) =>
      JSON.stringify([[...(sampledIds ?? [])], [...(promptIds ?? [])], [...(logprobs ?? [])], response['choices']]),
    ),
  )
  t.equal(calls.length, variants.length)
  t.equal(records.size, 1, 'one record')
  t.match([...records][0], /^\[\[10,11,99\],\[1,2,3\],\[-0\.5,-0\.5,-0\.5\]/)
})

t.test('chat-wire-4: text in the chunk that names the role is not lost, in any dialect', async t => {
  const world = await caseWorld(t)
  const raw = [
    Buffer.from(
      chunk({ role: 'assistant', content: 'I' }, [10]) +
        chunk({ content: "'m happy" }, [11]) +
        chunk({}, [99], 'stop') +
        'data: [DONE]\n\n',
    ),
  ]
  for (const id of Object.keys(dialectCalls) as DialectId[]) {
    for (const stream of [false, true]) {
      const session = await world.pair.session(`${id}-${stream}`)
      const engine = stream ? { raw } : { pieces: ['I', "'m happy"] }
      const { answer } = await world.call(session, { dialect: id, body: dialectCalls[id].body, engine }, stream)
      t.match(bytes(answer), /"I'm happy"/, `${id} ${stream}`)
    }
  }
})

t.test('chat-wire-6: a streamed call has the ids and logprobs of one that is not', async t => {
  const world = await caseWorld(t)
  const session = await world.pair.session('s-a')
  const engine = { pieces: ['a', 'b'], logprobs: [-0.1, -0.2, -0.3] }
  for (const stream of [false, true]) {
    const { status, frames } = await world.call(session, { dialect, body: hi, engine }, stream)
    t.equal(status, 200)
    t.equal(lengthOf(frames) > 0, stream)
  }
  const [whole, streamed] = (await world.pair.ledger(session)).calls.map(({ record }) => record)
  t.strictSame(streamed?.sampledIds, whole?.sampledIds)
  t.strictSame(streamed?.logprobs, whole?.logprobs)
  t.strictSame(streamed?.promptIds, whole?.promptIds)
  t.equal(whole?.sampledIds?.length, 3)
})

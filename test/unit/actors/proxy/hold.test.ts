// What a harness can act on waits for the acknowledgement of the record; text before it does not.

import t from 'tap'
import { dialectCalls, gatewayPlan, quiet, readerOf, startPair } from '../../../support/pair.js'
import { scriptedEngine } from '../../../support/scripted-engine.js'

/** What a client of the dialect must not see before the record is safe, once it has seen the text. */
const actsOn = {
  openai_chat: [/finish_reason":"tool_calls"/, /\[DONE\]/],
  openai_responses: [/output_item\.done[^\n]*"type":"function_call"/, /response\.completed/],
  anthropic_messages: [/tool_use.*content_block_stop/s, /message_stop/],
  google_generate: [/functionCall/],
} as const

const tools = {
  openai_chat: { tools: [{ type: 'function', function: { name: 'run', parameters: { type: 'object' } } }] },
  openai_responses: { tools: [{ type: 'function', name: 'run', parameters: { type: 'object' } }] },
  anthropic_messages: { tools: [{ name: 'run', input_schema: { type: 'object' } }] },
  google_generate: { tools: [{ functionDeclarations: [{ name: 'run', parametersJsonSchema: { type: 'object' } }] }] },
} as const

for (const [dialect, call] of Object.entries(dialectCalls)) {
  const id = dialect as keyof typeof dialectCalls
  t.test(`${dialect}: with merge paused the client sees the text, but nothing to act on`, async t => {
    const engine = await scriptedEngine(t, [
      { pieces: ['visible', ' text'], toolCalls: [{ name: 'run', arguments: '{"cmd": "ls"}' }] },
    ])
    const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
    const session = await pair.session('s-a')
    pair.merge.tell({ type: 'pause-acknowledgements' })
    const response = await pair.post(
      call.streamPath,
      { ...call.body, ...call.streamBody, ...tools[id] },
      { key: session.key },
    )
    const reader = readerOf(response)
    await reader.until('visible')
    await session.probe.expectMessage('completion-recorded', 5_000)
    await quiet()
    const before = await reader.until('text')
    for (const pattern of actsOn[id]) t.notMatch(before, pattern)
    pair.merge.tell({ type: 'resume-acknowledgements' })
    const whole = await reader.rest()
    for (const pattern of actsOn[id]) t.match(whole, pattern)
    t.match((await pair.ledger(session)).calls, [{ delivered: 'yes', record: { finish: 'tool_calls' } }])
  })

  t.test(`${dialect}: a whole answer and the end of a text stream wait as well`, async t => {
    const engine = await scriptedEngine(t, [{ pieces: ['done'] }])
    const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
    const session = await pair.session('s-a')
    pair.merge.tell({ type: 'pause-acknowledgements' })
    let answered = false
    const whole = pair.post(call.path, call.body, { key: session.key }).then(async response => {
      answered = true
      return response.text()
    })
    await session.probe.expectMessage('completion-recorded', 5_000)
    await quiet()
    t.equal(answered, false, 'not a byte of the body')
    const stream = await pair.post(call.streamPath, { ...call.body, ...call.streamBody }, { key: session.key })
    let ended = false
    const rest = readerOf(stream)
      .rest()
      .then(text => {
        ended = true
        return text
      })
    await session.probe.expectMessage('completion-recorded', 5_000)
    await quiet()
    t.equal(ended, false, 'the stream has no end yet')
    pair.merge.tell({ type: 'resume-acknowledgements' })
    t.match(await whole, 'done')
    t.match(await rest, 'done')
    t.equal((await pair.ledger(session)).calls.length, 2)
  })
}

t.test('capture-1: a client that leaves on the terminal event has its last turn in the ledger', async t => {
  const engine = await scriptedEngine(t, [{ pieces: ['bye'] }])
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
  const terminal = {
    openai_chat: '[DONE]',
    openai_responses: 'response.completed',
    anthropic_messages: 'message_stop',
    google_generate: 'finishReason',
  }
  for (const [dialect, call] of Object.entries(dialectCalls)) {
    const session = await pair.session(dialect)
    const abort = new AbortController()
    const response = await pair.post(
      call.streamPath,
      { ...call.body, ...call.streamBody },
      { key: session.key, signal: abort.signal },
    )
    await readerOf(response).until(terminal[dialect as keyof typeof terminal])
    abort.abort()
    t.match(await session.probe.expectMessage('completion-recorded', 0), { calls: 1 }, 'known before the client left')
    t.equal((await pair.ledger(session)).calls.length, 1)
  }
})

t.test('with credit 2 and merge paused nothing is lost and another session is served', async t => {
  const engine = await scriptedEngine(t, [{ pieces: ['x'] }])
  const plan = gatewayPlan([{ urls: [engine.url] }], { limits: { creditRecords: 3, sessionCredit: 2 } })
  const pair = await startPair(t, plan)
  const slow = await pair.session('slow')
  const { path, body } = dialectCalls.openai_chat
  pair.merge.tell({ type: 'pause-acknowledgements' })
  const waiting = [0, 1, 2, 3, 4].map(() => pair.post(path, body, { key: slow.key }))
  await slow.probe.expectMessage('completion-recorded', 5_000)
  t.match(await slow.probe.expectMessage('completion-recorded', 5_000), { calls: 2 })
  await engine.generation(4)
  await quiet()
  t.equal(
    slow.probe.messages().filter(({ type }) => type === 'completion-recorded').length,
    2,
    'the session has used its credit',
  )
  const quick = await pair.session('quick')
  const other = pair.post(path, body, { key: quick.key })
  t.match(await quick.probe.expectMessage('completion-recorded', 5_000), { calls: 1 }, 'the other session gets through')
  pair.merge.tell({ type: 'resume-acknowledgements' })
  for (const answer of [...waiting, other]) t.equal((await answer).status, 200)
  t.equal((await pair.ledger(slow)).calls.length, 5)
  t.equal((await pair.ledger(quick)).calls.length, 1)
  t.strictSame(pair.deadLetters, [])
})

t.test('an answer whose record is refused never reaches the harness', async t => {
  const engine = await scriptedEngine(t, [{ pieces: ['x'] }])
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
  const session = await pair.session('s-a')
  pair.merge.tell({ type: 'drop-ledger', sessionId: session.sessionId })
  const whole = await pair.post('/v1/chat/completions', dialectCalls.openai_chat.body, { key: session.key })
  t.equal(whole.status, 403)
  const stream = await pair.post(
    '/v1/messages',
    { ...dialectCalls.anthropic_messages.body, stream: true },
    { key: session.key },
  )
  const events = await stream.text()
  t.match(events, /event: error/)
  t.notMatch(events, /message_stop/)
  t.equal(pair.log.lines.filter(line => line.event === 'frame-refuse').length >= 2, true, 'each refusal is logged')
})

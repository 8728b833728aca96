// What the calls of one session share: the memory of turns, sampling, limits, labels.

import { createHash } from 'node:crypto'
import t from 'tap'
import type { JsonObject } from '../../../../src/domain/json.js'
import { dialectCalls, gatewayPlan, noLimits, startPair } from '../../../support/pair.js'
import { type ScriptedAnswer, type ScriptedEngine, scriptedEngine } from '../../../support/scripted-engine.js'

const chat = dialectCalls.openai_chat
const tools = [{ type: 'function', function: { name: 'pwd', parameters: { type: 'object' } } }]

async function world(
  t: Parameters<typeof startPair>[0],
  script: readonly ScriptedAnswer[],
  ...session: Parameters<Awaited<ReturnType<typeof startPair>>['session']> extends [string, (infer C)?] ? [C?] : never
) {
  const engine = await scriptedEngine(t, script)
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]))
  return { engine, pair, session: await pair.session('s-a', session[0]) }
}

/** The second message of what the engine was asked. */
const sent = (engine: ScriptedEngine, index: number): JsonObject => {
  const messages = engine.generations[index]?.body['messages']
  return Array.isArray(messages) ? messages[1] : {}
}

t.test('an echoed turn is rendered as the model wrote it', async t => {
  const { engine, pair, session } = await world(t, [
    { reasoning: 'plan', toolCalls: [{ id: 'call_1', name: 'pwd', arguments: '{"deep": true,  "n":1}' }] },
    { pieces: ['done'] },
  ])
  const question = { role: 'user', content: 'where?' }
  const post = (messages: readonly object[]) =>
    pair.post(chat.path, { model: 'm', messages, tools }, { key: session.key })
  await (await post([question])).text()
  const echoes: [JsonObject, readonly string[]][] = [
    [{ content: '', reasoning_content: 'plan', arguments: '{"deep": true,  "n":1}' }, []],
    [{ content: null, reasoning_content: 'plan', arguments: '{"n":1,"deep":true}' }, ['arguments_restored']],
    [{ content: null, arguments: '{"deep": true,  "n":1}' }, ['reasoning_reattached']],
  ]
  for (const [index, [{ arguments: text, ...echo }]] of echoes.entries()) {
    const call = { id: 'call_1', type: 'function', function: { name: 'pwd', arguments: text } }
    const answer = { role: 'tool', tool_call_id: 'call_1', content: '/' }
    await (await post([question, { role: 'assistant', ...echo, tool_calls: [call] }, answer])).text()
    t.match(sent(engine, index + 1), {
      content: null,
      reasoning_content: 'plan',
      tool_calls: [{ id: 'call_1', function: { name: 'pwd', arguments: '{"deep": true,  "n":1}' } }],
    })
  }
  const edited = { id: 'call_1', type: 'function', function: { name: 'pwd', arguments: '{"n":2}' } }
  await (await post([question, { role: 'assistant', content: null, tool_calls: [edited] }])).text()
  t.match(sent(engine, 4), {
    tool_calls: [{ function: { arguments: '{"n":2}' } }],
  })
  t.notOk('reasoning_content' in sent(engine, 4), 'an edit stays')
  const { calls } = await pair.ledger(session)
  t.strictSame(
    calls.map(({ record }) => record.rulesApplied),
    [[], ...echoes.map(([, rules]) => rules), []],
  )
})

t.test('sampling: force beats the harness, default yields to it, and all that is in force is recorded', async t => {
  const { engine, pair, session } = await world(t, [{ pieces: ['x'] }], {
    sampling: {
      temperature: { value: 0.7, mode: 'force' },
      top_p: { value: 0.9, mode: 'default' },
      max_tokens: { value: 100, mode: 'default' },
      top_k: { value: 5, mode: 'pass' },
    },
  })
  const post = async (fields: object) =>
    (await pair.post(chat.path, { ...chat.body, ...fields }, { key: session.key })).text()
  await post({ temperature: 0, top_p: 0.5, max_tokens: 7 })
  await post({})
  t.match(engine.generations[0]?.body, { temperature: 0.7, top_p: 0.5, max_tokens: 7, min_p: 0 })
  t.match(engine.generations[1]?.body, { temperature: 0.7, top_p: 0.9, max_tokens: 100 })
  t.notOk('top_k' in (engine.generations[1]?.body ?? {}), 'pass sends only what the harness sent')
  const { calls } = await pair.ledger(session)
  t.match(calls[0]?.record.sampling, { temperature: 0.7, topP: 0.5, topK: null, maxTokens: 7, seed: null })
  t.equal(calls[1]?.record.notTrainable, 'sampling_unknown', 'top_k in force is not known')
})

t.test('a sampling seed makes the seed of each turn', async t => {
  const { engine, pair, session } = await world(t, [{ pieces: ['x'] }], { samplingSeed: 42 })
  const turns = [
    [{ role: 'user', content: 'hi' }],
    [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'x' },
      { role: 'user', content: 'on' },
    ],
  ]
  for (const messages of [...turns, ...turns]) {
    await (await pair.post(chat.path, { model: 'm', messages }, { key: session.key })).text()
  }
  const seeds = engine.generations.map(({ body }) => body['seed'])
  t.strictSame(seeds, [seeds[0], seeds[1], seeds[0], seeds[1]])
  t.not(seeds[0], seeds[1])
  const wanted = createHash('sha256').update('42:0').digest().readUInt32BE(0) >>> 1
  t.equal(seeds[0], wanted)
})

t.test('a limit that is reached is a final stop in every dialect, told once, and never reaches the engine', async t => {
  const { engine, pair, session } = await world(t, [{ pieces: ['x'] }], { limits: { ...noLimits, max_turns: 2 } })
  for (const _ of [1, 2]) await (await pair.post(chat.path, chat.body, { key: session.key })).text()
  const terminal = {
    openai_chat: /"finish_reason":"stop"[\s\S]*\[DONE\]/,
    openai_responses: /response\.completed/,
    anthropic_messages: /"stop_reason":"end_turn"[\s\S]*message_stop/,
    google_generate: /"finishReason":"STOP"/,
  }
  for (const [dialect, call] of Object.entries(dialectCalls)) {
    const whole = await pair.post(call.path, call.body, { key: session.key })
    t.equal(whole.status, 200)
    t.match(await whole.text(), /max_turns/)
    const stream = await pair.post(call.streamPath, { ...call.body, ...call.streamBody }, { key: session.key })
    t.match(await stream.text(), terminal[dialect as keyof typeof terminal])
  }
  t.equal(engine.generations.length, 2)
  await session.probe.expectMessage('limit-reached', 1_000)
  const told = session.probe.messages().filter(message => message.type === 'limit-reached')
  t.strictSame(told, [{ type: 'limit-reached', limit: 'max_turns' }])
  t.equal((await pair.ledger(session)).calls.length, 2)
})

t.test('limits in tokens are sums over the session, and the rest is the most a call may sample', async t => {
  const script = [{ ids: [1, 2, 3, 99], pieces: ['x'] }]
  for (const [limits, asked] of [
    [{ max_output_tokens: 5 }, 1],
    [{ max_total_tokens: 10 }, 3],
  ] as const) {
    const { engine, pair, session } = await world(t, script, { limits: { ...noLimits, ...limits } })
    await (await pair.post(chat.path, chat.body, { key: session.key })).text()
    await (await pair.post(chat.path, chat.body, { key: session.key })).text()
    t.equal(engine.generations[1]?.body['max_tokens'], asked)
    t.match(await (await pair.post(chat.path, chat.body, { key: session.key })).text(), Object.keys(limits)[0])
    t.equal(engine.generations.length, 2)
  }
  const { engine, pair, session } = await world(t, script, { limits: { ...noLimits, max_input_tokens: 3 } })
  await (await pair.post(chat.path, chat.body, { key: session.key })).text()
  t.match(await (await pair.post(chat.path, chat.body, { key: session.key })).text(), 'max_input_tokens')
  t.equal(engine.generations.length, 1)
})

t.test('side calls and sub-agents are labelled: preset rules first, then the shape', async t => {
  const { pair, session } = await world(t, [{ pieces: ['x'] }], {
    sideCalls: [
      { name: 'title', systemIncludes: 'Generate a title', noTools: true },
      { name: 'small', modelGlob: '*-nano' },
      { name: 'probe', headerIncludes: { name: 'X-Purpose', text: 'quota' } },
      { name: 'empty' },
      { name: 'helper', isSubAgent: true, noTools: false, systemLacks: 'Main agent' },
      { name: 'reporter', isSubAgent: true, offersTool: 'complete_task' },
    ],
    limits: { ...noLimits, max_turns: 5 },
  })
  const post = async (body: object, headers: Record<string, string> = {}) =>
    (await pair.post(chat.path, { ...chat.body, ...body }, { key: session.key, headers })).text()
  const system = { role: 'system', content: 'Generate a title for this' }
  const asMain = {
    messages: [
      { role: 'system', content: 'Main agent.' },
      { role: 'user', content: 'hi' },
    ],
  }
  await post({})
  await post({ messages: [system, { role: 'user', content: 'hi' }] })
  await post({ ...asMain, model: 'gpt-nano', tools })
  await post({ ...asMain, tools }, { 'x-purpose': 'quota check' })
  await post({ tools }, { 'x-claude-code-agent-id': 'agent-7' })
  await post({})
  await post({ ...asMain, tools, max_tokens: 1 })
  await post({ tools }, { 'x-openai-subagent': 'review' })
  await post({ tools })
  await post({
    ...asMain,
    tools: [...tools, { type: 'function', function: { name: 'complete_task', parameters: {} } }],
  })
  t.match(await post({ tools }), /max_turns/, 'side calls do not count as turns')
  const { calls } = await pair.ledger(session)
  t.strictSame(
    calls.map(({ record }) => [record.sideRule, record.agentId]),
    [
      [null, null],
      ['title', null],
      ['small', null],
      ['probe', null],
      [null, 'agent-7'],
      ['shape:no_tools', null],
      ['shape:tiny_max_tokens', null],
      [null, 'review'],
      [null, 'helper'],
      [null, 'reporter'],
    ],
  )
})

t.test('a session that registers again goes on with its counters', async t => {
  const { pair, session } = await world(t, [{ pieces: ['x'] }], { firstSequence: 5 })
  await (await pair.post(chat.path, chat.body, { key: session.key })).text()
  await pair.put(session, { attempt: 1, firstSequence: 0 })
  await (await pair.post(chat.path, chat.body, { key: session.key })).text()
  const { calls } = await pair.ledger(session)
  t.strictSame(
    calls.map(({ record }) => [record.sequence, record.attempt]),
    [
      [5, 0],
      [6, 1],
    ],
  )
})

t.test('a session that a restarted proxy gets again goes on from its sums', async t => {
  for (const [limit, used] of [
    ['max_turns', { turns: 5, promptTokens: 0, sampledTokens: 0 }],
    ['max_input_tokens', { turns: 0, promptTokens: 5, sampledTokens: 0 }],
    ['max_output_tokens', { turns: 0, promptTokens: 0, sampledTokens: 5 }],
    ['max_total_tokens', { turns: 0, promptTokens: 2, sampledTokens: 3 }],
  ] as const) {
    const { engine, pair, session } = await world(t, [{ pieces: ['x'] }], { limits: { ...noLimits, [limit]: 5 }, used })
    t.match(await (await pair.post(chat.path, chat.body, { key: session.key })).text(), limit)
    t.equal(engine.generations.length, 0)
  }
})

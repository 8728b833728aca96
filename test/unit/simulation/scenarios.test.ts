// Drift forms break the prefix in the way they say, the drunk scenario makes its mistakes and ends, side requests get what they ask for.

import t from 'tap'
import type { JsonObject } from '../../../src/domain/json.js'
import { DRIFT_FORMS, type DriftForm } from '../../../src/simulation/drift.js'
import type { Simulation } from '../../../src/simulation/server.js'
import { loadTokenizer } from '../../../src/tokenizer/tokenizer.js'
import { HARNESS_TOOLS } from '../../support/harness-tools.js'
import { type ChatChoice, chat, chatChunks, simulate } from '../../support/simulation.js'

const qwen3 = loadTokenizer('qwen3')
const tools = HARNESS_TOOLS['qwen_code'] ?? []
const user = (content: string): JsonObject => ({ role: 'user', content })
const task = user('Fix the median.\n\nScenario: fix-calculator')

const replayed = ({ content, reasoning, tool_calls }: ChatChoice['message']): JsonObject => ({
  role: 'assistant',
  content,
  ...(reasoning !== null && { reasoning }),
  ...(tool_calls && { tool_calls: tool_calls.map(call => ({ ...call })) }),
})

/** How the prompt after one answer begins: with prompt and answer, with other ids for the same text, or with other text. */
async function joinOf(simulation: Simulation, seed: number): Promise<'exact' | 'retokenised' | 'rewritten'> {
  const first = await chat(simulation, { messages: [task], tools, seed })
  const before = [...(first.prompt_token_ids ?? []), ...(first.choice.token_ids ?? [])]
  const messages = [
    task,
    replayed(first.choice.message),
    { role: 'tool', tool_call_id: first.choice.message.tool_calls?.[0]?.id, content: 'ok' },
  ]
  const second = await chat(simulation, { messages: messages as JsonObject[], tools, seed: 1 })
  const after = second.prompt_token_ids ?? []
  if (before.every((id, index) => after[index] === id)) return 'exact'
  return qwen3.decode(after).startsWith(qwen3.decode(before)) ? 'retokenised' : 'rewritten'
}

const EXPECTED: Readonly<Record<DriftForm, 'retokenised' | 'rewritten'>> = {
  two_line_feeds: 'rewritten',
  compact_json: 'rewritten',
  bpe: 'retokenised',
  hidden_reasoning: 'rewritten',
  thinking_off: 'rewritten',
  raw_whitespace: 'rewritten',
}
for (const form of Object.keys(DRIFT_FORMS) as DriftForm[]) {
  t.test(`drift ${form} breaks the prefix: ${EXPECTED[form]}`, async t => {
    const simulation = await simulate(t, { drift: [form] })
    for (let seed = 0; seed < 5; seed++) t.equal(await joinOf(simulation, seed), EXPECTED[form], `seed ${seed}`)
  })
}

t.test('without drift the same joins are exact', async t => {
  const simulation = await simulate(t)
  for (let seed = 0; seed < 5; seed++) t.equal(await joinOf(simulation, seed), 'exact')
})

t.test('the drunk makes all its mistakes', async t => {
  const simulation = await simulate(t)
  const seen = new Set<string>()
  for (let seed = 0; seed < 60; seed++) {
    const body = { messages: [user('Scenario: drunk')], tools, seed, max_tokens: 400 }
    const { choice } = await chat(simulation, body)
    const { content, reasoning, tool_calls: calls } = choice.message
    if (choice.finish_reason === 'length') seen.add('repetition')
    else if (calls) seen.add(calls[0]?.function.name === 'does_not_exist' ? 'unknown tool' : 'good call')
    else if (content === null) seen.add(/<tool_call>/.test(reasoning ?? '') ? 'call in open thinking' : 'empty')
    else if (/^<tool_call>/.test(content)) seen.add('broken JSON')
  }
  t.strictSame([...seen].sort(), [
    'broken JSON',
    'call in open thinking',
    'empty',
    'good call',
    'repetition',
    'unknown tool',
  ])
})

t.test('a stream of a drunk answer ends as the protocol wants, and ids are complete', async t => {
  const simulation = await simulate(t)
  for (let seed = 0; seed < 30; seed++) {
    const body = { messages: [user('Scenario: drunk')], tools, seed, max_tokens: 200, return_token_ids: true }
    const { choice } = await chat(simulation, body)
    const choices = (await chatChunks(simulation, body)).flatMap(chunk => chunk['choices'] as readonly ChatChoice[])
    t.strictSame(
      choices.flatMap(({ token_ids: ids }) => ids ?? []),
      choice.token_ids,
    )
    t.equal(choices.filter(one => one.finish_reason !== null).length, 1)
  }
})

t.test('the drunk sobers up after a few turns', async t => {
  const simulation = await simulate(t)
  const turns = Array.from({ length: 6 }, () => [{ role: 'assistant', content: 'x' }, user('go on')]).flat()
  const { choice } = await chat(simulation, { messages: [user('Scenario: drunk'), ...turns], tools, seed: 1 })
  t.match(choice, { finish_reason: 'stop', message: { content: /enough|fill/ } })
})

t.test('a title request gets a title, whatever scenario its text quotes', async t => {
  const simulation = await simulate(t)
  const { choice } = await chat(simulation, {
    messages: [{ role: 'system', content: 'You write a title.' }, task],
    seed: 1,
  })
  t.match(choice, { finish_reason: 'stop', message: { content: /^[A-Z][\w ]{5,60}$/ } })
})

t.test('a request for JSON gets an instance of its schema', async t => {
  const simulation = await simulate(t)
  const schema = {
    type: 'object',
    properties: {
      complexity_reasoning: { type: 'string' },
      complexity_score: { type: 'integer', minimum: 1, maximum: 100 },
      kind: { enum: ['SIMPLE', 'STRATEGIC'] },
      optional: { type: 'string' },
      list: { type: 'array', items: { type: 'string' }, minItems: 1 },
      done: { type: 'boolean' },
    },
    required: ['complexity_reasoning', 'complexity_score', 'kind', 'list', 'done'],
  }
  for (let seed = 0; seed < 10; seed++) {
    const { choice } = await chat(simulation, {
      messages: [task],
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
      seed,
    })
    t.match(JSON.parse(choice.message.content ?? ''), {
      complexity_reasoning: /^[A-Z]\w+ .*/,
      complexity_score: 1,
      kind: 'SIMPLE',
      list: [String],
      done: false,
    })
  }
  const any = await chat(simulation, { messages: [task], response_format: { type: 'json_object' }, seed: 1 })
  t.strictSame(JSON.parse(any.choice.message.content ?? ''), {})
})

t.test('a harness that compacts its history gets a summary, not a call', async t => {
  const simulation = await simulate(t)
  const ask = user(
    'Your task is to create a detailed summary of the conversation so far, in <summary> tags. Do not call tools.',
  )
  const messages = [task, { role: 'assistant', content: 'I will.' }, ask]
  const { choice } = await chat(simulation, { messages, tools, seed: 2 })
  t.match(choice, { finish_reason: 'stop', message: { content: /^<summary>\n.*\n<\/summary>$/s } })
})

t.test('a sub-agent that must report does so through its own tool', async t => {
  const simulation = await simulate(t)
  const report = {
    type: 'function',
    function: {
      name: 'complete_task',
      parameters: { type: 'object', properties: { result: { type: 'string' } }, required: ['result'] },
    },
  }
  const { choice } = await chat(simulation, { messages: [user('Look.')], tools: [report], seed: 1 })
  t.match(choice.message.tool_calls, [{ function: { name: 'complete_task', arguments: '{"result": "some result"}' } }])
})

t.test('calls that come to nothing are tried again and then given up', async t => {
  const simulation = await simulate(t)
  const messages: JsonObject[] = [task]
  let turns = 0
  for (; turns < 10; turns++) {
    const { choice } = await chat(simulation, { messages, tools, seed: turns })
    messages.push(replayed(choice.message))
    if (choice.finish_reason === 'stop') break
    for (const { id } of choice.message.tool_calls ?? []) {
      messages.push({ role: 'tool', tool_call_id: id, content: 'Error: permission denied' })
    }
  }
  t.equal(turns, 3)
  t.match(messages.at(-1)?.['content'], /could not|was not able/)
})

t.test('tool_choice is obeyed', async t => {
  const simulation = await simulate(t)
  const hi = [user('hi')]
  const none = await chat(simulation, { messages: hi, tools, tool_choice: 'none', seed: 1 })
  t.match(none.choice, { finish_reason: 'stop', message: { tool_calls: undefined } })
  const named = await chat(simulation, {
    messages: hi,
    tools,
    tool_choice: { type: 'function', function: { name: 'read_file' } },
    seed: 1,
  })
  t.match(named.choice.message.tool_calls, [{ function: { name: 'read_file', arguments: '{"path": "some path"}' } }])
  const ended = [task, ...Array.from({ length: 24 }, () => [{ role: 'assistant', content: 'x' }, user('go on')]).flat()]
  const required = await chat(simulation, { messages: ended, tools, tool_choice: 'required', seed: 1 })
  t.equal(required.choice.finish_reason, 'tool_calls')
})

t.test('without a shell among the tools the policy says so', async t => {
  const simulation = await simulate(t)
  const { choice } = await chat(simulation, { messages: [task], tools: tools.slice(0, 1), seed: 1 })
  t.match(choice, { finish_reason: 'stop', message: { content: /without a shell/ } })
})

t.test('side answers, the generic and the small script are sampled in canonical ids too', async t => {
  const simulation = await simulate(t)
  const schema = {
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'number' }, c: { type: 'string' } },
    required: ['a', 'b', 'c'],
  }
  const format = { type: 'json_schema', json_schema: { name: 'x', schema } }
  const looked = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'a', type: 'function', function: { name: 'x', arguments: '{"command": "ls hello.txt"}' } }],
  }
  const result = { role: 'tool', tool_call_id: 'a', content: 'ok' }
  const requests: Readonly<Record<string, JsonObject>> = {
    generic: { messages: [user('Look around.')], tools },
    'generic, later': { messages: [user('Look around.'), looked, result], tools },
    hello: { messages: [user('Scenario: hello')], tools },
    'hello, later': { messages: [user('Scenario: hello'), looked, result], tools },
    title: { messages: [user('Write a title.')] },
    summary: { messages: [user('Write a <summary>.')] },
    'plain summary': { messages: [user('Please summarize.')] },
    short: { messages: [user('ok?')] },
    json: { messages: [user('ok?')], response_format: format },
    'tools for nothing': { messages: [task], tools: tools.slice(0, 1) },
  }
  for (const [name, body] of Object.entries(requests)) {
    for (let seed = 0; seed < 25; seed++) {
      const kwargs = seed % 5 === 0 ? { chat_template_kwargs: { enable_thinking: false } } : {}
      const { choice } = await chat(simulation, { ...body, ...kwargs, seed })
      const ids = choice.token_ids ?? []
      if (!t.strictSame([...qwen3.encode(qwen3.decode(ids))], ids, `${name}, seed ${seed}`)) return
      if (choice.logprobs?.content.every(({ logprob }) => logprob === 0)) t.fail(`${name}: certain of everything`)
    }
  }
})

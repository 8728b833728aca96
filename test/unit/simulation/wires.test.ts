// Both wires and every planted fault over real HTTP, read by the profile of the engine in question.

import t, { type Test } from 'tap'
import type { SimulationPlan } from '../../../src/config/plan.js'
import type { Clock } from '../../../src/domain/clock.js'
import type { CanonicalRequest } from '../../../src/domain/conversation.js'
import type { JsonObject } from '../../../src/domain/json.js'
import { SLOW_FIRST_BYTE_MS } from '../../../src/simulation/faults.js'
import type { Simulation } from '../../../src/simulation/server.js'
import { loadTokenizer } from '../../../src/tokenizer/tokenizer.js'
import type { UpstreamAnswer } from '../../../src/upstreams/base.js'
import { upstreams } from '../../../src/upstreams/registry.js'
import { post, simulate } from '../../support/simulation.js'

type Wire = 'vllm' | 'sglang'
const WIRES: readonly Wire[] = ['vllm', 'sglang']
const qwen3 = loadTokenizer('qwen3')
const options = {
  model: 'policy',
  stop: [],
  affinityKey: 's-1',
  sampling: {
    temperature: 1,
    topP: 1,
    topK: -1,
    minP: null,
    presencePenalty: null,
    frequencyPenalty: null,
    maxTokens: 4000,
    seed: 5,
  },
}
const request = (content = 'Scenario: fix-calculator'): CanonicalRequest => ({
  dialect: 'openai_chat',
  model: 'm',
  messages: [{ role: 'user', content }],
  tools: [{ name: 'bash', parameters: { type: 'object', properties: { command: { type: 'string' } } } }],
  sampling: {},
  stream: false,
  losses: [],
  echo: {},
})
const bodyFor = (wire: Wire, content?: string): JsonObject =>
  upstreams[wire].buildRequest(request(content), options).body
const CHAT = '/v1/chat/completions'

async function ask(t: Test, wire: Wire, plan: Partial<SimulationPlan> = {}): Promise<UpstreamAnswer> {
  const simulation = await simulate(t, { wire, ...plan })
  const response = await post(simulation, CHAT, bodyFor(wire))
  const body = JSON.parse(await response.text())
  t.equal(response.status, 200, JSON.stringify(body))
  return upstreams[wire].readAnswer(body)
}

t.test('the same seed gives the same answer on both wires', async t => {
  const vllm = await ask(t, 'vllm')
  const sglang = await ask(t, 'sglang')
  const told = ({ toolCalls, weightVersion, ...answer }: UpstreamAnswer) => ({
    ...answer,
    toolCalls: toolCalls.map(({ name, arguments: text }) => ({ name, text })),
  })
  t.strictSame(told(sglang), told(vllm))
  t.ok((vllm.sampledIds?.length ?? 0) > 20)
  t.equal(sglang.weightVersion, 'default', 'SGLang tells the version of its weights')
})

t.test('SGLang refuses ids together with a stream, and streams without them', async t => {
  const simulation = await simulate(t, { wire: 'sglang' })
  const asked = { ...bodyFor('sglang'), stream: true }
  const refused = await post(simulation, CHAT, asked)
  t.equal(refused.status, 400)
  t.match(await refused.json(), { object: 'error', message: /not supported with stream/, code: 400 })
  const { return_prompt_token_ids: _, return_meta_info: __, ...plain } = asked as Record<string, unknown>
  const text = await (await post(simulation, CHAT, plain)).text()
  const reader = upstreams.openai_compatible.streamReader()
  for (const event of text.split('\n\n')) if (event !== '') reader.push(event.slice('data: '.length))
  const whole = upstreams.sglang.readAnswer(
    (await (await post(simulation, CHAT, bodyFor('sglang'))).json()) as JsonObject, // what a server sends is JSON
  )
  const { answer, complete } = reader.answer()
  t.equal(complete, true)
  t.equal(answer.reasoning, whole.reasoning)
  t.equal(answer.toolCalls[0]?.arguments, whole.toolCalls[0]?.arguments)
})

t.test("SGLang's tokenizer routes take text alone, and any model name is served", async t => {
  const simulation = await simulate(t, { wire: 'sglang' })
  const ids = [...qwen3.encode('naïve')]
  t.match(await (await post(simulation, '/tokenize', { prompt: 'naïve' })).json(), { tokens: ids })
  t.strictSame(await (await post(simulation, '/detokenize', { tokens: ids })).json(), { text: 'naïve' })
  t.equal((await post(simulation, '/tokenize', { messages: [{ role: 'user', content: 'a' }] })).status, 400)
  t.equal((await post(simulation, CHAT, { ...bodyFor('sglang'), model: 'another' })).status, 200)
})

t.test('a prompt over the window is read as such on both wires', async t => {
  for (const wire of WIRES) {
    const simulation = await simulate(t, { wire, contextWindow: 600 })
    // vLLM cuts `max_tokens` to what is left where SGLang refuses.
    for (const content of ['word '.repeat(700), ...(wire === 'sglang' ? ['hi'] : [])]) {
      const response = await post(simulation, CHAT, bodyFor(wire, content))
      const error = upstreams[wire].readError(response.status, {}, await response.text())
      t.match(error, { status: 400, contextLength: { window: 600 } }, `${wire}: ${error.message}`)
      t.ok(Number(error.contextLength?.promptTokens) > 20, 'the prompt is counted')
    }
  }
})

for (const wire of WIRES) {
  t.test(`${wire}: faults in what is told of the tokens`, async t => {
    const honest = await ask(t, wire)
    const length = honest.sampledIds?.length ?? 0
    const none = await ask(t, wire, { faults: ['no_ids'] })
    t.strictSame([none.promptIds, none.sampledIds], [null, null])
    t.equal(none.usage?.completionTokens, length)
    const stopless = await ask(t, wire, { faults: ['no_stop_id'] })
    t.strictSame(stopless.sampledIds, honest.sampledIds?.slice(0, -1))
    t.equal(stopless.usage?.completionTokens, length, 'it is counted all the same')
    t.equal((await ask(t, wire, { faults: ['no_usage'] })).usage, null)
    const short = await ask(t, wire, { faults: ['short_logprobs'] })
    t.equal(short.logprobContent?.length, length - 1)
    t.equal(short.sampledIds?.length, length)
    t.equal(short.logprobs?.length, wire === 'sglang' ? length : length - 1, 'meta_info is whole')
    const clamped = await ask(t, wire, { faults: ['clamped_logprobs'] })
    t.equal(clamped.logprobs?.filter(logprob => logprob === -9999).length, Math.floor(length / 3))
    const aborted = await ask(t, wire, { faults: ['abort_finish'] })
    t.match(aborted, { finish: 'abort', sampledIds: { length: 5 } })
  })

  t.test(`${wire}: faults in words`, async t => {
    const other = await simulate(t, { wire, faults: ['other_reasoning_key', 'other_error_shape'] })
    const body = (await (await post(other, CHAT, bodyFor(wire))).json()) as Loose // test data
    const wrong = wire === 'vllm' ? 'reasoning_content' : 'reasoning'
    t.type(body.choices[0]?.message[wrong], 'string')
    const refused = await (await post(other, CHAT, { messages: [] })).json()
    t.equal('object' in Object(refused), wire === 'vllm', 'flat instead of nested, and the other way round')
    const strict = await simulate(t, { wire, faults: ['strict_fields'] })
    const answer = await post(strict, CHAT, bodyFor(wire))
    t.equal(answer.status, 400)
    t.match(upstreams[wire].readError(400, {}, await answer.text()), { message: /Extra inputs are not permitted/ })
    t.equal((await post(strict, CHAT, { messages: [{ role: 'user', content: 'hi' }] })).status, 200)
  })

  t.test(`${wire}: faults of the server`, async t => {
    const statuses = async (faults: readonly string[], calls: number) => {
      const simulation = await simulate(t, { wire, faults })
      const found: (number | string)[] = []
      for (let call = 0; call < calls; call++) found.push(await statusOf(simulation, bodyFor(wire)))
      return found
    }
    t.strictSame(await statuses(['server_error@2'], 3), [200, 500, 200], 'one call only')
    t.strictSame(await statuses(['overloaded@1'], 2), ['429 after 1', 200])
    t.strictSame(await statuses(['midstream_error'], 1), [500])
    t.strictSame(await statuses(['disconnect'], 2), ['cut', 'cut'])
  })
}

interface Loose {
  readonly choices: readonly { readonly message: Readonly<Record<string, unknown>> }[]
}

async function statusOf(simulation: Simulation, body: JsonObject): Promise<number | string> {
  try {
    const response = await post(simulation, CHAT, body)
    await response.text()
    const after = response.headers.get('retry-after')
    return after === null ? response.status : `${response.status} after ${after}`
  } catch {
    return 'cut'
  }
}

t.test('a stream breaks off with an error event, or with the connection', async t => {
  const asked = { ...bodyFor('vllm'), stream: true }
  const failing = await simulate(t, { faults: ['midstream_error'] })
  const response = await post(failing, CHAT, asked)
  t.equal(response.status, 200)
  const reader = upstreams.vllm.streamReader()
  const deltas = (await response.text())
    .split('\n\n')
    .filter(event => event !== '')
    .flatMap(event => reader.push(event.slice('data: '.length)))
  t.ok(
    deltas.some(delta => delta.type === 'reasoning'),
    'it had begun',
  )
  t.match(deltas.at(-1), { type: 'error', message: /EngineCore/ })
  const cut = await post(await simulate(t, { faults: ['disconnect'] }), CHAT, asked)
  t.equal(cut.status, 200)
  await t.rejects(cut.text())
})

t.test('faults of the tokens are told in streams as in whole answers', async t => {
  for (const fault of ['no_stop_id', 'short_logprobs', 'clamped_logprobs', 'abort_finish', 'no_usage']) {
    const whole = await ask(t, 'vllm', { faults: [fault] })
    const simulation = await simulate(t, { faults: [fault] })
    const body = { ...bodyFor('vllm'), stream: true, stream_options: { include_usage: true } }
    const text = await (await post(simulation, CHAT, body)).text()
    const reader = upstreams.vllm.streamReader()
    for (const event of text.split('\n\n')) if (event !== '') reader.push(event.slice('data: '.length))
    const { answer } = reader.answer()
    const facts = ({ sampledIds, logprobs, usage, finish }: UpstreamAnswer) => ({ sampledIds, logprobs, usage, finish })
    t.strictSame(facts(answer), facts(whole), fault)
  }
})

t.test('a slow first byte waits on the clock', async t => {
  const slept: number[] = []
  const clock: Clock = {
    now: () => 0,
    sleep: async ms => {
      slept.push(ms)
    },
  }
  const simulation = await simulate(t, { faults: ['slow_first_byte@2'] }, { clock })
  for (const expected of [0, 1]) {
    t.equal(await statusOf(simulation, bodyFor('vllm')), 200)
    t.equal(slept.filter(ms => ms === SLOW_FIRST_BYTE_MS).length, expected)
  }
})

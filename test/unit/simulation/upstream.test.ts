// The vllm profile reads what the simulation sends: the same answer whole and streamed, nothing missing, errors understood.

import t from 'tap'
import type { CanonicalRequest } from '../../../src/domain/conversation.js'
import type { JsonObject } from '../../../src/domain/json.js'
import type { Simulation } from '../../../src/simulation/server.js'
import { loadTokenizer } from '../../../src/tokenizer/tokenizer.js'
import type { UpstreamAnswer } from '../../../src/upstreams/base.js'
import { vllm } from '../../../src/upstreams/vllm.js'
import { post, simulate } from '../../support/simulation.js'

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
const request = (stream: boolean, content = 'Scenario: fix-calculator'): CanonicalRequest => ({
  dialect: 'openai_chat',
  model: 'm',
  messages: [{ role: 'user', content }],
  tools: [
    { name: 'bash', description: 'Runs.', parameters: { type: 'object', properties: { command: { type: 'string' } } } },
  ],
  sampling: {},
  stream,
  losses: [],
  echo: {},
})

async function ask(simulation: Simulation, stream: boolean): Promise<UpstreamAnswer> {
  const { path, body } = vllm.buildRequest(request(stream), options)
  const text = await (await post(simulation, path, body)).text()
  if (!stream) return vllm.readAnswer(JSON.parse(text))
  const reader = vllm.streamReader()
  for (const event of text.split('\n\n')) if (event !== '') reader.push(event.slice('data: '.length))
  const { answer, complete } = reader.answer()
  if (!complete) throw new Error('the stream is not complete')
  return answer
}

t.test('a whole answer and a stream carry the same capture', async t => {
  const simulation = await simulate(t)
  const whole = await ask(simulation, false)
  const streamed = await ask(simulation, true)
  const comparable = ({ usage, toolCalls, ...rest }: UpstreamAnswer) => ({
    ...rest,
    tokens: [usage?.promptTokens, usage?.completionTokens],
    calls: toolCalls.map(call => [call.name, call.arguments]),
  })
  t.strictSame(comparable(streamed), comparable(whole))
  t.equal(whole.sampledIds?.length, whole.logprobs?.length)
  t.equal(whole.sampledIds?.length, whole.usage?.completionTokens)
  t.equal(whole.promptIds?.length, whole.usage?.promptTokens)
  t.match(whole, { finish: 'tool_calls', toolCalls: [{ name: 'bash' }] })
  t.ok(whole.logprobs?.some(logprob => logprob < 0))
})

t.test('counts and texts of the tokenizer routes are read', async t => {
  const simulation = await simulate(t)
  const count = vllm.countRequest(request(false), 'policy', true)
  const counted: JsonObject = JSON.parse(await (await post(simulation, count?.path ?? '', count?.body)).text())
  t.equal(vllm.readCount(counted), (await ask(simulation, false)).promptIds?.length)
  const detokenize = vllm.detokenizeRequest(qwen3.encode('hello 👋'), 'policy')
  const text: JsonObject = JSON.parse(await (await post(simulation, detokenize?.path ?? '', detokenize?.body)).text())
  t.equal(vllm.readDetokenized(text), 'hello 👋')
})

t.test('a prompt over the window is understood as that', async t => {
  const simulation = await simulate(t, { contextWindow: 500 })
  const { path, body } = vllm.buildRequest(request(false, 'word '.repeat(600)), options)
  const response = await post(simulation, path, body)
  const { contextLength } = vllm.readError(response.status, {}, await response.text())
  t.match(contextLength, { window: 500, promptTokens: Number })
})

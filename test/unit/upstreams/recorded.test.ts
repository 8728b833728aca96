// Answers recorded from a real vLLM 0.32 (tiny Qwen3 of random weights, parsers hermes and qwen3, one seed): the profile reads them,
// and the simulation writes the same fields in the same places.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { isObject, type JsonObject } from '../../../src/domain/json.js'
import { vllm } from '../../../src/upstreams/vllm.js'
import { projectRoot } from '../../support/paths.js'
import { chatChunks, post, simulate } from '../../support/simulation.js'

const fixture = (name: string) => readFileSync(`${projectRoot}/test/fixtures/upstreams/${name}`, 'utf8')
const whole = JSON.parse(fixture('vllm-0.32-whole.json')) as JsonObject // recorded JSON
const events = fixture('vllm-0.32-stream.txt')
  .split('\n\n')
  .filter(event => event.trim() !== '')
  .map(event => event.slice('data: '.length))
const chunks = events.slice(0, -1).map(event => JSON.parse(event) as JsonObject) // recorded JSON

const asked = {
  model: 'policy',
  messages: [{ role: 'user', content: 'hi' }],
  max_tokens: 6,
  seed: 3,
  logprobs: true,
  top_logprobs: 0,
  return_token_ids: true,
}

t.test('a whole answer and a stream of the same seed are captured alike', t => {
  const answer = vllm.readAnswer(whole)
  t.strictSame(answer.promptIds, Int32Array.of(151644, 872, 198, 6023, 151645, 198, 151644, 77091, 198))
  t.strictSame(answer.sampledIds, Int32Array.of(96861, 98641, 72921, 66147, 132206, 13588))
  t.equal(answer.logprobs?.length, 6)
  t.match(answer, { content: null, finish: 'length', usage: { promptTokens: 9, completionTokens: 6 } })
  const reader = vllm.streamReader()
  for (const event of events) reader.push(event)
  const streamed = reader.answer()
  t.equal(streamed.complete, true)
  t.strictSame(streamed.answer, answer)
  t.end()
})

t.test('the simulation writes every field that the real server writes', async t => {
  const simulation = await simulate(t)
  const answer: unknown = await (await post(simulation, '/v1/chat/completions', asked)).json()
  t.strictSame(missing(whole, answer), [])
  const simulated = await chatChunks(simulation, {
    ...asked,
    stream_interval: 1,
    stream_options: { include_usage: true },
  })
  const speaking = simulated.find(chunk => JSON.stringify(chunk).includes('"reasoning":"'))
  for (const [real, ours] of [
    [chunks[0], simulated[0]],
    [chunks[1], speaking],
    [chunks.at(-1), simulated.at(-1)],
  ]) {
    t.strictSame(missing(real, ours), [])
  }
})

/** Paths of `real` that `simulated` lacks; entries of lists are compared by the first. */
function missing(real: unknown, simulated: unknown, path = ''): readonly string[] {
  if (Array.isArray(real)) {
    if (!Array.isArray(simulated)) return [path]
    return real.length === 0 ? [] : missing(real[0], simulated[0], `${path}[0]`)
  }
  if (!isObject(real)) return []
  if (!isObject(simulated)) return [path]
  return Object.entries(real).flatMap(([key, value]) =>
    key in simulated ? missing(value, simulated[key], `${path}.${key}`) : [`${path}.${key}`],
  )
}

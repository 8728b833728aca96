// Answers drawn under a grammar: the engine masks what does not fit, so the logprobs are not the policy's. In every dialect such a
// call is served and recorded with its ids, and set aside under its own name.

import t from 'tap'
import { builders } from '../../../../src/builders/registry.js'
import type { JsonObject } from '../../../../src/domain/json.js'
import { dialectCalls, gatewayPlan, startPair } from '../../../support/pair.js'
import { scriptedEngine } from '../../../support/scripted-engine.js'

const schema = { type: 'object', properties: { title: { type: 'string' } }, required: ['title'] }
const chatTools = (strict?: boolean) => [
  { type: 'function', function: { name: 'look', parameters: schema, ...(strict !== undefined && { strict }) } },
]
const tools = [{ type: 'function', name: 'look', parameters: schema, strict: false }]
const claudeTools = [{ name: 'look', input_schema: schema }]
const geminiTools = [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: schema }] }]
const calling = (functionCallingConfig: JsonObject) => ({ tools: geminiTools, toolConfig: { functionCallingConfig } })

/** What a harness adds to its smallest call. */
const CONSTRAINED: Readonly<Record<keyof typeof dialectCalls, readonly JsonObject[]>> = {
  openai_chat: [
    { response_format: { type: 'json_object' } },
    { response_format: { type: 'json_schema', json_schema: { name: 'r', schema, strict: true } } },
    { tools: chatTools(), tool_choice: 'required' },
    { tools: chatTools(), tool_choice: { type: 'function', function: { name: 'look' } } },
    { tools: chatTools(true) },
  ],
  openai_responses: [
    { text: { format: { type: 'json_object' } } },
    { text: { format: { type: 'json_schema', name: 'r', schema, strict: true } } },
    { tools, tool_choice: 'required' },
    { tools, tool_choice: { type: 'function', name: 'look' } },
    { tools: tools.map(tool => ({ ...tool, strict: true })), tool_choice: 'auto' },
  ],
  anthropic_messages: [
    { output_config: { format: { type: 'json_schema', schema } } },
    { tools: claudeTools, tool_choice: { type: 'any' } },
    { tools: claudeTools, tool_choice: { type: 'tool', name: 'look' } },
    { tools: claudeTools.map(tool => ({ ...tool, strict: true })) },
  ],
  google_generate: [
    { generationConfig: { responseMimeType: 'application/json' } },
    { generationConfig: { responseMimeType: 'application/json', responseJsonSchema: schema } },
    calling({ mode: 'ANY' }),
    calling({ mode: 'ANY', allowedFunctionNames: ['look'] }),
  ],
}

const FREE: Readonly<Record<keyof typeof dialectCalls, readonly JsonObject[]>> = {
  openai_chat: [
    { response_format: { type: 'text' } },
    { tools: chatTools(false), tool_choice: 'auto' },
    { tools: chatTools(true), tool_choice: 'none' },
    { tools: [], tool_choice: 'required' },
  ],
  openai_responses: [{ text: { format: { type: 'text' } } }, { tools, tool_choice: 'auto' }],
  anthropic_messages: [{ tools: claudeTools, tool_choice: { type: 'auto' } }],
  google_generate: [
    { generationConfig: { responseMimeType: 'text/plain' } },
    calling({ mode: 'AUTO' }),
    calling({ mode: 'NONE' }),
  ],
}

const dialects = Object.keys(dialectCalls) as (keyof typeof dialectCalls)[]

async function reasons(
  t: Parameters<typeof startPair>[0],
  upstream: { readonly profile: string; readonly trainConstrained?: boolean },
  additions: typeof FREE,
) {
  // SGLang tells prompt ids in the choice, vLLM beside it.
  const engine = await scriptedEngine(t, [{ pieces: ['ok'], extra: { prompt_token_ids: [1, 2, 3] } }])
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url], ...upstream }]))
  const session = await pair.session('s-a')
  for (const dialect of dialects) {
    const { path, body } = dialectCalls[dialect]
    for (const added of additions[dialect]) {
      const response = await pair.post(path, { ...body, ...added }, { key: session.key })
      const text = await response.text()
      if (response.status !== 200) throw new Error(`${dialect} ${JSON.stringify(added)}: ${response.status} ${text}`)
    }
  }
  const ledger = await pair.ledger(session)
  return { ledger, reasons: ledger.calls.map(({ record }) => record.notTrainable) }
}

const countOf = (additions: typeof FREE) => Object.values(additions).flat().length

for (const profile of ['vllm', 'sglang']) {
  t.test(`${profile}: calls under a grammar are served, captured, set aside by name and counted`, async t => {
    const seen = await reasons(t, { profile }, CONSTRAINED)
    t.strictSame(seen.reasons, Array(countOf(CONSTRAINED)).fill('constrained_sampling'))
    const context = { decode: async () => '', sessionId: 's-a', taskId: 't', taskMetadata: {} }
    const { ledger } = await builders.prefix_merging.build(seen.ledger, {}, context)
    t.equal(ledger.tokens.trained, 0)
    t.strictSame(ledger.notTrainable, { constrained_sampling: ledger.tokens.sampled })
  })

  t.test(`${profile}: formats that are text and choices that are free are trained on`, async t => {
    const seen = await reasons(t, { profile }, FREE)
    t.strictSame(seen.reasons, Array(countOf(FREE)).fill(null))
  })
}

t.test('upstreams[].trainConstrained trains them', async t => {
  const seen = await reasons(t, { profile: 'vllm', trainConstrained: true }, CONSTRAINED)
  t.strictSame(seen.reasons, Array(countOf(CONSTRAINED)).fill(null))
})

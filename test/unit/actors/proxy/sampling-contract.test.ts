// The sampling contract for harnesses that name no temperature: engines then apply the model's own defaults, and raw logprobs are
// not the policy's. The gateway names everything itself; where a task forbids that, what is in force must be known, or it is said.

import t from 'tap'
import type { UpstreamPlan } from '../../../../src/config/plan.js'
import type { CompletionRecord } from '../../../../src/domain/completion.js'
import type { JsonObject } from '../../../../src/domain/json.js'
import type { SamplingSpec } from '../../../../src/domain/task.js'
import { gatewayPlan, startPair } from '../../../support/pair.js'
import { scriptedEngine } from '../../../support/scripted-engine.js'

const parameters = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] }

/** As these CLIs send them: nothing that shapes the distribution. */
const HARNESSES: Readonly<Record<string, { readonly path: string; readonly body: JsonObject }>> = {
  'Claude Code': {
    path: '/v1/messages?beta=true',
    body: {
      model: 'claude-opus-4-1',
      max_tokens: 32_000,
      system: [{ type: 'text', text: 'You are an agent.', cache_control: { type: 'ephemeral' } }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'go' }] }],
      tools: [{ name: 'Bash', description: 'Runs.', input_schema: parameters }],
      metadata: { user_id: 'u' },
      stream: true,
    },
  },
  Codex: {
    path: '/v1/responses',
    body: {
      model: 'policy',
      instructions: 'You are an agent.',
      input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'go' }] }],
      tools: [{ type: 'function', name: 'shell', description: 'Runs.', strict: false, parameters }],
      tool_choice: 'auto',
      parallel_tool_calls: false,
      store: false,
      include: ['reasoning.encrypted_content'],
      prompt_cache_key: 'k',
      stream: true,
    },
  },
  'Qwen Code': {
    path: '/v1/chat/completions',
    body: {
      model: 'policy',
      messages: [
        { role: 'system', content: 'You are an agent.' },
        { role: 'user', content: [{ type: 'text', text: 'go' }] },
      ],
      tools: [{ type: 'function', function: { name: 'run_shell_command', description: 'Runs.', parameters } }],
      stream: true,
      stream_options: { include_usage: true },
    },
  },
}

/** The harness alone decides: nothing is named in its place. */
const PASS: SamplingSpec = {
  temperature: { value: 0, mode: 'pass' },
  top_p: { value: 0, mode: 'pass' },
  top_k: { value: 0, mode: 'pass' },
  min_p: { value: 0, mode: 'pass' },
}

interface Seen {
  readonly asked: JsonObject
  readonly record: CompletionRecord
}

async function called(
  t: Parameters<typeof startPair>[0],
  harness: string,
  sampling: SamplingSpec,
  upstream: Partial<UpstreamPlan> = {},
): Promise<Seen> {
  const engine = await scriptedEngine(t, [{ pieces: ['ok'] }])
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url], ...upstream }]))
  const session = await pair.session('s-a', { sampling })
  const { path, body } = HARNESSES[harness] ?? { path: '', body: {} }
  const response = await pair.post(path, body, { key: session.key })
  await response.text()
  if (response.status !== 200) throw new Error(`${harness}: ${response.status}`)
  const { calls } = await pair.ledger(session)
  const asked = engine.generations[0]?.body
  const record = calls[0]?.record
  if (asked === undefined || record === undefined) throw new Error(`${harness}: nothing was recorded`)
  return { asked, record }
}

const SHAPING = ['temperature', 'top_p', 'top_k', 'min_p']
const named = (asked: JsonObject) => SHAPING.filter(name => name in asked)

for (const harness of Object.keys(HARNESSES)) {
  t.test(`${harness} names no sampling: the gateway names all of it, and records it`, async t => {
    const { asked, record } = await called(t, harness, {})
    t.match(asked, { temperature: 1, top_p: 1, top_k: -1, min_p: 0, repetition_penalty: 1 })
    t.match(record.sampling, { temperature: 1, topP: 1, topK: -1, minP: 0, presencePenalty: 0, frequencyPenalty: 0 })
    t.equal(record.notTrainable, null)
  })

  t.test(
    `${harness} under a task that names nothing: what the engine uses is not known, and nothing is trained`,
    async t => {
      const { asked, record } = await called(t, harness, PASS)
      t.strictSame(named(asked), [])
      t.match(record.sampling, { temperature: null, topP: null, topK: null, minP: null })
      t.equal(record.notTrainable, 'sampling_unknown')
    },
  )

  t.test(
    `${harness} under a task that names nothing: defaults that the config knows are in force, and recorded`,
    async t => {
      const defaults = { temperature: 0.6, top_p: 0.95, top_k: 20, min_p: 0 }
      const { asked, record } = await called(t, harness, PASS, { sampling: defaults })
      t.strictSame(named(asked), [])
      t.match(record.sampling, { temperature: 0.6, topP: 0.95, topK: 20, minP: 0 })
      t.equal(record.notTrainable, null)
      for (const name of SHAPING) {
        const known = Object.fromEntries(Object.entries(defaults).filter(([key]) => key !== name))
        const partly = await called(t, harness, PASS, { sampling: known })
        t.equal(partly.record.notTrainable, 'sampling_unknown', `${name} is missing`)
      }
    },
  )
}

// The gateway's duty: a harness that echoes its history the way its API makes it, with reasoning lost and arguments parsed and
// written again, still gets one trace whose joins are all exact. Against the embedded inference server with the real template.

import t, { type Test } from 'tap'
import { builders } from '../../../../src/builders/registry.js'
import type { Trajectory } from '../../../../src/domain/trajectory.js'
import { loadTokenizer } from '../../../../src/tokenizer/tokenizer.js'
import { gatewayPlan, startPair } from '../../../support/pair.js'
import { simulate } from '../../../support/simulation.js'

// Test data: the shapes are asserted by what comes of them.
interface Loose {
  readonly [key: string]: Loose & string & readonly Loose[]
}
type Item = Record<string, unknown>

interface MiniHarness {
  readonly path: string
  /** Body of the next request. */
  request(history: readonly Item[]): Item
  readonly opening: Item
  /** The answer as history items, the way this API's clients send it back; and its calls. */
  echo(answer: Loose): { readonly items: readonly Item[]; readonly calls: readonly { id: string; name: string }[] }
  result(call: { id: string; name: string }, text: string): Item
}

const instruction = 'Scenario: fix-calculator\nThe tests fail. Fix the code.'
const parameters = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] }
/** Parsed and written again, as clients do that keep arguments as objects. */
const rewritten = (text: string) => JSON.stringify(JSON.parse(text))

const harnesses: Record<string, MiniHarness> = {
  openai_chat: {
    path: '/v1/chat/completions',
    opening: { role: 'user', content: instruction },
    request: messages => ({
      model: 'm',
      messages,
      tools: [{ type: 'function', function: { name: 'bash', description: 'Runs.', parameters } }],
    }),
    echo(answer) {
      const message = answer['choices']?.[0]?.['message'] as Loose
      const calls = (message['tool_calls'] ?? []) as readonly Loose[]
      const items = [
        {
          role: 'assistant',
          content: ((message['content'] as string | null) ?? '').trim(),
          ...(calls.length > 0 && {
            tool_calls: calls.map(call => ({
              id: call['id'],
              type: 'function',
              function: {
                name: call['function']?.['name'],
                arguments: rewritten(String(call['function']?.['arguments'])),
              },
            })),
          }),
        },
      ]
      return { items, calls: calls.map(call => ({ id: String(call['id']), name: String(call['function']?.['name']) })) }
    },
    result: ({ id }, content) => ({ role: 'tool', tool_call_id: id, content }),
  },
  anthropic_messages: {
    path: '/v1/messages',
    opening: { role: 'user', content: instruction },
    request: messages => ({
      model: 'm',
      max_tokens: 4000,
      messages,
      tools: [{ name: 'bash', description: 'Runs.', input_schema: parameters }],
    }),
    echo(answer) {
      const blocks = answer['content'] as readonly Loose[]
      const calls = blocks.filter(block => (block['type'] as string) === 'tool_use')
      return {
        items: [{ role: 'assistant', content: blocks.filter(block => (block['type'] as string) !== 'thinking') }],
        calls: calls.map(call => ({ id: String(call['id']), name: String(call['name']) })),
      }
    },
    result: ({ id }, content) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content }] }),
  },
  openai_responses: {
    path: '/v1/responses',
    opening: { role: 'user', content: [{ type: 'input_text', text: instruction }] },
    request: input => ({
      model: 'm',
      input,
      tools: [{ type: 'function', name: 'bash', description: 'Runs.', parameters }],
    }),
    echo(answer) {
      const items = (answer['output'] as readonly Loose[]).filter(item => (item['type'] as string) !== 'reasoning')
      const calls = items.filter(item => (item['type'] as string) === 'function_call')
      return { items, calls: calls.map(call => ({ id: String(call['call_id']), name: String(call['name']) })) }
    },
    result: ({ id }, output) => ({ type: 'function_call_output', call_id: id, output }),
  },
  google_generate: {
    path: '/v1beta/models/m:generateContent',
    opening: { role: 'user', parts: [{ text: instruction }] },
    request: contents => ({
      contents,
      tools: [{ functionDeclarations: [{ name: 'bash', description: 'Runs.', parametersJsonSchema: parameters }] }],
    }),
    echo(answer) {
      const content = answer['candidates']?.[0]?.['content'] as Loose
      const parts = (content['parts'] as readonly Loose[]).filter(part => !part['thought'])
      const calls = parts.filter(part => part['functionCall'])
      return {
        // Ids are dropped, as some clients do.
        items: [
          {
            role: 'model',
            parts: parts.map(part =>
              part['functionCall']
                ? { functionCall: { name: part['functionCall']['name'], args: part['functionCall']['args'] } }
                : part,
            ),
          },
        ],
        calls: calls.map(part => ({ id: '', name: String(part['functionCall']?.['name']) })),
      }
    },
    result: ({ name }, output) => ({
      role: 'user',
      parts: [{ functionResponse: { name, response: { output } } }],
    }),
  },
}

const qwen3 = loadTokenizer('qwen3')

interface Run {
  readonly turns: number
  readonly trajectory: Trajectory
}

/** A whole session of `harness` against the simulation on one wire, and what is trained of it. */
async function run(t: Test, harness: MiniHarness, wire: 'vllm' | 'sglang'): Promise<Run> {
  const simulation = await simulate(t, { wire })
  const pair = await startPair(
    t,
    gatewayPlan([{ urls: [simulation.url], profile: wire, modelServed: 'policy', contextWindow: 32_768 }]),
  )
  const session = await pair.session('s-a', { samplingSeed: 3 })
  let history: readonly Item[] = [harness.opening]
  let turns = 0
  for (;;) {
    const response = await pair.post(harness.path, harness.request(history), { key: session.key })
    const answer = (await response.json()) as Loose
    if (response.status !== 200) throw new Error(JSON.stringify(answer))
    turns += 1
    const { items, calls } = harness.echo(answer)
    if (calls.length === 0 || turns === 12) break
    history = [...history, ...items, ...calls.map(call => harness.result(call, `output of step ${turns}\n`))]
  }
  const ledger = await pair.ledger(session)
  t.equal(ledger.calls.length, turns)
  for (const { record } of ledger.calls) t.equal(record.notTrainable, null)
  const trajectory = await builders.prefix_merging.build(
    ledger,
    {},
    { decode: async ids => qwen3.decode(ids), sessionId: 's-a', taskId: 't', taskMetadata: {} },
  )
  return { turns, trajectory }
}

for (const [dialect, harness] of Object.entries(harnesses)) {
  t.test(`${dialect}: a whole agent run is one trace with exact joins, the same on both wires`, async t => {
    const { turns, trajectory } = await run(t, harness, 'vllm')
    t.ok(turns >= 3, `${turns} turns`)
    t.match(trajectory, { status: 'COMPLETED', traces: { length: 1 }, ledger: { joins: { exact: turns - 1 } } })
    const { sampled, trained } = trajectory.ledger.tokens
    t.equal(trained, sampled, 'every sampled token is trained')
    const other = await run(t, harness, 'sglang')
    const tokens = ({ traces }: Trajectory) =>
      traces.map(({ promptIds, responseIds, lossMask, responseLogprobs }) => ({
        promptIds,
        responseIds,
        lossMask,
        responseLogprobs,
      }))
    t.strictSame(tokens(other.trajectory), tokens(trajectory))
    t.strictSame(other.trajectory.ledger.joins, trajectory.ledger.joins)
  })
}

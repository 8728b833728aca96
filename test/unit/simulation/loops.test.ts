// The long tool loop makes thirty turns whose ids the template renders back exactly, whatever the commands print; the delegating
// script finds each harness's sub-agent tool and gives it what its schema wants.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { JsonObject } from '../../../src/domain/json.js'
import { LOOP_TURNS } from '../../../src/simulation/policy/scripts/long-loop.js'
import { loadTokenizer } from '../../../src/tokenizer/tokenizer.js'
import { commandOf, HARNESS_TOOLS, runCommand } from '../../support/harness-tools.js'
import { chat, simulate } from '../../support/simulation.js'

const qwen3 = loadTokenizer('qwen3')

for (const harness of ['pi', 'claude_code']) {
  t.test(`long-loop makes ${LOOP_TURNS} turns of calls with the tools of ${harness}, every join exact`, async t => {
    const folder = await mkdtemp(join(tmpdir(), 'long-loop-'))
    t.teardown(() => rm(folder, { recursive: true, force: true }))
    const simulation = await simulate(t, { contextWindow: 131_072 })
    const tools = HARNESS_TOOLS[harness] ?? []
    const messages: JsonObject[] = [{ role: 'user', content: 'Go.\n\nScenario: long-loop' }]
    const outputs = new Set<string>()
    let before: readonly number[] = []
    let calls = 0
    for (let turn = 0; turn <= LOOP_TURNS; turn++) {
      const { choice, prompt_token_ids: prompt } = await chat(simulation, { messages, tools, seed: turn })
      t.ok(
        before.every((id, index) => prompt?.[index] === id),
        `join of turn ${turn}`,
      )
      const ids = choice.token_ids ?? []
      t.strictSame([...qwen3.encode(qwen3.decode(ids))], ids, `ids of turn ${turn} are those of its text`)
      before = [...(prompt ?? []), ...ids]
      const { content, reasoning, tool_calls = [] } = choice.message
      t.equal(tool_calls.length > 0, turn < LOOP_TURNS)
      messages.push({ role: 'assistant', content, reasoning, tool_calls: tool_calls.map(call => ({ ...call })) })
      for (const call of tool_calls) {
        calls += 1
        const output = await runCommand(commandOf(call.function.arguments), folder)
        outputs.add(output)
        messages.push({ role: 'tool', tool_call_id: call.id, content: output })
      }
    }
    t.ok(calls > LOOP_TURNS, 'some turns call twice')
    t.ok(outputs.size >= calls - 3, 'outputs differ, but for the empty ones')
    t.ok(outputs.has('') || [...outputs].some(output => output.trim() === ''), 'one is empty')
    t.ok(
      [...outputs].some(output => output.length > 2_000),
      'one is long',
    )
    t.ok([...outputs].some(output => output.includes('日本語')))
  })
}

t.test('delegate calls the sub-agent tool under whatever name and schema it is offered', async t => {
  const simulation = await simulate(t)
  const text = { type: 'string' }
  const offered: Readonly<Record<string, readonly string[]>> = {
    Agent: ['description', 'prompt', 'subagent_type'],
    task: ['description', 'prompt', 'subagent_type'],
    invoke_agent: ['agent_name', 'prompt'],
    multi_agent_v1__spawn_agent: ['message'],
  }
  for (const [name, required] of Object.entries(offered)) {
    const properties = Object.fromEntries(required.map(key => [key, text]))
    const tool = { type: 'function', function: { name, parameters: { type: 'object', properties, required } } }
    const messages = [{ role: 'user', content: 'Go.\n\nScenario: delegate' }]
    const close = {
      type: 'function',
      function: { name: 'multi_agent_v1__close_agent', parameters: { type: 'object' } },
    }
    const tools = [...(HARNESS_TOOLS['pi'] ?? []), close, tool]
    const { choice } = await chat(simulation, { messages, tools, seed: 1 })
    const call = choice.message.tool_calls?.[0]?.function
    t.equal(call?.name, name)
    t.strictSame(Object.keys(JSON.parse(call?.arguments ?? '{}')).sort(), [...required].sort())
  }
})

// The policy drives each harness's own shell tool through the bundled task, and what it samples is what the template renders back.

import t, { type Test } from 'tap'
import type { JsonObject } from '../../../src/domain/json.js'
import type { Simulation } from '../../../src/simulation/server.js'
import { redumpJson } from '../../../src/tokenizer/python-json.js'
import { loadTokenizer } from '../../../src/tokenizer/tokenizer.js'
import { commandOf, HARNESS_TOOLS, runCommand } from '../../support/harness-tools.js'
import { calculatorRepository, chat, simulate } from '../../support/simulation.js'

const TASK = 'The median is wrong. Fix it.\n\nScenario: fix-calculator'
const qwen3 = loadTokenizer('qwen3')

interface Run {
  readonly solved: boolean
  readonly calls: number
  readonly sampled: readonly (readonly number[])[]
  /** How many prompts did not begin with the prompt and the answer before them. */
  readonly broken: number
  readonly said: string | null
}

/** One session: asks, runs what is called, until an answer calls nothing. */
async function session(t: Test, simulation: Simulation, tools: readonly JsonObject[], seed: number): Promise<Run> {
  const folder = await calculatorRepository(t)
  const messages: JsonObject[] = [{ role: 'user', content: TASK }]
  const sampled: (readonly number[])[] = []
  let before: readonly number[] = []
  let broken = 0
  for (let step = 0; step < 12; step++) {
    const { choice, prompt_token_ids: prompt } = await chat(simulation, { messages, tools, seed: seed * 1000 + step })
    if (!startsWith(prompt ?? [], before)) broken += 1
    before = [...(prompt ?? []), ...(choice.token_ids ?? [])]
    sampled.push(choice.token_ids ?? [])
    const { content, reasoning, tool_calls = [] } = choice.message
    if (choice.finish_reason === 'stop') {
      const solved = !(await runCommand('node run-tests.js', folder)).includes('FAILED')
      return { solved, calls: step + 1, sampled, broken, said: content }
    }
    messages.push({ role: 'assistant', content, reasoning, tool_calls: tool_calls.map(call => ({ ...call })) })
    for (const call of tool_calls) {
      const output = await runCommand(commandOf(call.function.arguments), folder)
      messages.push({ role: 'tool', tool_call_id: call.id, content: output })
    }
  }
  throw new Error('the policy did not finish within 12 calls')
}

const startsWith = (ids: readonly number[], beginning: readonly number[]): boolean =>
  beginning.every((id, index) => ids[index] === id)

for (const [harness, tools] of Object.entries(HARNESS_TOOLS)) {
  t.test(`solves the bundled task through the tools of ${harness}, every join exact`, async t => {
    const simulation = await simulate(t, { solveProbability: 1 })
    const run = await session(t, simulation, tools, 3)
    t.equal(run.solved, true)
    t.ok(run.calls >= 4, `${run.calls} calls`)
    t.equal(run.broken, 0)
    t.match(run.said, /pass|green/)
  })
}

t.test('samples of one task differ in reward, and the policy says so', async t => {
  const simulation = await simulate(t, { solveProbability: 0.5 })
  const runs = await Promise.all(
    [1, 2, 3, 4, 5, 6].map(seed => session(t, simulation, HARNESS_TOOLS['pi'] ?? [], seed)),
  )
  t.ok(runs.some(run => run.solved) && runs.some(run => !run.solved))
  for (const run of runs) t.match(run.said, run.solved ? /pass|green/ : /fail/)
  t.equal(
    runs.reduce((sum, run) => sum + run.broken, 0),
    0,
  )
})

t.test('the same seed gives the same ids, whatever the folder is called', async t => {
  const tools = HARNESS_TOOLS['qwen_code'] ?? []
  const [first, second] = [await simulate(t), await simulate(t)]
  const run = await session(t, first, tools, 5)
  t.strictSame((await session(t, second, tools, 5)).sampled, run.sampled)
  t.notSame((await session(t, second, tools, 6)).sampled, run.sampled)
})

t.test('without a seed answers differ', async t => {
  const simulation = await simulate(t)
  const ask = () =>
    chat(simulation, { messages: [{ role: 'user', content: 'Look around.' }], tools: HARNESS_TOOLS['pi'] ?? [] })
  const answers = await Promise.all([ask(), ask(), ask()])
  t.equal(new Set(answers.map(answer => JSON.stringify(answer.choice.token_ids))).size, 3)
})

t.test('an answer is sampled in the ids that its text encodes to, over many seeds and steps', async t => {
  const simulation = await simulate(t)
  const call = (command: string, result: string, id: string): JsonObject[] => [
    {
      role: 'assistant',
      content: null,
      reasoning: 'So.',
      tool_calls: [{ id, type: 'function', function: { name: 'bash', arguments: JSON.stringify({ command }) } }],
    },
    { role: 'tool', tool_call_id: id, content: result },
  ]
  const read = call('cat src/median.js test/median.test.js', 'assert\nexport function median', 'a')
  const wrote = [...read, ...call('cat > src/median.js', '', 'b')]
  const histories: Record<string, readonly JsonObject[]> = {
    start: [],
    read,
    wrote,
    passed: [...wrote, ...call('node run-tests.js', 'PASSED a::b', 'c')],
    failed: [...wrote, ...call('node run-tests.js', 'FAILED a::b', 'c')],
  }
  for (const [name, history] of Object.entries(histories)) {
    for (let seed = 0; seed < 60; seed++) {
      const tools = Object.values(HARNESS_TOOLS)[seed % 8] ?? []
      const messages = [{ role: 'user', content: TASK }, ...history]
      const { choice, prompt_token_ids: prompt } = await chat(simulation, { messages, tools, seed })
      const { content, reasoning, tool_calls } = choice.message
      const again = { role: 'assistant', content, reasoning, ...(tool_calls && { tool_calls }) }
      const rendered = qwen3.renderChat({
        messages: [...messages, again],
        tools: [...tools],
        addGenerationPrompt: false,
      })
      const wanted = [...(prompt ?? []), ...(choice.token_ids ?? []), 198]
      if (!t.strictSame([...qwen3.encode(rendered)], wanted, `${name}, seed ${seed}`)) return
      for (const { function: called } of tool_calls ?? []) t.equal(redumpJson(called.arguments), called.arguments)
    }
  }
})

// The simulation reports the probabilities it samples from: 20,000 positions drawn over HTTP. And a server that lies is caught by
// the same test.

import t, { type Test } from 'tap'
import type { SimulationPlan } from '../../../src/config/plan.js'
import type { JsonObject } from '../../../src/domain/json.js'
import { type Sampler, sampler } from '../../../src/simulation/distribution.js'
import { seededRandom } from '../../../src/simulation/random.js'
import { HARNESS_TOOLS } from '../../support/harness-tools.js'
import { type Honesty, honesty, upperGamma } from '../../support/honesty.js'
import { chat, type LogprobEntry, simulate } from '../../support/simulation.js'

interface Setup {
  readonly plan?: Partial<SimulationPlan>
  readonly sampler?: Sampler
  readonly request?: JsonObject
  readonly positions: number
}

/** The server's limit; no position of these scripts has as many candidates. */
const MOST = 100

const call = (command: string, result: string): readonly JsonObject[] => [
  {
    role: 'assistant',
    content: '',
    tool_calls: [{ id: command, type: 'function', function: { name: 'bash', arguments: JSON.stringify({ command }) } }],
  },
  { role: 'tool', tool_call_id: command, content: result },
]
const START: readonly JsonObject[] = [{ role: 'user', content: 'Fix it.\n\nScenario: fix-calculator' }]
const READ = [...START, ...call('cat src/median.js test/median.test.js', 'assert\nexport function median')]
const WROTE = [...READ, ...call('cat > src/median.js', 'ok')]
const RAN = [...WROTE, ...call('node run-tests.js', 'PASSED a::b')]
/** One session's prompts in turn: each step as often as the others. */
const HISTORIES = [START, READ, WROTE, RAN]

async function examine(t: Test, { plan, sampler, request, positions }: Setup): Promise<Honesty> {
  const simulation = await simulate(t, plan, sampler ? { sampler } : {})
  const entries: LogprobEntry[] = []
  for (let seed = 0; entries.length < positions; seed++) {
    const messages = HISTORIES[seed % HISTORIES.length] ?? START
    const { choice } = await chat(simulation, {
      messages,
      tools: HARNESS_TOOLS['pi'] ?? [],
      seed,
      top_logprobs: MOST,
      ...request,
    })
    const answer = choice.logprobs?.content ?? []
    if (answer.every(({ logprob }) => logprob === 0)) t.fail(`seed ${seed}: an answer without any uncertainty`)
    const widest = Math.max(...answer.map(entry => entry.top_logprobs.length))
    if (widest >= MOST) t.fail(`seed ${seed}: the report may be cut at ${MOST} candidates`)
    entries.push(...answer)
  }
  const found = honesty(entries.slice(0, positions), seededRandom('ranks'))
  t.comment(JSON.stringify(found))
  return found
}

const trueOf = (t: Test, { contexts, ranks, inconsistent }: Honesty): void => {
  t.ok(contexts > 1e-3, `contexts: p = ${contexts}`)
  t.ok(ranks > 1e-3, `ranks: p = ${ranks}`)
  t.equal(inconsistent, 0)
}

t.test('20,000 positions are distributed as reported, at least 30 % of them uncertain', async t => {
  const found = await examine(t, { positions: 20_000 })
  t.equal(found.positions, 20_000)
  trueOf(t, found)
  t.ok(found.uncertain >= 0.3, `${found.uncertain} carry more than 0.1 bit`)
})

t.test('with drift forms and another chance to solve the report is as true', async t => {
  trueOf(t, await examine(t, { positions: 6_000, plan: { drift: ['bpe', 'two_line_feeds'], solveProbability: 0.9 } }))
})

t.test('processed logprobs are true under temperature, top_p, top_k and min_p', async t => {
  const request = { temperature: 0.7, top_p: 0.9, top_k: 6, min_p: 0.02, presence_penalty: 0.1 }
  trueOf(t, await examine(t, { positions: 6_000, plan: { logprobsMode: 'processed_logprobs' }, request }))
})

t.test('a planted lie is caught: drawn at temperature 0.7, reported at 1', async t => {
  const honest = sampler('raw_logprobs')
  const liar: Sampler = (raw, settings, counts, random) =>
    honest(raw, { ...settings, temperature: 0.7 }, counts, random)
  const found = await examine(t, { positions: 20_000, sampler: liar })
  t.equal(found.inconsistent, 0, 'each entry agrees with itself, only the draws do not')
  t.ok(found.contexts < 1e-6, `contexts: p = ${found.contexts}`)
  t.ok(found.ranks < 1e-9, `ranks: p = ${found.ranks}`)
})

t.test('a small lie is caught too: one draw in ten takes the likeliest', async t => {
  const honest = sampler('raw_logprobs')
  const liar: Sampler = (raw, settings, counts, random) =>
    honest(raw, random() < 0.1 ? { ...settings, temperature: 0 } : settings, counts, random)
  const found = await examine(t, { positions: 20_000, sampler: liar })
  t.ok(found.ranks < 1e-6, JSON.stringify(found))
})

t.test('the tail of chi-square has its tabled values', async t => {
  const tail = (freedom: number, statistic: number) => upperGamma(freedom / 2, statistic / 2)
  for (const [freedom, statistic, p] of [
    [1, 3.841, 0.05],
    [10, 18.307, 0.05],
    [19, 36.191, 0.01],
    [100, 124.342, 0.05],
    [1000, 1074.679, 0.05],
    [2, 0.1, 0.9512],
  ] as const) {
    t.ok(Math.abs(tail(freedom, statistic) - p) < 2e-4, `${freedom}: ${tail(freedom, statistic)}`)
  }
})

// A simulation on a free port for one test, a client for its wire, and the bundled task's repository in a folder of its own.

import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SimulationPlan } from '../../src/config/plan.js'
import type { Clock } from '../../src/domain/clock.js'
import type { JsonObject } from '../../src/domain/json.js'
import type { Sampler } from '../../src/simulation/distribution.js'
import { type Simulation, startSimulation } from '../../src/simulation/server.js'
import { projectRoot } from './paths.js'

export const simulationPlan = (changes: Partial<SimulationPlan> = {}): SimulationPlan => ({
  port: 0,
  modelName: 'policy',
  contextWindow: 32_768,
  seed: 1,
  prefillMsPer1k: 0,
  decodeMsPerToken: 0,
  solveProbability: 0.5,
  drift: [],
  ...changes,
})

/** Never waits: a test that waits asks for time with a clock of its own. */
const timeless: Clock = { now: () => 1_700_000_000_000, sleep: async () => {} }

interface Teardown {
  teardown(action: () => unknown): void
}

export async function simulate(
  t: Teardown,
  changes: Partial<SimulationPlan> = {},
  options: { readonly clock?: Clock; readonly sampler?: Sampler } = {},
): Promise<Simulation> {
  const { clock = timeless, sampler } = options
  const simulation = await startSimulation({ plan: simulationPlan(changes), clock, ...(sampler && { sampler }) })
  t.teardown(() => simulation.close())
  return simulation
}

export interface ChatChoice {
  readonly message: {
    readonly content: string | null
    readonly reasoning: string | null
    readonly tool_calls?: readonly {
      readonly id: string
      readonly type: string
      readonly function: { readonly name: string; readonly arguments: string }
    }[]
  }
  readonly logprobs: { readonly content: readonly LogprobEntry[] } | null
  readonly finish_reason: string
  readonly stop_reason: string | number | null
  readonly token_ids: readonly number[] | null
}
export interface LogprobEntry {
  readonly token: string
  readonly logprob: number
  readonly bytes: readonly number[]
  readonly top_logprobs: readonly {
    readonly token: string
    readonly logprob: number
    readonly bytes: readonly number[]
  }[]
}
export interface ChatBody {
  readonly choices: readonly ChatChoice[]
  readonly prompt_token_ids: readonly number[] | null
  readonly usage: {
    readonly prompt_tokens: number
    readonly completion_tokens: number
    readonly total_tokens: number
    readonly prompt_tokens_details: { readonly cached_tokens: number }
  }
}

export const post = (simulation: Simulation, path: string, body: unknown): Promise<Response> =>
  fetch(simulation.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

/** A whole answer with all capture fields; fails on anything but 200. */
export async function chat(
  simulation: Simulation,
  body: JsonObject,
): Promise<ChatBody & { readonly choice: ChatChoice }> {
  const capture = { model: 'policy', return_token_ids: true, logprobs: true, top_logprobs: 0 }
  const response = await post(simulation, '/v1/chat/completions', { ...capture, ...body })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`)
  const answer: ChatBody = JSON.parse(text)
  const choice = answer.choices[0]
  if (!choice) throw new Error('wanted one choice')
  return { ...answer, choice }
}

/** The `data:` objects of a stream, `[DONE]` left out; throws when it is missing. */
export async function chatChunks(
  simulation: Simulation,
  body: JsonObject,
): Promise<readonly Record<string, unknown>[]> {
  const response = await post(simulation, '/v1/chat/completions', { model: 'policy', stream: true, ...body })
  const events = (await response.text()).split('\n\n').filter(event => event !== '')
  if (events.pop() !== 'data: [DONE]') throw new Error('the stream did not end in [DONE]')
  return events.map(event => JSON.parse(event.slice('data: '.length)))
}

/** A copy of the bundled task's repository. */
export async function calculatorRepository(t: Teardown): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'calculator-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await cp(`${projectRoot}/docs/examples/fix-calculator/repo`, folder, { recursive: true })
  return folder
}

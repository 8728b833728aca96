// Random captured sessions for property tests: a small world of agents that replay their history well or badly, retry,
// branch, compact, ask side questions, lose ids and leave in the middle. Everything is decided by the seed.

import type { CapturedCall, Delivered } from '../../src/domain/completion.js'
import { recordOf } from './ledger-fixtures.js'

export const END = 99
/** Letters 10 to 29; 100 + n says what letters 10 + 2n and 11 + 2n say. */
const FIRST_LETTER = 10
const LETTERS = 20
const FIRST_PAIR = 100

/** Text of ids in this world: pairs have the text of their two letters; everything else its own. */
export const worldText = (ids: Iterable<number>): string => {
  let text = ''
  for (const id of ids) {
    if (id >= FIRST_PAIR && id < FIRST_PAIR + LETTERS / 2) {
      const letter = FIRST_LETTER + 2 * (id - FIRST_PAIR)
      text += String.fromCharCode(87 + letter, 88 + letter)
    } else if (id >= FIRST_LETTER && id < FIRST_LETTER + LETTERS) text += String.fromCharCode(87 + id)
    else text += `<${id}>`
  }
  return text
}

export interface WorldOptions {
  /** Probability of each trouble, for each turn. */
  readonly trouble: number
  readonly turns: number
}

export interface Random {
  /** In [0, 1). */
  next(): number
  below(limit: number): number
  chance(probability: number): boolean
}

/** mulberry32. */
export function seeded(seed: number): Random {
  let state = seed | 0
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
  return { next, below: limit => Math.floor(next() * limit), chance: probability => next() < probability }
}

interface Agent {
  readonly id: string | null
  history: number[]
}

/** A session's calls, in order of start. */
export function generateCalls(seed: number, { trouble, turns }: WorldOptions): CapturedCall[] {
  const random = seeded(seed)
  const generation = random.chance(0.5) ? [3, 4] : random.chance(0.5) ? [3, 4, 70] : []
  const calls: CapturedCall[] = []
  const agents: Agent[] = [{ id: null, history: [1, 2, ...some(random, 1, 3, 200)] }]
  let clock = 1000
  const call = (
    agent: Agent,
    sampled: number[],
    over: Parameters<typeof recordOf>[0]['over'] = {},
    delivered: Delivered = 'yes',
  ) => {
    clock += random.below(3) // equal start times happen
    const number = calls.length
    const prompt = [...agent.history, ...generation]
    const length = sampled.at(-1) !== END
    const record = recordOf({
      id: `msg_${String(seed & 0xffff).padStart(5, '0')}_${number}`,
      prompt,
      sampled,
      startedAtMs: clock,
      sequence: number,
      logprobs: sampled.map(() => -random.next() * 3),
      over: {
        finish: length ? 'length' : 'stop',
        generationPromptLength: random.chance(0.9) ? generation.length : 0,
        agentId: agent.id,
        ...over,
      },
    })
    calls.push({ record, delivered })
  }
  for (let turn = 0; turn < turns; turn++) {
    const agent = agents[random.below(agents.length)] ?? agents[0]
    if (!agent) break
    if (random.chance(trouble / 3)) agents.push({ id: `sub-${agents.length}`, history: startOf(random, agent) })
    if (random.chance(trouble / 3))
      agent.history = [...agent.history.slice(0, 2 + random.below(2)), ...some(random, 1, 4, 300)]
    const answer = sample(random)
    if (random.chance(trouble / 2)) {
      const other = random.chance(0.2) ? answer : sample(random)
      const mark = random.chance(0.5) ? 1 : 0
      const gone: Delivered = random.chance(0.5) ? 'no' : random.chance(0.5) ? 'unknown' : 'yes'
      const first = random.chance(0.5)
      call(agent, first ? answer : other, {}, first ? 'yes' : gone)
      call(agent, first ? other : answer, { retryCount: mark }, first ? gone : 'yes')
    } else spoil(random, trouble, over => call(agent, answer, over.over, over.delivered))
    if (random.chance(trouble / 3)) {
      const asking = {
        id: agent.id,
        history: [...agent.history, ...(random.chance(0.5) ? answer : []), 60 + random.below(5)],
      }
      call(asking, sample(random), { sideRule: 'title' })
    }
    agent.history = [
      ...agent.history,
      ...generation,
      ...replay(random, trouble, answer, generation),
      ...some(random, 1, 4, 200),
    ]
    if (generation.length > 0 && random.chance(trouble / 4))
      agent.history = [...agent.history.slice(0, 3), ...agent.history.slice(3).filter(id => id !== 70)]
  }
  return calls
}

const some = (random: Random, least: number, most: number, from: number): number[] =>
  Array.from({ length: least + random.below(most - least + 1) }, () => from + random.below(6))

function sample(random: Random): number[] {
  const letters = Array.from({ length: random.below(6) }, () =>
    random.chance(0.3) ? FIRST_PAIR + random.below(LETTERS / 2) : FIRST_LETTER + random.below(LETTERS),
  )
  const thinking = random.chance(0.3) ? [71, ...letters.slice(0, 2), 72] : []
  const body = [...thinking, ...letters, ...(random.chance(0.05) ? [END, FIRST_LETTER] : [])]
  return random.chance(0.85) || body.length === 0 ? [...body, END] : body
}

const startOf = (random: Random, agent: Agent): number[] =>
  random.chance(0.5) ? [5, 6, ...some(random, 1, 3, 200)] : [...agent.history, ...some(random, 1, 2, 250)]

type Spoiled = { readonly over: Parameters<typeof recordOf>[0]['over']; readonly delivered: Delivered }

/** One call, perhaps broken in one way. */
function spoil(random: Random, trouble: number, make: (spoiled: Spoiled) => void): void {
  if (!random.chance(trouble / 2)) {
    make({ over: {}, delivered: random.chance(0.1) ? 'unknown' : 'yes' })
    return
  }
  const ways: readonly Spoiled[] = [
    { over: { promptIds: null }, delivered: 'yes' },
    { over: { sampledIds: null, logprobs: null, completionTokens: 1 + random.below(5) }, delivered: 'yes' },
    { over: { logprobs: null }, delivered: 'yes' },
    { over: { notTrainable: 'sampling not known' }, delivered: 'yes' },
    { over: { finish: 'abort' }, delivered: 'no' },
    { over: {}, delivered: 'no' },
    { over: { sampledIds: new Int32Array(0), logprobs: new Float32Array(0), completionTokens: 0 }, delivered: 'yes' },
  ]
  make(ways[random.below(ways.length)] ?? { over: {}, delivered: 'yes' })
}

/** How the answer stands in the next prompt. */
function replay(random: Random, trouble: number, answer: readonly number[], generation: readonly number[]): number[] {
  const closed = answer.at(-1) === END ? [...answer] : [...answer, END]
  if (!random.chance(trouble)) return closed
  switch (random.below(4)) {
    case 0:
      return resplit(random, closed)
    case 1:
      return closed.includes(72) ? closed.slice(closed.indexOf(72) + 1) : resplit(random, closed)
    case 2:
      return [FIRST_LETTER + random.below(LETTERS), ...closed]
    default:
      return generation.includes(70) ? closed : some(random, 1, 3, 300)
  }
}

/** Other ids of the very same text. */
function resplit(random: Random, ids: readonly number[]): number[] {
  const out: number[] = []
  for (let i = 0; i < ids.length; i++) {
    const id = ids[i] ?? END
    const next = ids[i + 1]
    if (id >= FIRST_PAIR && id < FIRST_PAIR + LETTERS / 2 && random.chance(0.7)) {
      const letter = FIRST_LETTER + 2 * (id - FIRST_PAIR)
      out.push(letter, letter + 1)
    } else if (id >= FIRST_LETTER && id < FIRST_LETTER + LETTERS && id % 2 === 0 && next === id + 1) {
      out.push(FIRST_PAIR + (id - FIRST_LETTER) / 2)
      i++
    } else out.push(id)
  }
  return out
}

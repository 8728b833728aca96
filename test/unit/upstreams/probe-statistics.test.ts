// The probe's tests on draws as a language model makes them: a long tail of which a server lists twenty tokens, the drawn one first.

import t from 'tap'
import type { JsonObject } from '../../../src/domain/json.js'
import {
  applySettings,
  type Distribution,
  distribution,
  drawFrom,
  type SamplingSettings,
} from '../../../src/simulation/distribution.js'
import { seededRandom } from '../../../src/simulation/random.js'
import { type Draw, drawsOf, uncertaintyBits } from '../../../src/upstreams/probe/draws.js'
import { gapRatio, judgeDraws, poissonAtMost } from '../../../src/upstreams/probe/statistics.js'

const NEUTRAL: SamplingSettings = {
  temperature: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  presencePenalty: 0,
  frequencyPenalty: 0,
}
const VOCABULARY = 400
const LISTED = 20
const PROMPTS = 700

const models = new Map<string, Distribution>()

/** Position `number` of a made-up model: now sure, now not; the same each time. `flat`: hardly any difference between tokens. */
function model(number: number, flat = false): Distribution {
  const key = `${number} ${flat}`
  const known = models.get(key) ?? made(number, flat)
  models.set(key, known)
  return known
}

function made(number: number, flat: boolean): Distribution {
  const random = seededRandom('position', number)
  const slope = flat ? 0.02 : 0.6 + 2.2 * random()
  const weights = Array.from({ length: VOCABULARY }, (_, id): [number, number] => [
    id,
    Math.exp(-slope * Math.log(id + 1) * (flat ? 1 : 1.2) - 0.3 * random()),
  ])
  return distribution(new Map(weights))
}

/** What vLLM reports of a draw by `inForce`: raw logprobs, the drawn token first, then the likeliest, twenty in all. */
function drawn(inForce: Partial<SamplingSettings>, seed: string, flat = false, report = NEUTRAL): readonly Draw[] {
  const random = seededRandom('draw', seed.length, ...[...seed].map(letter => letter.charCodeAt(0)))
  return Array.from({ length: PROMPTS }, (_, number) => {
    const raw = model(number, flat)
    const { id } = drawFrom(applySettings(raw, { ...NEUTRAL, ...inForce }, new Map()), random)
    const reported = applySettings(raw, report, new Map())
    const entry = (token: number): JsonObject => ({
      token: `token_id:${token}`,
      logprob: Math.log(reported.find(candidate => candidate.id === token)?.probability ?? 0),
    })
    const top = reported.slice(0, LISTED).map(candidate => candidate.id)
    const content = [{ ...entry(id), top_logprobs: [...new Set([id, ...top])].slice(0, LISTED).map(entry) }]
    return drawsOf(content).map(draw => ({ ...draw, context: String(number) }))
  }).flat()
}

t.test('an honest model is not accused, in twenty probes', t => {
  for (let turn = 0; turn < 20; turn += 1) {
    const judged = judgeDraws(drawn({}, `honest ${turn}`), 1)
    t.match(judged, { cut: null, temperature: null, isSkewed: false })
  }
  t.match(judgeDraws(drawn({}, 'honest').slice(0, 300), 1).wouldShow, [/top_k/, /top_p/, /min_p/, /temperature/])
  const hot = judgeDraws(drawn({ temperature: 2 }, 'hot'), 2)
  t.match(hot, { cut: null, temperature: null }, 'nor at temperature 2')
  t.end()
})

for (const [inForce, cut] of [
  [{ topK: 20 }, /top_k 20/],
  [{ topK: 5 }, /top_k 5/],
  [{ topP: 0.95 }, /top_p 0\.95/],
  [{ topP: 0.8 }, /top_p 0\.8/],
  [{ topK: 1 }, /greedy/],
  [{ temperature: 0 }, /greedy/],
  [{ minP: 0.05 }, /min_p 0\.05/],
] as const) {
  t.test(`a model that draws with ${JSON.stringify(inForce)} is found out by name`, t => {
    t.match(judgeDraws(drawn(inForce, 'liar'), 1).cut?.name, cut)
    t.end()
  })
}

for (const temperature of [0.6, 0.7, 1.5] as const) {
  t.test(`a model that draws at temperature ${temperature} is found out`, t => {
    const judged = judgeDraws(drawn({ temperature }, 'liar'), 1)
    t.ok(Math.abs((judged.temperature ?? 0) - temperature) <= 0.3, String(judged.temperature))
    t.end()
  })
}

t.test('a model that stays at 1 when 2 is asked for is found out', t => {
  const { temperature } = judgeDraws(drawn({}, 'liar'), 2)
  t.ok(temperature !== null && temperature < 1.6, String(temperature))
  t.end()
})

t.test('what a model with random weights draws is uncertain, though nearly all of it is unlisted', t => {
  const draws = drawn({}, 'flat', true)
  t.ok(draws.every(draw => uncertaintyBits(draw) > 1))
  t.match(judgeDraws(draws, 1), { cut: null, temperature: null, isSkewed: false })
  t.equal(judgeDraws(drawn({ topK: 20 }, 'flat', true), 1).cut?.name, 'top_k 20')
  t.end()
})

t.test('gaps between likely tokens tell raw logprobs from those after temperature', t => {
  const one = drawn({}, 'one')
  t.ok(Math.abs((gapRatio(one, drawn({ temperature: 2 }, 'two'))?.ratio ?? 0) - 1) < 0.01)
  const processed = drawn({ temperature: 2 }, 'two', false, { ...NEUTRAL, temperature: 2 })
  t.ok(Math.abs((gapRatio(one, processed)?.ratio ?? 0) - 0.5) < 0.01)
  t.equal(gapRatio(one, []), null)
  t.end()
})

t.test('a model with random weights is not accused, however many draws are outside of all that is listed', t => {
  for (let turn = 0; turn < 2; turn += 1) {
    const draws = [1, 2, 3, 4].flatMap(part => drawn({}, `flat ${turn} ${part}`, true))
    t.match(judgeDraws(draws, 1), { cut: null, temperature: null, isSkewed: false })
  }
  t.end()
})

t.test('the gap is that of the likeliest tokens, though the drawn one is listed first and only two beside it', t => {
  const entry = (token: string, logprob: number): JsonObject => ({ token: `token_id:${token}`, logprob })
  const told = (scale: number, drawn: number) => {
    const [best, next, rare] = [-0.5, -1.5, -9].map(logprob => logprob * scale)
    const listed = [entry('7', rare ?? 0), entry('1', best ?? 0), entry('2', next ?? 0)]
    const first = listed[drawn] ?? {}
    return drawsOf([{ ...first, top_logprobs: [first, ...listed.filter(one => one !== first)] }])
  }
  const [draw] = told(1, 0)
  t.match(draw, { place: 2, list: [{ logprob: -0.5 }, { logprob: -1.5 }, { logprob: -9 }] })
  for (const drawn of [0, 1, 2]) {
    t.ok(Math.abs((gapRatio(told(1, 0), told(1, drawn))?.ratio ?? 0) - 1) < 1e-9)
    t.ok(Math.abs((gapRatio(told(1, drawn), told(0.5, 0))?.ratio ?? 0) - 0.5) < 1e-9)
  }
  t.end()
})

t.test('a Poisson tail is what tables say', t => {
  t.ok(Math.abs(poissonAtMost(0, 2) - 0.135335) < 1e-6)
  t.ok(Math.abs(poissonAtMost(3, 7) - 0.081765) < 1e-6)
  t.equal(poissonAtMost(9, 7), 1, 'above the mean nothing is odd')
  t.ok(Math.abs(poissonAtMost(1_309, 1_326.9) - 0.3178) < 1e-3, 'also where exp(-mean) is 0 in a double')
  t.ok(poissonAtMost(1_000, 1_326.9) < 1e-12)
  t.end()
})

t.test('a drawn token whose logprob is another one in the list is noticed', t => {
  const entry = { token: 'a', logprob: -1, bytes: [97], top_logprobs: [{ token: 'a', logprob: -2, bytes: [97] }] }
  t.equal(drawsOf([entry])[0]?.isTorn, true)
  t.strictSame(drawsOf([{ token: 'a' }]), [], 'no logprob, no draw')
  t.end()
})

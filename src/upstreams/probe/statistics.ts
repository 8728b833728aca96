// Does a server draw as it reports? Three tests over draws, each with a false alarm in about a million honest probes:
// - cuts: how many draws should have fallen outside the top k, the nucleus or min_p, and how many did (Poisson tail);
// - temperature: is another one far likelier to have been drawn with (log likelihood ratio);
// - ranks: the drawn token's place in the reported distribution must be uniform (chi-square over ten bins).

import { atTemperature, type Draw, uncertaintyBits } from './draws.js'

export interface CutFound {
  /** E.g. `top_k 20`. */
  readonly name: string
  /** Draws that should have fallen outside, and that did. */
  readonly expected: number
  readonly seen: number
}

export interface DrawsJudged {
  readonly draws: number
  /** Draws with more than 0.1 bit: only they tell anything. */
  readonly uncertain: number
  /** The cut that explains the draws best; null = none needed. */
  readonly cut: CutFound | null
  /** A temperature that explains them far better than the one asked for; null = none does. */
  readonly temperature: number | null
  /** The drawn places do not fit the report. */
  readonly isSkewed: boolean
  /** Per kind, the mildest cut that would have been found. */
  readonly wouldShow: readonly string[]
}

/** Of a false alarm, per cut. */
const CHANCE = 1e-6
/** Nats: chi-square with one degree of freedom passes twice this about once in a million. */
const RATIO = 12
/** Chi-square with nine degrees of freedom passes this about once in a million. */
const LARGEST_CHI_SQUARE = 45
const RANK_BINS = 10
/** Draws per bin under which chi-square is no measure. */
const LEAST_PER_BIN = 8
const UNCERTAIN_BITS = 0.1
/** Draws outside a cut for which none at all is as unlikely as CHANCE. */
const ENOUGH = -Math.log(CHANCE)

const TEMPERATURES = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.5, 2]

const isUncertain = (draw: Draw): boolean => uncertaintyBits(draw) > UNCERTAIN_BITS

/** How many of `draws` tell anything. */
export const uncertainIn = (draws: readonly Draw[]): number => draws.filter(isUncertain).length

interface Cut {
  readonly kind: string
  readonly name: string
  /** Tokens that stay, counted from the likeliest; null = the list is too short to tell. `listed`: at the temperature asked for. */
  kept(listed: readonly number[], rest: number): number | null
}

/**
 * Measured by the first nineteen: of twenty listed tokens only those are known to be the likeliest, since the drawn one may stand there by
 * right of being drawn. So the twentieth is still drawn now and then.
 */
const TOP_20 = 'top_k 20'

// From mild to strict within each kind.
const CUTS: readonly Cut[] = [
  ...[19, 10, 5, 4, 3, 2, 1].map(
    (k): Cut => ({
      kind: 'top_k',
      name: k === 1 ? 'greedy (temperature 0)' : k === 19 ? TOP_20 : `top_k ${k}`,
      kept: (listed, rest) => (k < listed.length ? k : rest === 0 ? listed.length : null),
    }),
  ),
  ...[0.99, 0.95, 0.9, 0.8, 0.7, 0.5].map(
    (p): Cut => ({
      kind: 'top_p',
      name: `top_p ${p}`,
      kept: listed => {
        let mass = 0
        const end = listed.findIndex(probability => {
          mass += probability
          return mass >= p
        })
        return end === -1 ? null : end + 1
      },
    }),
  ),
  ...[0.02, 0.05, 0.1, 0.2].map(
    (share): Cut => ({
      kind: 'min_p',
      name: `min_p ${share}`,
      kept: (listed, rest) => {
        const floor = share * (listed[0] ?? 0)
        const end = listed.findIndex(probability => probability < floor)
        return end !== -1 ? end : rest === 0 ? listed.length : null
      },
    }),
  ),
]

/** `asked`: the temperature in the requests; `list` of the draws must be raw (before temperature and cuts). */
export function judgeDraws(draws: readonly Draw[], asked: number): DrawsJudged {
  const uncertain = draws.filter(isUncertain)
  const counted = CUTS.map(cut => ({ kind: cut.kind, name: cut.name, ...outside(uncertain, cut, asked) }))
  const found = counted
    .filter(({ expected, seen }) => poissonAtMost(seen, expected) < CHANCE)
    .map(one => ({ ...one, isClean: one.seen <= (one.name === TOP_20 ? 0.07 : 0.02) * one.expected }))
  return {
    draws: draws.length,
    uncertain: uncertain.length,
    cut: bestCut(found),
    temperature: betterTemperature(uncertain, asked),
    isSkewed: found.some(({ isClean }) => !isClean) || (asked === 1 && ranksSkewed(uncertain)),
    wouldShow: [
      ...[...new Set(CUTS.map(({ kind }) => kind))].flatMap(
        kind => counted.find(one => one.kind === kind && one.expected >= ENOUGH)?.name ?? [],
      ),
      ...mildestTemperature(uncertain, asked),
    ],
  }
}

function outside(
  draws: readonly Draw[],
  cut: Cut,
  asked: number,
): { readonly expected: number; readonly seen: number } {
  let expected = 0
  let seen = 0
  for (const draw of draws) {
    const { listed, rest } = atTemperature(draw, asked)
    const kept = cut.kept(listed, rest)
    if (kept === null) continue
    expected += Math.max(0, 1 - listed.slice(0, kept).reduce((sum, probability) => sum + probability, 0))
    if (draw.place >= kept) seen += 1
  }
  return { expected, seen }
}

/** Of the cuts that nothing was drawn beyond, the strictest: the one in force, or the nearest of ours. */
function bestCut(found: readonly (CutFound & { readonly isClean: boolean })[]): CutFound | null {
  const [best] = found.filter(({ isClean }) => isClean).sort((a, b) => b.expected - a.expected)
  return best ? { name: best.name, expected: best.expected, seen: best.seen } : null
}

function betterTemperature(draws: readonly Draw[], asked: number): number | null {
  // Where much mass is unlisted, its share at another temperature is only bounded.
  const known = draws.filter(({ unlisted }) => unlisted < 0.05)
  const likelihood = (temperature: number) =>
    known.reduce((sum, draw) => {
      const probability = atTemperature(draw, temperature).listed[draw.place] ?? 0
      return sum + Math.log(Math.max(probability, 1e-30))
    }, 0)
  const base = likelihood(asked)
  const [best] = TEMPERATURES.map(temperature => ({ temperature, gain: likelihood(temperature) - base })).sort(
    (a, b) => b.gain - a.gain,
  )
  return best !== undefined && best.temperature !== asked && best.gain > RATIO ? best.temperature : null
}

/** The highest temperature below `asked` that would have been found; empty where none would. */
function mildestTemperature(draws: readonly Draw[], asked: number): readonly string[] {
  const known = draws.filter(({ unlisted }) => unlisted < 0.05)
  const found = [...TEMPERATURES].reverse().find(temperature => {
    if (temperature >= asked) return false
    const gain = known.reduce((sum, draw) => sum + divergence(draw, asked, temperature), 0)
    // By chance it is smaller as often as larger.
    return gain > 1.5 * RATIO
  })
  return found === undefined ? [] : [`temperature ${found}`]
}

/** Nats that a draw at `from` speaks against `to`, on average. */
function divergence(draw: Draw, from: number, to: number): number {
  const one = atTemperature(draw, from).listed
  const other = atTemperature(draw, to).listed
  return one.reduce((sum, p, index) => {
    const q = other[index] ?? 0
    return p > 0 && q > 0 ? sum + p * Math.log(p / q) : sum
  }, 0)
}

/** The drawn token's stretch of [0, 1), likeliest tokens first, and a point in it: uniform, whatever the distributions were. */
function ranksSkewed(draws: readonly Draw[]): boolean {
  if (draws.length < RANK_BINS * LEAST_PER_BIN) return false
  const random = lcg(draws.length)
  const bins = new Array<number>(RANK_BINS).fill(0)
  for (const { list, place, drawn } of draws) {
    const before = list.slice(0, place).reduce((sum, { logprob }) => sum + Math.exp(logprob), 0)
    // A drawn token that is the last listed may stand anywhere behind the others.
    const width = place === list.length - 1 ? Math.max(0, 1 - before) : Math.exp(drawn.logprob)
    const bin = Math.max(0, Math.min(RANK_BINS - 1, Math.floor((before + random() * width) * RANK_BINS)))
    bins[bin] = (bins[bin] ?? 0) + 1
  }
  const expected = draws.length / RANK_BINS
  return bins.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0) > LARGEST_CHI_SQUARE
}

/** P(X <= k) for a Poisson variable of mean `mean`: not less than that of a sum of independent draws when k is below the mean. */
export function poissonAtMost(k: number, mean: number): number {
  if (k >= mean) return 1
  // The terms as shares of the largest, the k-th, whose own size is taken by its logarithm: exp(-mean) is 0 from a mean of 746 on.
  let share = 1
  let sum = 1
  let log = -mean
  for (let i = k; i >= 1; i -= 1) {
    share *= i / mean
    sum += share
    log += Math.log(mean / i)
  }
  return sum * Math.exp(log)
}

/** A plain generator, so that the same draws are judged the same. */
function lcg(seed: number): () => number {
  let state = (seed * 2_654_435_761) >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/**
 * How much wider gaps between the same two tokens of the same context are at temperature 1 than at 2, as the median of `at2 / at1`:
 * 1 = raw logprobs, 0.5 = after temperature. null where no context with two tokens was met at both.
 */
export function gapRatio(
  at1: readonly Draw[],
  at2: readonly Draw[],
): { readonly ratio: number; readonly contexts: number } | null {
  const second = new Map(at2.map(draw => [draw.context, draw]))
  const seen = new Set<string>()
  const ratios: number[] = []
  for (const draw of at1) {
    const other = second.get(draw.context)
    if (other === undefined || seen.has(draw.context)) continue
    seen.add(draw.context)
    const logprobs = new Map(other.list.map(({ key, logprob }) => [key, logprob]))
    const common = draw.list.flatMap(({ key, logprob }) => {
      const there = logprobs.get(key)
      const isKnown = there !== undefined && Number.isFinite(there) && Number.isFinite(logprob)
      return isKnown ? [{ here: logprob, there }] : []
    })
    const [top] = common
    // The widest gap that is not in the noise of tokens that hardly ever come.
    const last = common.findLast(({ here }) => top !== undefined && top.here - here >= 0.05 && top.here - here <= 12)
    if (top !== undefined && last !== undefined) ratios.push((top.there - last.there) / (top.here - last.here))
  }
  ratios.sort((a, b) => a - b)
  const ratio = ratios[Math.floor(ratios.length / 2)]
  return ratio === undefined ? null : { ratio, contexts: ratios.length }
}

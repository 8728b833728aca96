// Are sampled tokens distributed as the server says? Two tests over positions drawn through HTTP, both by chi-square:
// - contexts: positions with the same reported distribution are thrown together and their counts compared with it;
// - ranks: each drawn token's place in its own reported distribution (likeliest first, spread evenly over its share) must be
//   uniform, whatever the distribution was. This one also uses contexts that were met only once.
// Positions with one candidate say nothing to either.

import type { LogprobEntry } from './simulation.js'

export interface Honesty {
  readonly positions: number
  /** Probability of a deviation at least this large, were the report true. */
  readonly contexts: number
  readonly ranks: number
  /** Share of positions with more than 0.1 bit. */
  readonly uncertain: number
  /** Entries whose own logprob is not that of the distribution beside it. */
  readonly inconsistent: number
}

/** Expected counts below this are pooled, as chi-square wants it. */
const LEAST_EXPECTED = 5
const RANK_BINS = 10

/** `entries`: with all candidates of each position in `top_logprobs`. `random`: spreads ranks, in [0, 1). */
export function honesty(entries: readonly LogprobEntry[], random: () => number): Honesty {
  const contexts = new Map<string, { readonly probabilities: readonly number[]; readonly counts: number[] }>()
  const bins = new Array<number>(RANK_BINS).fill(0)
  let uncertain = 0
  let inconsistent = 0
  for (const entry of entries) {
    // The sampled token stands first: by rank again.
    const candidates = [...entry.top_logprobs].sort(
      (a, b) => b.logprob - a.logprob || (String(a.bytes) < String(b.bytes) ? -1 : 1),
    )
    const probabilities = candidates.map(({ logprob }) => Math.exp(logprob))
    const drawn = candidates.findIndex(({ bytes }) => String(bytes) === String(entry.bytes))
    if (Math.abs((candidates[drawn]?.logprob ?? Number.NaN) - entry.logprob) > 1e-6 || drawn < 0) inconsistent += 1
    const key = JSON.stringify(candidates.map(({ bytes, logprob }) => [bytes, logprob]))
    const context = contexts.get(key) ?? { probabilities, counts: probabilities.map(() => 0) }
    context.counts[drawn] = (context.counts[drawn] ?? 0) + 1
    contexts.set(key, context)
    if (-probabilities.reduce((sum, p) => sum + p * Math.log2(p), 0) <= 0.1) continue
    uncertain += 1
    const before = probabilities.slice(0, drawn).reduce((sum, p) => sum + p, 0)
    const rank = before + random() * (probabilities[drawn] ?? 0)
    const bin = Math.min(RANK_BINS - 1, Math.floor(rank * RANK_BINS))
    bins[bin] = (bins[bin] ?? 0) + 1
  }
  const cells = [...contexts.values()].map(({ probabilities, counts }) => {
    const draws = counts.reduce((sum, count) => sum + count, 0)
    return pooled(counts.map((count, index) => ({ count, expected: draws * (probabilities[index] ?? 0) })))
  })
  const ranks = bins.map(count => ({ count, expected: uncertain / RANK_BINS }))
  return {
    positions: entries.length,
    contexts: pValue(cells),
    ranks: pValue([ranks]),
    uncertain: uncertain / entries.length,
    inconsistent,
  }
}

interface Cell {
  readonly count: number
  readonly expected: number
}

/** Rare cells of one context as one; a context that has no two cells left says nothing. */
function pooled(cells: readonly Cell[]): readonly Cell[] {
  const large = cells.filter(cell => cell.expected >= LEAST_EXPECTED)
  const rest = cells
    .filter(cell => cell.expected < LEAST_EXPECTED)
    .reduce((sum, cell) => ({ count: sum.count + cell.count, expected: sum.expected + cell.expected }), {
      count: 0,
      expected: 0,
    })
  const kept = rest.expected >= LEAST_EXPECTED ? [...large, rest] : large
  // What was pooled away must not be missed from the rest: such a context is compared within its large cells.
  if (kept.length < 2) return []
  const draws = kept.reduce((sum, cell) => sum + cell.count, 0)
  const expected = kept.reduce((sum, cell) => sum + cell.expected, 0)
  return kept.map(cell => ({ count: cell.count, expected: (cell.expected * draws) / expected }))
}

/** Of the chi-square statistic summed over groups whose counts are each fixed in total. */
function pValue(groups: readonly (readonly Cell[])[]): number {
  let statistic = 0
  let freedom = 0
  for (const cells of groups) {
    if (cells.length < 2) continue
    freedom += cells.length - 1
    for (const { count, expected } of cells) if (expected > 0) statistic += (count - expected) ** 2 / expected
  }
  if (freedom === 0) throw new Error('too few draws for a test')
  return upperGamma(freedom / 2, statistic / 2)
}

/** Regularised upper incomplete gamma function Q(a, x): the tail of chi-square. Series below a + 1, continued fraction above. */
export function upperGamma(a: number, x: number): number {
  if (x <= 0) return 1
  const scale = Math.exp(a * Math.log(x) - x - logGamma(a))
  if (x < a + 1) {
    let term = 1 / a
    let sum = term
    for (let n = 1; n < 10_000 && term > sum * 1e-15; n++) {
      term *= x / (a + n)
      sum += term
    }
    return 1 - sum * scale
  }
  let b = x + 1 - a
  let c = 1e300
  let d = 1 / b
  let fraction = d
  for (let n = 1; n < 10_000; n++) {
    const an = -n * (n - a)
    b += 2
    d = 1 / (an * d + b)
    c = b + an / c
    fraction *= d * c
    if (Math.abs(d * c - 1) < 1e-15) break
  }
  return fraction * scale
}

/** Stirling's series, after moving the argument above 10. */
function logGamma(x: number): number {
  let shift = 0
  let z = x
  for (; z < 10; z++) shift -= Math.log(z)
  const square = 1 / (z * z)
  const series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / z
  return shift + (z - 0.5) * Math.log(z) - z + 0.5 * Math.log(2 * Math.PI) + series
}

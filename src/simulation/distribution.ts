// The next token: which ids can come, how likely each is, what temperature and truncation make of that, and the draw.
//
// The policy knows its distribution p exactly. In force is: logits = log p, minus penalties; divided by the temperature; then
// min_p, top_k and top_p cut it in this order (as vLLM does); what is left is normalised and drawn from. Temperature 0 takes the
// likeliest id. At temperature 1 without cuts and penalties the drawn distribution is p.
// Reported is log p ("raw_logprobs", vLLM's default) or the log of what was drawn from ("processed_logprobs").

import type { Random } from './random.js'

export interface Candidate {
  readonly id: number
  /** Probability; those of a distribution sum to 1. */
  readonly probability: number
}

/** Candidates with probability above 0, the likeliest first, ties by id. */
export type Distribution = readonly Candidate[]

export interface SamplingSettings {
  readonly temperature: number
  readonly topP: number
  /** Off at 0 or below. */
  readonly topK: number
  readonly minP: number
  readonly presencePenalty: number
  readonly frequencyPenalty: number
}

export type LogprobsMode = 'raw_logprobs' | 'processed_logprobs'

export interface Draw {
  readonly id: number
  /** Nats, of the drawn id. */
  readonly logprob: number
  /** What is reported beside it, the likeliest first; log probabilities in the same mode. */
  readonly reported: Distribution
}

/** Draws the next id. `counts`: how often each id was sampled before, for the penalties. */
export type Sampler = (
  raw: Distribution,
  settings: SamplingSettings,
  counts: ReadonlyMap<number, number>,
  random: Random,
) => Draw

/** The honest sampler. */
export function sampler(mode: LogprobsMode): Sampler {
  return (raw, settings, counts, random) => {
    const inForce = applySettings(raw, settings, counts)
    const drawn = drawFrom(inForce, random)
    const reported = mode === 'raw_logprobs' ? raw : inForce
    return { id: drawn.id, logprob: logOf(reported, drawn.id), reported }
  }
}

/** `candidates` merged by id, normalised and ordered. Weights above 0, at least one. */
export function distribution(weights: ReadonlyMap<number, number>): Distribution {
  let total = 0
  for (const weight of weights.values()) total += weight
  return [...weights]
    .map(([id, weight]) => ({ id, probability: weight / total }))
    .sort((a, b) => b.probability - a.probability || a.id - b.id)
}

/** What is drawn from: never empty. */
export function applySettings(
  raw: Distribution,
  settings: SamplingSettings,
  counts: ReadonlyMap<number, number>,
): Distribution {
  const { temperature, topP, topK, minP, presencePenalty, frequencyPenalty } = settings
  if (temperature === 1 && topP >= 1 && topK <= 0 && minP <= 0 && presencePenalty === 0 && frequencyPenalty === 0)
    return raw
  const logits = raw.map(({ id, probability }) => {
    const count = counts.get(id) ?? 0
    return { id, logit: Math.log(probability) - frequencyPenalty * count - (count > 0 ? presencePenalty : 0) }
  })
  const highest = Math.max(...logits.map(({ logit }) => logit))
  if (temperature === 0) return [{ id: logits.find(({ logit }) => logit === highest)?.id ?? -1, probability: 1 }]
  const scaled = new Map(logits.map(({ id, logit }) => [id, Math.exp((logit - highest) / temperature)]))
  // Far below the likeliest the exponent underflows to 0: such an id cannot be drawn.
  let kept = distribution(new Map([...scaled].filter(([, weight]) => weight > 0)))
  const top = kept[0]?.probability ?? 1
  if (minP > 0) kept = kept.filter(({ probability }) => probability >= minP * top)
  if (topK > 0) kept = kept.slice(0, topK)
  if (topP < 1) kept = nucleus(normalised(kept), topP)
  return normalised(kept)
}

/** The shortest run of likeliest candidates that reaches `topP`. */
function nucleus(candidates: Distribution, topP: number): Distribution {
  let mass = 0
  const end = candidates.findIndex(({ probability }) => {
    mass += probability
    return mass >= topP
  })
  return end === -1 ? candidates : candidates.slice(0, end + 1)
}

const normalised = (candidates: Distribution): Distribution =>
  distribution(new Map(candidates.map(({ id, probability }) => [id, probability])))

/** One candidate by its probability. */
export function drawFrom(candidates: Distribution, random: Random): Candidate {
  let left = random()
  for (const candidate of candidates) {
    left -= candidate.probability
    if (left < 0) return candidate
  }
  // Rounding can leave a crumb at the end.
  const last = candidates.at(-1)
  if (!last) throw new Error('a distribution has at least one candidate')
  return last
}

const logOf = (candidates: Distribution, id: number): number => {
  const found = candidates.find(candidate => candidate.id === id)
  return found ? Math.log(found.probability) : Number.NEGATIVE_INFINITY
}

/** Entropy in bits. */
export const entropyBits = (candidates: Distribution): number =>
  candidates.reduce((bits, { probability }) => bits - probability * Math.log2(probability), 0)

// Sampled positions as a server reports them: the drawn token, and the likeliest tokens beside it with their logprobs. Only what is
// listed is known; the mass that is not listed lies on tokens less likely than the last one listed.

import type { JsonObject } from '../../domain/json.js'
import { listOf, objectOf, textOf } from '../shared/read.js'

export interface Listed {
  /** Token as the server names it, made unique by its bytes. */
  readonly key: string
  /** Nats; -Infinity where the server says it cannot come. */
  readonly logprob: number
}

export interface Draw {
  /** What was drawn before, joined: equal keys are equal contexts (of one prompt). */
  readonly context: string
  readonly drawn: Listed
  /** Likeliest first, at least one; the drawn token among them. */
  readonly list: readonly Listed[]
  /** Place of the drawn token in `list`. */
  readonly place: number
  /** Mass on tokens that are not listed. */
  readonly unlisted: number
  /** The drawn token's own logprob is another one than the list gives it. */
  readonly isTorn: boolean
}

/** Below this a listed token cannot come: engines write it for minus infinity. */
const LEAST_LOGPROB = -9999
/** Sums of twenty float32 logprobs are off by less. */
const ROUNDING = 1e-4
const SAME_LOGPROB = 2e-3

/** The positions of one answer whose entries carry `top_logprobs`; entries without a list are left out. */
export function drawsOf(content: readonly JsonObject[]): readonly Draw[] {
  const draws: Draw[] = []
  let context = ''
  for (const entry of content) {
    const drawn = listedOf(entry)
    if (drawn === null) return draws
    const listed = listOf(entry['top_logprobs']).flatMap(item => listedOf(objectOf(item) ?? {}) ?? [])
    const beside = listed.find(({ key }) => key === drawn.key)
    // vLLM puts the drawn token first and then the likeliest, so that it may stand twice or out of order.
    const unique = new Map([drawn, ...listed].map(item => [item.key, item]))
    const list = [...unique.values()].sort((a, b) => b.logprob - a.logprob)
    const mass = list.reduce((sum, { logprob }) => sum + Math.exp(logprob), 0)
    if (listed.length > 0) {
      draws.push({
        context,
        drawn,
        list,
        place: list.findIndex(({ key }) => key === drawn.key),
        unlisted: 1 - mass > ROUNDING ? 1 - mass : 0,
        isTorn: beside !== undefined && Math.abs(beside.logprob - drawn.logprob) > SAME_LOGPROB,
      })
    }
    context += `${drawn.key}\u0001`
  }
  return draws
}

function listedOf(entry: JsonObject): Listed | null {
  const token = textOf(entry['token'])
  const logprob = entry['logprob']
  if (token === null || typeof logprob !== 'number') return null
  const bytes = listOf(entry['bytes'])
  return {
    key: bytes.length > 0 && !token.startsWith('token_id:') ? `${token}\u0000${bytes.join(',')}` : token,
    logprob: logprob <= LEAST_LOGPROB ? Number.NEGATIVE_INFINITY : logprob,
  }
}

/** The id that `return_tokens_as_token_ids` writes in place of a token's text; null where the server ignores it. */
export function idOfToken(entry: JsonObject): number | null {
  const digits = /^token_id:(\d+)$/.exec(textOf(entry['token']) ?? '')?.[1]
  return digits === undefined ? null : Number(digits)
}

/** Probabilities of the listed tokens at another temperature, and of all unlisted ones together (a lower bound above 1, an upper one below). */
export function atTemperature(
  { list, unlisted }: Draw,
  temperature: number,
): { readonly listed: readonly number[]; readonly rest: number } {
  const power = 1 / temperature
  const weights = list.map(({ logprob }) => Math.exp(logprob * power))
  const least = Math.exp(list.findLast(({ logprob }) => logprob > Number.NEGATIVE_INFINITY)?.logprob ?? 0)
  const rest = unlisted === 0 ? 0 : unlisted * least ** (power - 1)
  const total = weights.reduce((sum, weight) => sum + weight, rest)
  return { listed: weights.map(weight => weight / total), rest: rest / total }
}

/** Bits, at least: no unlisted token is likelier than the last one listed. */
export function uncertaintyBits({ list, unlisted }: Draw): number {
  const bits = (p: number) => (p > 0 ? -p * Math.log2(p) : 0)
  const least = list.findLast(({ logprob }) => logprob > Number.NEGATIVE_INFINITY)?.logprob ?? 0
  const rest = (unlisted * -least) / Math.LN2
  return list.reduce((sum, { logprob }) => sum + bits(Math.exp(logprob)), rest)
}

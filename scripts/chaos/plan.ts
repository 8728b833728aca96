// Which life of a chaos run is killed where: every failpoint once, then instants at random.

import { FAILPOINTS, type FailpointName } from '../../src/observability/failpoints.js'
import type { Chain } from './chain.js'

/** A generator of numbers from 0 to 1 whose seed can be printed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export const failpointNames = Object.keys(FAILPOINTS) as readonly FailpointName[]

/** At which of its passes a life ends there, 1 to this: what each life passes at least so often with the tasks it is given. */
const passes = (name: FailpointName): number => {
  if (/^(proxy|merge|session)\./.test(name)) return 4
  return /^(outbox|callback|submit)\./.test(name) ? 2 : 1
}

/** One life that ends there. A start that is to end while it takes up a session needs one that was cut off. */
export async function killAt(chain: Chain, name: FailpointName, random: () => number): Promise<void> {
  if (name === 'recovery.sealed') await chain.killedBy('proxy.ack-received', 2)
  await chain.killedBy(name, 1 + Math.floor(random() * passes(name)))
}

/** What the sessions of a life give at the most. */
const ANSWERS = 36

/** Most lives end at work or when their sessions end, some while they start. */
export async function killAtRandom(chain: Chain, random: () => number): Promise<void> {
  if (random() < 0.15) await chain.killedAt(random() * 1_500, 'start')
  else await chain.killedAt(random() ** 2 * 600, { answers: Math.floor(random() ** 2 * ANSWERS) })
}

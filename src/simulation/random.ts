// Randomness by seed: the same seed gives the same draws on every machine. sfc32, seeded from SHA-256.

import { createHash } from 'node:crypto'

/** Uniform in [0, 1), 53 bits. */
export type Random = () => number

/** A generator that depends on `parts` alone. */
export function seededRandom(...parts: readonly (string | number)[]): Random {
  const digest = createHash('sha256').update(JSON.stringify(parts)).digest()
  let a = digest.readInt32LE(0)
  let b = digest.readInt32LE(4)
  let c = digest.readInt32LE(8)
  let counter = 1
  const next = (): number => {
    const result = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = ((c << 21) | (c >>> 11)) + result
    return result >>> 0
  }
  for (let round = 0; round < 12; round++) next()
  return () => ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992
}

// Numbers as JSON text. Token ids and masks are joined natively; a logprob is written as the shortest decimal that rounds to
// the same float32 (a float32 printed as a double is nearly twice as long).

import { RolloutError } from '../domain/errors.js'

export const integersJson = (values: Int32Array | Uint8Array): string => `[${values.join(',')}]`

/** Throws INTERNAL_BUG on a value that JSON has no number for. */
export function float32sJson(values: Float32Array): string {
  const texts = new Array<string>(values.length)
  for (let i = 0; i < values.length; i++) texts[i] = float32Text(values[i] ?? 0)
  return `[${texts.join(',')}]`
}

/** Decimals that give six significant digits, by magnitude; below it, `toPrecision` does. */
const SCALES = [
  [100, 1e3],
  [10, 1e4],
  [1, 1e5],
  [0.1, 1e6],
  [0.01, 1e7],
  [0.001, 1e8],
] as const

/** `value` must be a float32. Six to nine significant digits, trailing zeros left out. */
export function float32Text(value: number): string {
  if (!Number.isFinite(value))
    throw new RolloutError('INTERNAL_BUG', `a result holds ${value} where a finite number is wanted`)
  if (Number.isInteger(value)) return value === 0 ? '0' : String(value)
  const magnitude = Math.abs(value)
  const start = magnitude < 1e5 ? SCALES.find(([least]) => magnitude >= least)?.[1] : undefined
  if (start !== undefined)
    for (let scale = start, digits = 6; digits <= 9; scale *= 10, digits++) {
      const decimal = Math.round(value * scale) / scale
      if (Math.fround(decimal) === value) return String(decimal)
    }
  for (let digits = 6; digits <= 9; digits++) {
    const decimal = Number(value.toPrecision(digits))
    if (Math.fround(decimal) === value) return String(decimal)
  }
  return String(value)
}

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

/** `value` must be a float32. Six to nine significant digits, trailing zeros left out. */
export function float32Text(value: number): string {
  if (!Number.isFinite(value))
    throw new RolloutError('INTERNAL_BUG', `a result holds ${value} where a finite number is wanted`)
  if (Number.isInteger(value)) return value === 0 ? '0' : String(value)
  const magnitude = Math.abs(value)
  const text = magnitude >= 1e-12 && magnitude < 1000 ? fromInteger(magnitude) : precise(magnitude)
  return value < 0 ? `-${text}` : text
}

/** Whole numbers are cheap to write: the value as an integer of six to nine digits, with a point or an exponent put in. */
function fromInteger(magnitude: number): string {
  let places = 3
  for (let least = 100; magnitude < least; least /= 10) places++
  for (let tries = 0; tries < 4; tries++, places++) {
    const scale = 10 ** places
    let digits = Math.round(magnitude * scale)
    if (Math.fround(digits / scale) !== magnitude) continue
    let left = places
    while (left > 0 && digits % 10 === 0) {
      digits /= 10
      left--
    }
    if (magnitude < 1e-3) return `${digits}e-${left}`
    const unit = 10 ** left
    const whole = Math.floor(digits / unit)
    return left === 0 ? String(digits) : `${whole}.${String(digits - whole * unit).padStart(left, '0')}`
  }
  return precise(magnitude)
}

function precise(magnitude: number): string {
  for (let digits = 6; digits <= 9; digits++) {
    const decimal = Number(magnitude.toPrecision(digits))
    if (Math.fround(decimal) === magnitude) return String(decimal)
  }
  return String(magnitude)
}

// The calculator: an operation by name over a list of numbers.

import { median } from './median.js'

const sum = numbers => numbers.reduce((total, number) => total + number, 0)

const operations = {
  sum,
  product: numbers => numbers.reduce((total, number) => total * number, 1),
  mean: numbers => sum(numbers) / numbers.length,
  median,
  range: numbers => Math.max(...numbers) - Math.min(...numbers),
}

/** Throws RangeError for an unknown operation, and for an empty list where the result would not be a number. */
export function calculate(name, numbers) {
  const operation = Object.hasOwn(operations, name) ? operations[name] : undefined
  if (operation === undefined) throw new RangeError(`unknown operation: ${name}`)
  const result = operation(numbers)
  if (!Number.isFinite(result)) throw new RangeError(`${name} of an empty list`)
  return result
}

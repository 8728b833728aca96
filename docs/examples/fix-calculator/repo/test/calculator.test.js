import assert from 'node:assert/strict'
import { calculate } from '../src/calculator.js'

export const tests = {
  sum_adds_all() {
    assert.equal(calculate('sum', [1, 2, 3]), 6)
  },
  product_multiplies_all() {
    assert.equal(calculate('product', [2, 3, 4]), 24)
  },
  mean_divides_by_the_count() {
    assert.equal(calculate('mean', [1, 2, 3, 6]), 3)
  },
  range_is_the_widest_distance() {
    assert.equal(calculate('range', [4, -1, 10]), 11)
  },
  unknown_operations_are_refused() {
    assert.throws(() => calculate('toString', [1]), RangeError)
  },
  empty_lists_have_no_mean() {
    assert.throws(() => calculate('mean', []), RangeError)
  },
}

import assert from 'node:assert/strict'
import { median } from '../src/median.js'

export const tests = {
  odd_count_takes_the_middle() {
    assert.equal(median([3, 1, 2]), 2)
  },
  sorts_by_value() {
    assert.equal(median([10, 9, 2]), 9)
  },
  even_count_takes_the_mean_of_both() {
    assert.equal(median([4, 1, 3, 2]), 2.5)
  },
  leaves_the_list_as_it_was() {
    const numbers = [30, 10, 20]
    median(numbers)
    assert.deepEqual(numbers, [30, 10, 20])
  },
}

// Errors as plain data: what crosses threads, and what a logger makes of data that it is given.

import t from 'tap'
import { errorData, RolloutError } from '../../../src/domain/errors.js'

t.test('data of an error stays what it is when it is made data again', async t => {
  const data = errorData(new RolloutError('STORE_FULL', 'no room', { details: { bytes: 3 } }))
  t.strictSame(data, { code: 'STORE_FULL', message: 'no room', details: { bytes: 3 } })
  t.strictSame(errorData(data), data)
})

t.test('whatever was thrown has a text', async t => {
  t.strictSame(errorData(new TypeError('wrong')), { code: 'INTERNAL_BUG', message: 'wrong' })
  t.strictSame(errorData('text'), { code: 'INTERNAL_BUG', message: 'text' })
  t.strictSame(errorData(null), { code: 'INTERNAL_BUG', message: 'null' })
})

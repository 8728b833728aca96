import t from 'tap'
import { compareResults, normalisedName, parseTestLog } from '../../../../src/evaluators/shared/test-log.js'

t.test('names are normalised as the contract says', t => {
  t.equal(normalisedName('tests/x.py::C::m'), 'C.m')
  t.equal(normalisedName('tests/x.py::f'), 'f')
  t.equal(normalisedName('bare_name'), 'bare_name')
  t.end()
})

t.test('results are read through colours and carriage returns; lines that are no result are not', t => {
  const log = [
    '\u001b[32mPASSED\u001b[0m tests/x.py::C::m\r',
    'FAILED tests/x.py::f - AssertionError: a - b',
    'PASSED tests/x.py::g[one two]',
    'SKIPPED [1] tests/x.py:10: why',
    'ERROR could not connect to the server',
    'ERROR: something',
    'PASSED',
    '  PASSED indented',
    'PASSED bare_name',
    'PASSEDx no',
  ].join('\n')
  t.strictSame(parseTestLog(log).byName, { 'C.m': 'PASSED', f: 'FAILED', 'g[one two]': 'PASSED', bare_name: 'PASSED' })
  t.strictSame(Object.keys(parseTestLog(log).byNode)[0], 'tests/x.py::C::m')
  t.end()
})

t.test('of two results of one name the worse counts, in either order', t => {
  for (const order of [
    ['PASSED a.py::f', 'FAILED b.py::f'],
    ['FAILED b.py::f', 'PASSED a.py::f'],
  ]) {
    const { byName, byNode } = parseTestLog(order.join('\n'))
    t.strictSame(byName, { f: 'FAILED' })
    t.match(byNode, { 'a.py::f': 'PASSED', 'b.py::f': 'FAILED' })
  }
  t.end()
})

t.test('an empty log resolves nothing; names like those of an object prototype are names', t => {
  t.equal(compareResults(parseTestLog(''), { a: 'PASSED' }, 'expected_subset').resolved, false)
  t.equal(compareResults(parseTestLog('PASSED a'), { toString: 'PASSED' }, 'expected_subset').resolved, false)
  const odd = parseTestLog('PASSED constructor')
  t.equal(compareResults(odd, { constructor: 'PASSED' }, 'exact').resolved, true)
  t.end()
})

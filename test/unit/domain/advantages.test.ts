// Case trajectory-16: a session counts once, whatever number of traces it became.

import t from 'tap'
import { groupAdvantages } from '../../../src/domain/advantages.js'

t.test('the mean is over sessions, not over traces', t => {
  const group = [
    { sessionId: 'a', reward: 1, traces: 1 },
    { sessionId: 'b', reward: 0, traces: 3 },
  ]
  t.strictSame(groupAdvantages(group), [
    { sessionId: 'a', advantage: 0.5, traceWeight: 1 },
    { sessionId: 'b', advantage: -0.5, traceWeight: 1 / 3 },
  ])
  t.end()
})

t.test('a session without a reward is outside the mean and has no advantage', t => {
  const group = [
    { sessionId: 'a', reward: 1, traces: 1 },
    { sessionId: 'b', reward: null, traces: 0 },
    { sessionId: 'c', reward: 0, traces: 1 },
  ]
  t.strictSame(
    groupAdvantages(group).map(one => one.advantage),
    [0.5, null, -0.5],
  )
  t.end()
})

t.test('an empty group and a group of one do not divide by zero', t => {
  t.strictSame(groupAdvantages([]), [])
  t.equal(groupAdvantages([{ sessionId: 'a', reward: 1, traces: 1 }])[0]?.advantage, 0)
  t.end()
})

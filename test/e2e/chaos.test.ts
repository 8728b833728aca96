// A service killed in mid-work and started again on what it left, as `npm run chaos:kill` does at every named transition and at hundreds
// of instants: here at a few of each. What is verified is the same (scripts/chaos/verify.ts).

import t from 'tap'
import { openChain } from '../../scripts/chaos/chain.js'
import { seeded } from '../../scripts/chaos/plan.js'
import type { FailpointName } from '../../src/observability/failpoints.js'

t.setTimeout(240_000)

/** One of each part of the way, at that of its passes: store, result, delivery. */
const POINTS: readonly (readonly [FailpointName, number])[] = [
  ['merge.flushed', 4],
  ['session.filed', 1],
  ['callback.acknowledged', 1],
]

t.test('whatever a kill cuts off: nothing lost, nothing twice, results delivered, nothing left behind', async t => {
  const seed = Math.floor(Math.random() * 2 ** 31)
  t.comment(`seed ${seed}`)
  const random = seeded(seed)
  const chain = await openChain({ random })
  t.teardown(() => chain.close())
  for (const [name, nth] of POINTS) await chain.killedBy(name, nth)
  await chain.killedAt(random() * 50, { answers: 1 + Math.floor(random() * 30) })
  const figures = await chain.settle()
  t.comment(JSON.stringify(figures))
  t.ok(figures.acted > 0, 'answers were acted on')
  t.ok(figures.interrupted > 0, 'sessions were cut off')
})

// Case book, group capture, over real HTTP, as far as it does not stand with the proxy's own tests.

import t from 'tap'
import { builders } from '../../../src/builders/registry.js'
import { caseWorld } from '../../support/cases.js'

const dialect = 'openai_chat'
const tools = [{ type: 'function', function: { name: 'run', parameters: { type: 'object' } } }]

t.test('capture-2: a stray client inside the sandbox is a side call, and no turn of the main trace', async t => {
  const world = await caseWorld(t)
  const session = await world.pair.session('s-a')
  const agent = (messages: readonly object[], promptIds: readonly number[], ids: readonly number[]) =>
    world.call(session, { dialect, body: { messages, tools }, engine: { pieces: ['x'], promptIds, ids } }, false)
  const go = { role: 'user', content: 'go' }
  await agent([go], [1, 2, 3], [10, 99])
  // A script of the agent's asks the same endpoint with the key it found, about something else.
  const stray = { messages: [{ role: 'user', content: 'Translate.' }] }
  await world.call(
    session,
    { dialect, body: stray, engine: { pieces: ['y'], promptIds: [7, 8], ids: [30, 99] } },
    false,
  )
  await agent(
    [go, { role: 'assistant', content: 'x' }, { role: 'user', content: 'on' }],
    [1, 2, 3, 10, 99, 50],
    [11, 99],
  )
  const ledger = await world.pair.ledger(session)
  t.match(
    ledger.calls.map(({ record }) => record.sideRule),
    [null, /./, null],
  )
  const { traces, ledger: counts } = await builders.prefix_merging.build(
    ledger,
    {},
    { decode: async ids => String(ids), sessionId: 's-a', taskId: 't', taskMetadata: {} },
  )
  t.equal(traces.length, 1, 'one trace')
  t.match(counts, { joins: { exact: 1 }, tokens: { sampled: 6, trained: 4, setAside: { side_call: 2 } } })
})

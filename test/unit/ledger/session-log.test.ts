// A session log on its way to the build: what is moved, what is shared, what entries do not repeat.

import t from 'tap'
import { ownedBuffers } from '../../../actors/system/transfer.js'
import type { CompletionRecord, SessionLedger } from '../../../src/domain/completion.js'
import type { CompletionId } from '../../../src/domain/ids.js'
import { insertCall, recordsOf, sealLog, sessionLog } from '../../../src/ledger/session-log.js'
import { wholeRecord } from '../../../src/ledger/view.js'
import { encode } from '../../../src/wire/codec.js'
import { ledgerOf, recordOf, SESSION } from '../../support/ledger-fixtures.js'
import { merge, sameTraces } from '../../support/ledger-invariants.js'
import { generateCalls } from '../../support/session-generator.js'

const sealed = (records: readonly CompletionRecord[]): SessionLedger => {
  const log = sessionLog(SESSION)
  for (const record of records) insertCall(log, record)
  return sealLog(log)
}

t.test('the arrays of a sealed log change thread without a copy, and the build is the same', async t => {
  const records = generateCalls(3, { turns: 12, trouble: 0.3 }).map(({ record }) => record)
  const here = sealed(records)
  const there = structuredClone(here, { transfer: [...ownedBuffers(here)] })
  for (const { ids } of here.shared?.segments.slice(1) ?? []) t.equal(ids.length, 0, 'gone from here')
  for (const { record } of here.calls) t.equal((record.sampledIds?.length ?? 0) + (record.logprobs?.length ?? 0), 0)
  const captured = ledgerOf(records.map(record => ({ record, delivered: 'unknown' })))
  t.ok(sameTraces(await merge(there), await merge(captured)))
  t.strictSame(
    there.calls.map(call => wholeRecord(there, call).promptIds),
    records.map(({ promptIds }) => promptIds),
  )
})

t.test('a log keeps nothing of the arrays that it is given', async t => {
  const ids = Int32Array.of(1, 2, 3, 10, 99)
  const log = sessionLog(SESSION)
  const over = { promptIds: ids.subarray(0, 3), sampledIds: ids.subarray(3) }
  insertCall(log, recordOf({ id: 'c1', prompt: [], sampled: [10, 99], over }))
  insertCall(log, recordOf({ id: 'c2', prompt: null, sampled: [7], over: { sampledIds: ids.subarray(4) } }))
  ids.fill(0)
  const [first, second] = [...recordsOf(log)]
  t.strictSame(first?.promptIds, Int32Array.of(1, 2, 3))
  t.strictSame(first?.sampledIds, Int32Array.of(10, 99))
  t.strictSame(second?.sampledIds, Int32Array.of(99))
})

t.test('entries of agents that take turns repeat no history: neither ids, messages, tools nor bodies', async t => {
  const log = sessionLog(SESSION)
  const agents = ['main', 'a', 'b', 'c'].map((name, place) => ({
    ids: Array.from({ length: 200 }, (_, at) => 1000 * place + at),
    messages: [{ role: 'system', content: `${name} ${'x'.repeat(2_000)}` }],
    tools: [{ type: 'function', function: { name, description: 'y'.repeat(3_000) } }],
  }))
  const sizes: number[] = []
  for (let turn = 0; turn < 80; turn++) {
    const { ids, messages, tools } = agents[turn % agents.length] ?? { ids: [], messages: [], tools: [] }
    messages.push({ role: 'user', content: `turn ${turn} ${'z'.repeat(100)}` })
    const record = recordOf({
      id: `c${turn}`,
      prompt: ids,
      sampled: [turn, 99],
      sequence: turn,
      over: {
        completionId: `c${turn}` as CompletionId,
        request: { model: 'm', messages: [...messages], tools },
        originalRequest: JSON.stringify({ messages, tools, stream: true }),
      },
    })
    sizes.push(encode(insertCall(log, record)).length)
    ids.push(turn, 99, 5, 6)
  }
  const settled = sizes.slice(agents.length)
  t.ok(Math.max(...settled) < 1_000, `entries of ${Math.min(...settled)} to ${Math.max(...settled)} bytes`)
})

// What `inspect` and others see of a session that is in the store only, beside its owner.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { shardJournal } from '../../../actors/merge/journal.js'
import { realClock } from '../../../actors/system/clock.js'
import { sessionResultJson } from '../../../src/api/encode.js'
import { runExport } from '../../../src/cli/export.js'
import { storedSessions } from '../../../src/cli/stored-session.js'
import type { CompletionId, SessionId } from '../../../src/domain/ids.js'
import { checkResult } from '../../../src/inspect/checks.js'
import { insertCall, sessionLog } from '../../../src/ledger/session-log.js'
import { createLogger } from '../../../src/observability/logger.js'
import { openRecordStore, shardFolder } from '../../../src/store/record-store.js'
import { flipByte } from '../../support/damage.js'
import { completionRecord } from '../../support/records.js'
import { sessionResult, twoTraces } from '../../support/traces.js'

t.test('a session is shown while its service writes on; a damaged one is named, others are shown', async t => {
  const stateDir = t.testdir()
  const store = await openRecordStore({ stateDir, shard: 2, mode: 'owner', maxBytes: 1 << 24, retentionMs: 600_000 })
  const journal = shardJournal(store, realClock(), createLogger({ level: 'silent' }))
  const add = async (sessionId: SessionId, name: string, log = sessionLog(sessionId)) => {
    const record = completionRecord({
      sessionId,
      completionId: name as CompletionId,
      originalRequest: `body of ${name}`,
    })
    await journal.store(sessionId, insertCall(log, record))
    return log
  }
  const pieces = (ids: readonly number[]) => ids.map(id => `<${id}>`)
  const first = await add('s-one' as SessionId, 'c1')
  await add('s-two' as SessionId, 'c2')
  await journal.finish('s-two' as SessionId)
  const one = await storedSessions(stateDir, 's-one', pieces)
  t.match(one, {
    found: [{ session_id: 's-one', status: 'OPEN', trajectory: { traces: { length: 1 } } }],
    unreadable: [],
  })
  t.strictSame(
    one.found.flatMap(checkResult).filter(({ ok }) => !ok),
    [],
  )
  await add('s-one' as SessionId, 'c3', first)
  t.match((await storedSessions(stateDir, 's-one', pieces)).found, [
    { trajectory: { metadata: { ledger: { calls: 2 } } } },
  ])
  t.match(
    (await storedSessions(stateDir, 's-', pieces)).found.map(({ session_id, status }) => [session_id, status]),
    [
      ['s-one', 'OPEN'],
      ['s-two', 'FINISHED'],
    ],
  )
  const out = join(stateDir, 'lines.jsonl')
  const report = await runExport([stateDir], { view: 'tokens', includeMasked: true, out })
  t.match(report, { sessions: 2, unreadable: [] })
  const lines = readFileSync(out, 'utf8').trimEnd().split('\n')
  t.equal(lines.length, report.lines)
  t.match(
    lines.map(line => JSON.parse(line).session_id),
    ['s-one', 's-one', 's-two'],
    'export reads what a running service has on disk',
  )
  t.ok(
    lines.every(line => !JSON.parse(line).loss_mask.includes(1)),
    'how they end is not known: nothing of them may be trained',
  )
  await t.rejects(runExport([stateDir], { view: 'tokens', includeMasked: false, out }), { code: 'TASK_INVALID' })
  const results = join(stateDir, 'results', 'task_task-1')
  mkdirSync(results, { recursive: true })
  writeFileSync(
    join(results, 'ses_s-one.json'),
    sessionResultJson(sessionResult(await twoTraces(), { sessionId: 's-one' as SessionId })),
  )
  const saved = await runExport([stateDir], { view: 'tokens', includeMasked: true, out })
  t.match(saved, { sessions: 2, unreadable: [] })
  t.equal(JSON.parse(readFileSync(out, 'utf8').split('\n')[0] ?? '').status, 'COMPLETED', 'a result comes first')
  await journal.close()
  flipByte(join(shardFolder(stateDir, 2), 'data.mdb'), 'body of c1')
  const damaged = await storedSessions(stateDir, 's-', pieces)
  t.match(damaged.found, [{ session_id: 's-two' }])
  t.match(damaged.unreadable, [
    { where: 'session s-one', error: { code: 'STORE_DAMAGED', message: /record 0 of session s-one/ } },
  ])
  t.strictSame(await storedSessions(t.testdir(), 's-', pieces), { found: [], unreadable: [] })
})

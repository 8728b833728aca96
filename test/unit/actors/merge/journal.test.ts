// The way of entries into a shard that is full for a while: nothing is lost, the order holds, the intake is told.

import t from 'tap'
import { type Journal, shardJournal } from '../../../../actors/merge/journal.js'
import { realClock } from '../../../../actors/system/clock.js'
import type { ErrorData } from '../../../../src/domain/errors.js'
import type { CompletionId, SessionId } from '../../../../src/domain/ids.js'
import { insertCall, insertDelivered, sessionLog } from '../../../../src/ledger/session-log.js'
import { createLogger } from '../../../../src/observability/logger.js'
import { openRecordStore, type RecordStore } from '../../../../src/store/record-store.js'
import { completionRecord } from '../../../support/records.js'
import { noSmallDisk, smallDisk } from '../../../support/small-disk.js'

const clock = realClock()
const log = createLogger({ level: 'silent' })
const s1 = 's-1' as SessionId
const other = 's-0' as SessionId

const shard = (stateDir: string, maxBytes = 1 << 26): Promise<RecordStore> =>
  openRecordStore({ stateDir, shard: 1, mode: 'owner', maxBytes, retentionMs: 60_000 })

/** A log whose calls each bring `size` characters of their own. */
function session(sessionId: SessionId, size: number) {
  const made = sessionLog(sessionId)
  let number = 0
  return {
    log: made,
    call() {
      const name = `${sessionId}-c${number}` as CompletionId
      number += 1
      const originalRequest = String.fromCharCode(97 + (number % 26)).repeat(size)
      const entry = insertCall(made, completionRecord({ completionId: name, sessionId, originalRequest }))
      if (entry === null) throw new Error(`${name} is known`)
      return entry
    },
  }
}

/** The intake as it was told; `next` waits for another word. */
function intakeOf(journal: Journal) {
  const told: (ErrorData | null)[] = []
  let wake = () => {}
  journal.intake$.subscribe(error => {
    told.push(error)
    wake()
  })
  return {
    told,
    async until(wanted: string | null): Promise<void> {
      while ((told.at(-1)?.code ?? null) !== wanted || told.length === 0) {
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
    },
  }
}

t.test('what is stored comes back as the same log, and goes on', async t => {
  const stateDir = t.testdir()
  const first = shardJournal(await shard(stateDir), clock, log)
  t.equal(first.restore(s1), null)
  const one = session(s1, 100)
  await Promise.all([first.store(s1, one.call()), first.store(s1, one.call())])
  void first.store(s1, insertDelivered(one.log, 's-1-c1', 'no'))
  await first.store(s1, null)
  await first.close()
  const second = shardJournal(await shard(stateDir), clock, log)
  const restored = second.restore(s1)
  t.strictSame(restored?.sums, one.log.sums)
  await second.store(s1, one.call())
  await second.close()
  const third = shardJournal(await shard(stateDir), clock, log)
  t.equal(third.restore(s1)?.calls.length, 3)
  await third.close()
})

t.test('a full shard: what waits is written in order as soon as a session that is over makes room', async t => {
  const records = await shard(t.testdir(), 1 << 20)
  const journal = shardJournal(records, clock, log)
  const intake = intakeOf(journal)
  const over = session(other, 150_000)
  for (let count = 0; count < 3; count += 1) await journal.store(other, over.call())
  const one = session(s1, 150_000)
  const order: number[] = []
  const stored = [0, 1, 2, 3].map(number => journal.store(s1, one.call()).then(() => order.push(number)))
  await intake.until('STORE_FULL')
  t.ok(order.length < 4, 'not all are there')
  await journal.finish(other)
  await Promise.all(stored)
  await intake.until(null)
  t.strictSame(order, [0, 1, 2, 3])
  t.strictSame(
    records.sessions().map(({ sessionId, records: count }) => [sessionId, count]),
    [[s1, 4]],
  )
  t.equal(journal.restore(s1)?.calls.length, 4)
  await journal.close()
})

t.test('a full disk: nothing acknowledged is lost, and it resumes by itself', { skip: noSmallDisk() }, async t => {
  const disk = smallDisk('4m')
  t.teardown(() => disk.unmount())
  const journal = shardJournal(await shard(disk.folder), clock, log)
  const intake = intakeOf(journal)
  const one = session(s1, 50_000)
  await journal.store(s1, one.call())
  disk.fill(60_000)
  const acknowledged: number[] = [0]
  const stored = [1, 2, 3, 4, 5].map(number => journal.store(s1, one.call()).then(() => acknowledged.push(number)))
  await intake.until('STORE_FULL')
  t.equal(journal.restore(s1)?.calls.length, acknowledged.length, 'reading goes on')
  disk.empty()
  await Promise.all(stored)
  await intake.until(null)
  t.strictSame(acknowledged, [0, 1, 2, 3, 4, 5])
  await journal.close()
  const again = shardJournal(await shard(disk.folder), clock, log)
  t.equal(again.restore(s1)?.calls.length, 6)
  await again.close()
})

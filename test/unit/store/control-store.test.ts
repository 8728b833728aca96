// The control store by itself: what is put is there after a restart, what belongs together is one commit, and a store without room says so.

import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { KeptOutbox, KeptSession, KeptTask } from '../../../src/store/control-records.js'
import { type ControlStore, openControlStore } from '../../../src/store/control-store.js'
import { storeFolder } from '../../../src/store/lock.js'
import { taskRequest } from '../../support/rollout-world.js'
import { localRuntime } from '../../support/session-fixtures.js'

function folder(t: { teardown(run: () => unknown): unknown }): string {
  const path = mkdtempSync(join(tmpdir(), 'sextant-control-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const task = (over: Partial<KeptTask> = {}): KeptTask => ({
  taskId: 'task-1',
  generation: 1,
  arrival: 0,
  status: 'running',
  request: taskRequest(),
  runtime: localRuntime,
  sessionIds: ['s-1', 's-2'],
  deliveryId: 'd-1',
  delivery: null,
  createdAtMs: 1,
  updatedAtMs: 2,
  ...over,
})

const session = (sessionId: string, over: Partial<KeptSession> = {}): KeptSession => ({
  sessionId,
  taskId: 'task-1',
  generation: 1,
  index: 0,
  pair: 1,
  dispatchedAtMs: 3,
  result: null,
  ...over,
})

const outbox: KeptOutbox = {
  deliveryId: 'd-1',
  taskId: 'task-1',
  generation: 1,
  url: 'http://127.0.0.1:1/',
  attempts: 1,
  error: 'refused',
  firstAtMs: 5,
  nextAtMs: 6,
  expiresAtMs: 7,
}

const open = (stateDir: string, tasks: 'kept' | 'passing' = 'kept', maxBytes = 2 ** 28): Promise<ControlStore> =>
  openControlStore({ stateDir, maxBytes, tasks })

t.test('what was put is there at the next start, in order of arrival', async t => {
  const stateDir = folder(t)
  const first = await open(stateDir)
  const later = task({ taskId: 'a-later', arrival: 1, sessionIds: [], deliveryId: null })
  const pending = task({ status: 'completed', delivery: { state: 'pending', attempts: 0, error: null } })
  const done = { status: 'COMPLETED', calls: 1, sampledTokens: 2, usable: true, path: null, atMs: 4 } as const
  await Promise.all([
    first.putTask(later),
    first.putTask(task()),
    first.putSession(session('s-1', { result: done }), Uint8Array.of(1, 2, 3)),
    first.putSession(session('s-2', { index: 1 })),
    first.putTombstone({ taskId: 'early', untilMs: 9 }),
  ])
  await first.endTask(pending, outbox)
  await first.close()

  const second = await open(stateDir)
  t.strictSame(second.load(), {
    tasks: [pending, later],
    sessions: [session('s-1', { result: done }), session('s-2', { index: 1 })],
    outbox: [outbox],
    tombstones: [{ taskId: 'early', untilMs: 9 }],
  })
  t.strictSame([...second.resultBytes('s-1')], [1, 2, 3])
  t.throws(() => second.resultBytes('s-2'), { code: 'STORE_DAMAGED' })

  await second.settleOutbox('d-1', { state: 'delivered', attempts: 2, error: null })
  t.match(second.load(), { tasks: [{ delivery: { state: 'delivered', attempts: 2 } }, {}], outbox: [] })
  await second.settleOutbox('d-1', { state: 'undelivered', attempts: 3, error: 'late' })
  t.match(second.load(), { tasks: [{ delivery: { state: 'delivered' } }, {}] }, 'a delivery ends once')

  await second.forgetTask(pending)
  await second.dropTombstone('early')
  t.strictSame(second.load(), { tasks: [later], sessions: [], outbox: [], tombstones: [] })
  t.throws(() => second.resultBytes('s-1'), { code: 'STORE_DAMAGED' })
  await second.close()
})

t.test('tasks of one run stay apart from those that are kept, and go with it', async t => {
  const stateDir = folder(t)
  const kept = await open(stateDir)
  await kept.putTask(task())
  await kept.close()
  const passing = await open(stateDir, 'passing')
  t.strictSame(passing.load().tasks, [])
  await passing.putTask(task({ taskId: 'passing' }))
  mkdirSync(join(storeFolder(stateDir), 'control-passing-4194305-killed'))
  const beside = await open(stateDir, 'passing')
  t.strictSame(beside.load().tasks, [])
  await beside.close()
  t.equal(passing.load().tasks.length, 1, 'another run beside it takes nothing away')
  await passing.putTask(task({ taskId: 'passing', generation: 2 }))
  await passing.close()
  t.strictSame(
    readdirSync(storeFolder(stateDir)).filter(name => name.includes('passing')),
    [],
    'nothing is left, of a killed run neither',
  )
  const again = await open(stateDir)
  t.equal(again.load().tasks.length, 1)
  await again.close()
})

t.test('without room a task is refused, and what lets go of something is not', async t => {
  const store = await open(folder(t), 'kept', 2 ** 18)
  await store.putTask(task())
  await store.endTask(task(), outbox)
  await t.rejects(store.putSession(session('s-1'), new Uint8Array(2 ** 19)), { code: 'STORE_FULL' })
  t.strictSame(store.load().sessions, [], 'nothing of it is kept')
  await store.settleOutbox('d-1', { state: 'delivered', attempts: 2, error: null })
  t.strictSame(store.load().outbox, [])
  await store.close()
})

// The disk of the store runs full under a running session: tasks are refused, the session's answers wait, and all goes on by itself when
// there is room. And: one service a stateDir.

import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { agentTask, runService, scratch } from '../support/service.js'
import { noSmallDisk, smallDisk } from '../support/small-disk.js'

t.setTimeout(120_000)

t.test(
  'a full disk: nothing is taken that cannot be kept, nothing acknowledged is lost',
  { skip: noSmallDisk() },
  async t => {
    const folder = scratch(t)
    const disk = smallDisk('24m')
    mkdirSync(join(folder, 'state'))
    symlinkSync(disk.folder, join(folder, 'state/store'))
    const { connection, log } = await runService(t, {}, { threads: 'inline' }, folder)
    t.teardown(() => disk.unmount())
    const go = join(folder, 'go')
    for await (const { type, data } of connection.events()) {
      if (type === 'hello') await connection.submit(agentTask({}, { AGENT_PAUSE_FILE: go }))
      if (type === 'session.progressed' && Number(data['calls']) >= 1) break
    }
    disk.fill(0)
    await t.rejects(connection.submit(agentTask({ task_id: 'task-2' })), {
      message: /answered 503: the store has no room for \d+ bytes: the disk has \d+ left/,
    })
    writeFileSync(go, '')
    while (!log.lines.some(({ event }) => event === 'store-block')) await new Promise(setImmediate)
    t.notOk(log.lines.some(({ event }) => event === 'session-end'))
    disk.empty()
    const [result] = (await connection.task('task-1', 100)).results
    t.match(result, { status: 'COMPLETED', error: null, trajectory: { metadata: { ledger: { failed_calls: 0 } } } })
    const { calls } = (result as { trajectory: { metadata: { ledger: { calls: number } } } }).trajectory.metadata.ledger
    t.ok(calls >= 2, `${calls} calls, before and after`)
    await connection.submit(agentTask({ task_id: 'task-2' }))
    t.match((await connection.task('task-2', 100)).results, [{ status: 'COMPLETED' }])
  },
)

t.test('a second service on the same stateDir is refused by name', async t => {
  const { folder } = await runService(t, {}, { threads: 'inline' })
  await t.rejects(runService(t, {}, { threads: 'inline' }, folder), {
    code: 'STORE_IN_USE',
    message: new RegExp(`process id ${process.pid}; stop it, or name another stateDir`),
  })
})

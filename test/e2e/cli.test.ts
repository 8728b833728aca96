// The program as an operator uses it: config check, serve, submit, status, cancel, signals, the death of its parent.

import { existsSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { connectionTo } from '../../src/cli/connection.js'
import { readEndpoint } from '../../src/config/state-dir.js'
import { findProcesses } from '../../src/runtimes/processes.js'
import { MAIN, program } from '../support/program.js'
import { agentTask, scratch } from '../support/service.js'

t.setTimeout(180_000)

const CONFIG = '{ "control": { "port": 0 }, "stages": { "init": 1, "ready": 1, "running": 1, "postrun": 1 } }'

function home(t: Parameters<typeof scratch>[0]): string {
  const folder = scratch(t)
  writeFileSync(join(folder, 'cluster.json'), CONFIG)
  return folder
}

function taskFile(folder: string, task: unknown): string {
  const path = join(folder, 'task.json')
  writeFileSync(path, JSON.stringify(task))
  return path
}

t.test('--check-config prints the compiled plan; a bad config is exit code 2 and its problems', async t => {
  const folder = home(t)
  const good = await program(t, folder, ['--config', join(folder, 'cluster.json'), '--check-config']).ended
  t.equal(good.code, 0, good.stderr)
  t.match(JSON.parse(good.stdout), { stages: { init: 1 }, stateDir: join(folder, '.local/state/sextant') })
  writeFileSync(join(folder, 'bad.json'), '{ "stagse": {}, "limits": { "drain": 3 } }')
  const bad = await program(t, folder, ['--config', join(folder, 'bad.json')]).ended
  t.equal(bad.code, 2)
  t.match(bad.stderr, /limits\.drain: wanted a string, got 3\n {2}stagse: unknown key; did you mean "stages"\?/)
})

t.test('tree prints every child of the service, sessions below rollout', async t => {
  const { code, stdout } = await program(t, home(t), ['tree']).ended
  t.equal(code, 0)
  t.match(stdout, /^pair-k: .*rest-for-one; permanent, 5 in 30 s/m)
  t.match(stdout, /^rollout: .*\n {2}s-<uuid>: .*temporary/m)
})

t.test('serve, submit, status, cancel, SIGTERM', async t => {
  const folder = home(t)
  const config = ['--config', join(folder, 'cluster.json')]
  const service = program(t, folder, ['serve', ...config, '--log-level', 'warn'])
  const ready = await service.line(/sextant is ready/)
  t.match(
    ready,
    /control http:\/\/127\.0\.0\.1:\d+, models http:\/\/127\.0\.0\.1:\d+, control token in .*control-token$/,
  )
  t.equal(statSync(join(folder, '.local/state/sextant/control-token')).mode & 0o777, 0o600)

  const solved = await program(t, folder, ['submit', taskFile(folder, agentTask()), '--wait', ...config]).ended
  t.equal(solved.code, 0, solved.stderr)
  t.match(solved.stdout, /task task-1: completed, 1 of 1 sessions ended/)
  const failing = agentTask({ task_id: 'task-2', agent: { harness: 'shell', custom_shell: { command: 'exit 3' } } })
  const failed = await program(t, folder, ['submit', taskFile(folder, failing), '--wait', ...config]).ended
  t.equal(failed.code, 1, 'no session completed')
  const wrong = await program(t, folder, ['submit', taskFile(folder, { ...failing, num_rollouts: 2 }), ...config]).ended
  t.equal(wrong.code, 2)
  t.match(wrong.stderr, /answered 422: \n {2}body\.num_rollouts: unknown key; did you mean "num_samples"\?/)

  const status = await program(t, folder, ['status', ...config]).ended
  t.match(status.stdout, /task-1: completed\n {2}task-2: completed\npending sessions: 0/)
  t.equal((await program(t, folder, ['status', 'task-2', ...config]).ended).code, 1)
  const unknown = await program(t, folder, ['status', 'task-9', ...config]).ended
  t.match([unknown.code, unknown.stderr], [1, /there is no task "task-9"/])
  t.equal((await program(t, folder, ['watch', 'task-1', ...config]).ended).code, 0, 'an ended task is not waited for')
  t.equal((await program(t, folder, ['cancel', 'task-9', ...config]).ended).code, 1)
  t.equal((await program(t, folder, ['cancel', 'task-9', '--register-if-missing', ...config]).ended).code, 0)
  const denied = await program(t, folder, ['status', '--token', 'guess', ...config]).ended
  t.match([denied.code, denied.stderr], [1, /answered 401/])

  service.child.kill('SIGTERM')
  const end = await service.ended
  t.equal(end.code, 0, end.stderr)
  t.notOk(existsSync(join(folder, '.local/state/sextant/control.json')))
})

/** A service with one session whose agent hangs, with a process that left its group. */
async function hanging(t: Parameters<typeof scratch>[0]) {
  const folder = home(t)
  const state = join(folder, '.local/state/sextant')
  const service = program(t, folder, ['--config', join(folder, 'cluster.json'), '--log-level', 'warn'])
  await service.line(/sextant is ready/)
  const connection = connectionTo(
    readEndpoint(state)?.url ?? '',
    readFileSync(join(state, 'control-token'), 'utf8').trim(),
  )
  const command = 'sleep 600 & exec setsid sleep 600'
  for await (const { type, data } of connection.events()) {
    if (type === 'hello') await connection.submit(agentTask({ agent: { harness: 'shell', custom_shell: { command } } }))
    if (data['status'] === 'RUNNING') break
  }
  await connection.close()
  return { service, sessions: join(state, 'sessions') }
}

const leftovers = async (sessions: string) =>
  (await findProcesses({ markers: {}, folder: realpathSync(sessions) }))?.map(found => found.pid) ?? []

t.test('SIGINT in mid-run: the session is cancelled, its processes are gone, exit code 0', async t => {
  const { sessions, service } = await hanging(t)
  service.child.kill('SIGINT')
  const end = await service.ended
  t.equal(end.code, 0, end.stderr)
  t.strictSame(await leftovers(sessions), [])
})

t.test('a second signal stops at once, and still leaves no process', async t => {
  const { sessions, service } = await hanging(t)
  service.child.kill('SIGTERM')
  service.child.kill('SIGINT')
  const end = await service.ended
  t.equal(end.code, 1)
  t.strictSame(await leftovers(sessions), [])
})

t.test('--exit-with-parent: the service ends when the process that started it is killed', async t => {
  const folder = home(t)
  const command = `"${process.execPath}" "${MAIN}" --config "${folder}/cluster.json" --exit-with-parent --log-level error & wait`
  const shell = program(t, folder, ['-c', command], '/bin/bash')
  await shell.line(/sextant is ready/)
  shell.child.kill('SIGKILL')
  // Standard output closes when the last process that holds it has ended.
  await shell.ended
  t.notOk(existsSync(join(folder, '.local/state/sextant/control.json')))
})

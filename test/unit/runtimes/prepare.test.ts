import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Clock } from '../../../src/domain/clock.js'
import type { PrepareAction } from '../../../src/domain/task.js'
import { type PrepareInput, runPrepare } from '../../../src/runtimes/prepare.js'
import { type LocalSession, localSession, scratchFolder } from '../../support/local-runtime.js'
import { wallClock } from '../../support/wall-clock.js'

type Exec = Extract<PrepareAction, { type: 'exec' }>
const exec = (command: string, fields: Partial<Exec> = {}): Exec => ({
  type: 'exec',
  command,
  max_attempts: 1,
  retry_backoff_seconds: 0,
  ...fields,
})

async function prepare(t: Test, actions: readonly PrepareAction[], fields: Partial<PrepareInput> = {}) {
  const session: LocalSession = await localSession(t)
  const outcome = await runPrepare({
    runtime: session.runtime,
    actions,
    name: 'prepare',
    logsDir: join(session.handle.sessionDir, 'logs'),
    env: own => ({ SHARED: 'yes', ...own }),
    timeoutMs: null,
    clock: wallClock,
    ...fields,
  })
  return { outcome, ...session }
}

t.test('actions run in order, uploads and commands, with their own environment and logs', async t => {
  const source = scratchFolder(t)
  writeFileSync(join(source, 'file'), 'content')
  const { outcome, handle } = await prepare(t, [
    { type: 'upload_dir', source, target: 'repo' },
    { type: 'upload_file', source: join(source, 'file'), target: 'single' },
    exec('cat file; echo "$SHARED $MINE" >&2', { cwd: 'repo', env: { MINE: '1' } }),
  ])
  t.strictSame(outcome, { status: 'done', error: null, attempts: 3 })
  const log = (name: string) => readFileSync(join(handle.sessionDir, 'logs', name), 'utf8')
  t.equal(log('prepare.02.stdout.log'), 'content')
  t.equal(log('prepare.02.stderr.log'), 'yes 1\n')
})

t.test('a command that fails is repeated as often as it may be, each attempt with a log of its own', async t => {
  const sleeps: number[] = []
  const clock: Clock = {
    now: wallClock.now,
    sleep: async (ms, signal) => (signal ? wallClock.sleep(ms, signal) : void sleeps.push(ms)),
  }
  const command = 'echo try >> tries; [ "$(wc -l < tries)" -ge 3 ]'
  const action = exec(command, { max_attempts: 5, retry_backoff_seconds: 4 })
  const { outcome, handle } = await prepare(t, [action], { clock })
  t.strictSame(outcome, { status: 'done', error: null, attempts: 3 })
  t.strictSame(
    readdirSync(join(handle.sessionDir, 'logs')).filter(name => name.endsWith('.stdout.log')),
    ['prepare.00.attempt-01.stdout.log', 'prepare.00.attempt-02.stdout.log', 'prepare.00.attempt-03.stdout.log'],
  )
  t.strictSame(sleeps, [4_000, 5_000], 'doubled, at most 5 s')
})

t.test('when the attempts are used up the error names the action, the code and the end of the output', async t => {
  const { outcome, runtime } = await prepare(t, [
    exec('true'),
    exec('echo why >&2; exit 7', { max_attempts: 2 }),
    exec('touch ran'),
  ])
  t.strictSame(outcome, { status: 'failed', error: 'prepare[1]: the command exited with 7: why', attempts: 3 })
  t.equal(await runtime.readFile('ran', 1), null)
})

t.test('a command that runs into the budget is a time-out and is not repeated', async t => {
  const { outcome } = await prepare(t, [exec('sleep 300', { max_attempts: 5 })], { timeoutMs: 300 })
  t.match(outcome, { status: 'timeout', attempts: 1 })
  const late = await prepare(t, [exec('true')], { timeoutMs: 0 })
  t.match(late.outcome, { status: 'timeout', attempts: 0 })
})

t.test('a failed upload is a failure with its reason, and is not repeated', async t => {
  const { outcome } = await prepare(t, [{ type: 'upload_file', source: '/no/such/file', target: 'x' }])
  t.match(outcome, { status: 'failed', error: /^prepare\[0\]: upload source "\/no\/such\/file"/, attempts: 1 })
})

t.test('a cancel ends the running command and what would follow', async t => {
  const cancel = new AbortController()
  const { outcome, runtime } = await prepare(t, [exec('sleep 300', { max_attempts: 3 }), exec('touch ran')], {
    signal: cancel.signal,
    onProcess: () => cancel.abort(),
  })
  t.match(outcome, { status: 'cancelled', attempts: 1 })
  t.equal(await runtime.readFile('ran', 1), null)
})

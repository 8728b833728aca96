import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { findLeftovers, findProcesses, SESSION_MARKER } from '../../../src/runtimes/processes.js'
import { runtimePlugin } from '../../../src/runtimes/registry.js'
import { localDeps, localSession, localSpec, scratchFolder } from '../../support/local-runtime.js'

const hasProc = existsSync('/proc/self/environ')

const living = async (sessionId: string) => (await findProcesses({ markers: { [SESSION_MARKER]: sessionId } })) ?? []

t.test('a command runs in the workspace with its code, both streams and files of its output', async t => {
  const { runtime, handle } = await localSession(t)
  const log = join(handle.sessionDir, 'logs', 'agent', 'step.00')
  const result = await runtime.exec({
    command: 'pwd; echo oops >&2; exit 3',
    env: {},
    stdoutPath: `${log}.stdout.log`,
    stderrPath: `${log}.stderr.log`,
    combinedPath: `${log}.txt`,
  })
  t.match(result, { returnCode: 3, signal: null, timedOut: false, cancelled: false, truncatedBytes: 0 })
  t.equal(result.stdout, `${handle.workspaceDir}\n`)
  t.equal(result.stderr, 'oops\n')
  t.equal(readFileSync(`${log}.stdout.log`, 'utf8'), result.stdout)
  t.equal(readFileSync(`${log}.stderr.log`, 'utf8'), 'oops\n')
  t.equal(readFileSync(`${log}.txt`, 'utf8').length, result.stdout.length + result.stderr.length)
  t.equal(statSync(handle.sessionDir).mode & 0o777, 0o700)
})

t.test('a pipeline fails when its first command fails', async t => {
  const { runtime } = await localSession(t)
  t.equal((await runtime.exec({ command: 'exit 3 | cat', env: {} })).returnCode, 3)
})

t.test('standard input reaches the command, and a command that does not read it is no fault', async t => {
  const { runtime } = await localSession(t)
  const text = 'x'.repeat(300_000)
  t.equal((await runtime.exec({ command: 'wc -c', env: {}, stdin: text })).stdout.trim(), '300000')
  t.equal((await runtime.exec({ command: 'true', env: {}, stdin: text })).returnCode, 0)
})

t.test('nothing of the service leaks into a command; the marker and HOME cannot be replaced', async t => {
  const { runtime, handle } = await localSession(t)
  const result = await runtime.exec({
    command: 'env',
    env: { HOME: '/elsewhere', SEXTANT_SESSION: 'other', MINE: '1' },
  })
  const namesIn = (text: string): string[] => text.split('\n').map(line => line.split('=')[0] ?? '')
  // The test runner itself adds variables to every process that a test starts.
  const ofRunner = new Set(namesIn(execFileSync('env', { env: {}, encoding: 'utf8' })))
  const leaked = namesIn(result.stdout).filter(name => /^(npm_|NODE_)/.test(name) && !ofRunner.has(name))
  t.strictSame(leaked, [])
  t.match(result.stdout, `\nHOME=${handle.homeDir}\n`)
  t.match(result.stdout, `SEXTANT_SESSION=${handle.sessionId}\n`)
  t.match(result.stdout, 'MINE=1\n')
})

t.test('one MiB on both pipes at once is drained; the tail is kept and the cut is told', async t => {
  const { runtime } = await localSession(t, { deps: { outputBytes: 1_000 } })
  const command = 'head -c 1048576 /dev/zero | tr "\\0" a; head -c 1048576 /dev/zero | tr "\\0" b >&2; printf end'
  const result = await runtime.exec({ command, env: {} })
  t.equal(result.returnCode, 0)
  t.equal(result.stdout, `${'a'.repeat(997)}end`)
  t.equal(result.stderr, 'b'.repeat(1_000))
  t.equal(result.truncatedBytes, 2 * 1_048_576 + 3 - 2_000)
})

t.test('an output file stops at its cap and the rest is counted', async t => {
  const { runtime, handle } = await localSession(t, { deps: { fileBytes: 10 } })
  const path = join(handle.sessionDir, 'logs', 'capped.log')
  const result = await runtime.exec({ command: 'printf 0123456789abc', env: {}, stdoutPath: path })
  t.equal(readFileSync(path, 'utf8'), '0123456789')
  t.equal(result.unwrittenBytes, 3)
  t.equal(result.stdout, '0123456789abc')
})

t.test('a time limit gives rc -1 and keeps the output; what the command started is gone', async t => {
  const { runtime, handle } = await localSession(t)
  const command = 'echo before; setsid sleep 300 & sleep 300'
  const result = await runtime.exec({ command, env: {}, timeoutMs: 500 })
  t.match(result, { returnCode: -1, timedOut: true, cancelled: false, stdout: 'before\n' })
  if (hasProc) t.strictSame(await living(handle.sessionId), [])
})

t.test('a cancel ends the command and says so', async t => {
  const { runtime } = await localSession(t)
  const cancel = new AbortController()
  const result = await runtime.exec(
    { command: 'trap "" TERM; sleep 300', env: {} },
    { signal: cancel.signal, onProcess: () => cancel.abort() },
  )
  t.match(result, { returnCode: -1, timedOut: false, cancelled: true })
  const late = await runtime.exec({ command: 'true', env: {} }, { signal: cancel.signal })
  t.equal(late.cancelled, true, 'nothing starts after the cancel')
})

t.test('a background service that holds the pipes does not hold up the command, and survives it', async t => {
  const { runtime, handle } = await localSession(t)
  const result = await runtime.exec({ command: 'sleep 300 & echo started', env: {} })
  t.match(result, { returnCode: 0, stdout: 'started\n' })
  t.ok(result.durationMs < 10_000)
  if (hasProc) t.equal((await living(handle.sessionId)).length, 1)
})

t.test('destroy kills a setsid grandchild that left the folder, proves it, and may be repeated', async t => {
  if (!hasProc) return t.comment('no /proc on this system: the proof cannot be made')
  const { plugin, handle, runtime } = await localSession(t)
  await runtime.exec({ command: 'cd / && (trap "" TERM; setsid sleep 300) > /dev/null 2>&1 &', env: {} })
  t.ok((await living(handle.sessionId)).length > 0)
  const report = await plugin.destroy(handle)
  t.match(report, { proven: true, method: 'proc-scan' })
  t.ok(report.killed >= 1)
  t.strictSame(await living(handle.sessionId), [])
  t.strictSame(await plugin.destroy(handle), { proven: true, killed: 0, method: 'proc-scan' })
})

t.test('a process that cleared its environment is found by its folder', async t => {
  if (!hasProc) return t.comment('no /proc on this system')
  const { plugin, handle, runtime } = await localSession(t)
  await runtime.exec({ command: 'env -i setsid sleep 300 > /dev/null 2>&1 &', env: {} })
  const report = await plugin.destroy(handle)
  t.match(report, { proven: true, killed: 1 })
})

t.test('the fresh copy ends without the session, and a session whose id is a prefix is not touched', async t => {
  if (!hasProc) return t.comment('no /proc on this system')
  const one = await localSession(t, { sessionId: 's-1' })
  const other = await localSession(t, { sessionId: 's-12' })
  const fresh = await one.plugin.create({
    sessionId: 's-1',
    sessionDir: one.handle.sessionDir,
    spec: localSpec,
    role: 'eval',
  })
  t.equal(fresh.workspaceDir, join(one.handle.sessionDir, 'eval_runtime', 'workspace'))
  for (const runtime of [one.runtime, other.runtime, one.plugin.attach(fresh)]) {
    await runtime.exec({ command: 'sleep 300 > /dev/null 2>&1 &', env: {} })
  }
  t.match(await one.plugin.destroy(fresh), { proven: true, killed: 1 })
  t.match(await one.plugin.destroy(one.handle), { proven: true, killed: 1 })
  t.equal((await living('s-12')).length, 1)
})

t.test('leftovers of dead sessions are found below their own state folder only', async t => {
  if (!hasProc) return t.comment('no /proc on this system')
  const { runtime, handle, folder } = await localSession(t)
  await runtime.exec({ command: 'sleep 300 > /dev/null 2>&1 &', env: {} })
  const dead = (id: string) => id === handle.sessionId
  t.match(await findLeftovers(folder, dead), [{ sessionId: handle.sessionId }])
  t.strictSame(await findLeftovers(folder, () => false), [])
  t.strictSame(await findLeftovers(scratchFolder(t), dead), [])
})

t.test('the start of a process is told with its start time', async t => {
  const { runtime } = await localSession(t)
  const told: unknown[] = []
  await runtime.exec({ command: 'true', env: {} }, { onProcess: started => told.push(started) })
  t.match(told, [{ pid: Number, startTime: hasProc ? /^\d+$/ : null }])
})

t.test('a program that does not exist is RUNTIME_FAILED', async t => {
  const { runtime } = await localSession(t)
  await t.rejects(runtime.exec({ command: ['no-such-program'], env: {} }), {
    code: 'RUNTIME_FAILED',
    message: /cannot start no-such-program/,
  })
  await t.rejects(runtime.exec({ command: 'true', cwd: 'missing', env: {} }), { code: 'RUNTIME_FAILED' })
})

t.test('an upload merges, keeps modes, and copies links as links', async t => {
  const { runtime, handle } = await localSession(t)
  const source = scratchFolder(t)
  mkdirSync(join(source, 'a'))
  writeFileSync(join(source, 'a', 'run.sh'), 'x', { mode: 0o755 })
  symlinkSync('run.sh', join(source, 'a', 'link'))
  const target = join(handle.workspaceDir, 'repo')
  mkdirSync(join(target, 'a'), { recursive: true })
  writeFileSync(join(target, 'a', 'kept'), 'kept')
  await runtime.upload(source, 'repo')
  await runtime.upload(source, 'repo')
  t.equal(readFileSync(join(target, 'a', 'kept'), 'utf8'), 'kept')
  t.equal(statSync(join(target, 'a', 'run.sh')).mode & 0o777, 0o755)
  t.ok(lstatSync(join(target, 'a', 'link')).isSymbolicLink())
  await runtime.upload(join(source, 'a', 'run.sh'), 'repo/renamed.sh')
  await runtime.upload(join(source, 'a', 'run.sh'), 'repo/into/')
  t.equal(readFileSync(join(target, 'renamed.sh'), 'utf8'), 'x')
  t.equal(readFileSync(join(target, 'into', 'run.sh'), 'utf8'), 'x')
})

t.test('paths that leave the session folder are refused, by text and by link', async t => {
  const { runtime, handle } = await localSession(t)
  const outside = scratchFolder(t)
  const refused = { code: 'RUNTIME_PATH_REFUSED' }
  symlinkSync(outside, join(handle.workspaceDir, 'link'))
  symlinkSync(join(outside, 'file'), join(handle.workspaceDir, 'file-link'))
  const source = join(outside, 'source')
  writeFileSync(source, 'secret')
  for (const target of ['../../escape', '/etc/escape', 'link/escape', 'file-link']) {
    await t.rejects(runtime.upload(source, target), refused, `upload to ${target}`)
    await t.rejects(runtime.writeFile(target, 'x'), refused, `write to ${target}`)
  }
  for (const path of ['../../x', 'link/source']) await t.rejects(runtime.readFile(path, 10), refused, `read ${path}`)
  t.equal(await runtime.readFile('missing', 10), null)
  await t.rejects(runtime.exec({ command: 'true', cwd: 'link', env: {} }), refused)
  await t.rejects(runtime.exec({ command: 'true', env: {}, stdoutPath: join(outside, 'log') }), refused)
  symlinkSync(outside, join(handle.sessionDir, 'logs', 'linked'))
  const linked = join(handle.sessionDir, 'logs', 'linked', 'log')
  await t.rejects(runtime.exec({ command: 'true', env: {}, stdoutPath: linked }), refused)
  t.strictSame([existsSync(join(outside, 'escape')), existsSync(join(outside, 'file'))], [false, false])
})

t.test('a state folder that is reached through a link works like any other', async t => {
  const { folder } = await localSession(t)
  const link = join(scratchFolder(t), 'link')
  symlinkSync(folder, link)
  const plugin = runtimePlugin('local', localDeps)
  const sessionDir = join(link, 's-linked')
  const handle = await plugin.create({ sessionId: 's-linked', sessionDir, spec: localSpec, role: 'agent' })
  t.equal(handle.sessionDir, sessionDir)
  const runtime = plugin.attach(handle)
  await runtime.writeFile('file', 'x')
  const stdoutPath = join(sessionDir, 'logs', 'log')
  t.equal((await runtime.exec({ command: 'cat file; sleep 300 >/dev/null 2>&1 &', env: {}, stdoutPath })).stdout, 'x')
  t.equal(readFileSync(stdoutPath, 'utf8'), 'x')
  if (hasProc) t.match(await findLeftovers(link, id => id === 's-linked'), [{ sessionId: 's-linked' }])
  if (hasProc) t.match(await plugin.destroy(handle), { proven: true, killed: 1 })
})

t.test('a source outside the configured roots is refused', async t => {
  const allowed = scratchFolder(t)
  const outside = scratchFolder(t)
  writeFileSync(join(outside, 'x'), 'x')
  symlinkSync(join(outside, 'x'), join(allowed, 'link'))
  const { runtime } = await localSession(t, { deps: { sourceRoots: [allowed] } })
  await t.rejects(runtime.upload(join(outside, 'x'), 'x'), { code: 'RUNTIME_PATH_REFUSED' })
  await t.rejects(runtime.upload(join(allowed, 'link'), 'x'), { code: 'RUNTIME_PATH_REFUSED' })
})

t.test('a file is written with its mode and read with a cap; a fifo is not read', async t => {
  const { runtime } = await localSession(t)
  await runtime.writeFile('deep/er/key', 'secret', 0o600)
  t.equal(Buffer.from((await runtime.readFile('deep/er/key', 3)) ?? []).toString(), 'sec')
  await runtime.exec({ command: 'mkfifo pipe', env: {} })
  t.equal(await runtime.readFile('pipe', 10), null)
  await t.rejects(runtime.writeFile('pipe', 'x'), { code: 'RUNTIME_PATH_REFUSED' })
})

t.test('what the runtime cannot hold is refused at submit, with the path of the field', t => {
  const plugin = runtimePlugin('local', localDeps)
  t.strictSame(plugin.check(localSpec), [])
  const problems = plugin.check({
    ...localSpec,
    image: 'debian',
    network: 'none',
    workdir: '/testbed',
    memory_mb: 5,
    prepare: [
      { type: 'upload_dir', source: '/x', target: '../up' },
      { type: 'exec', command: 'x', cwd: '/abs', env: { HOME: '/h' }, max_attempts: 1, retry_backoff_seconds: 0 },
    ],
  })
  t.strictSame(
    problems.map(problem => problem.path),
    ['image', 'network', 'memory_mb', 'workdir', 'prepare[0].target', 'prepare[1].cwd', 'prepare[1].env.HOME'],
  )
  t.throws(() => runtimePlugin('podman', localDeps), {
    code: 'TASK_INVALID',
    message: /wanted one of local, got "podman"/,
  })
  t.end()
})

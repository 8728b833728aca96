// What lies below stateDir: a token only its owner reads, the endpoint, and one sessions folder per living service.

import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  claimSessionsFolder,
  controlToken,
  makeFolder,
  readEndpoint,
  removeEndpoint,
  writeEndpoint,
} from '../../../src/config/state-dir.js'

const planOf = (stateDir: string, token: string | null = null) => ({
  stateDir,
  security: { token, openRoutes: [], callbackHosts: [], sourceRoots: [] },
})
const modeOf = (path: string) => statSync(path).mode & 0o777

t.test('a random token in a 0600 file below a 0700 folder, kept over restarts', async t => {
  const stateDir = join(t.testdir(), 'deep/state')
  const { token, file } = controlToken(planOf(stateDir))
  t.match(token, /^[A-Za-z0-9_-]{43}$/)
  t.equal(file, join(stateDir, 'control-token'))
  t.equal(modeOf(stateDir), 0o700)
  t.equal(modeOf(file ?? ''), 0o600)
  t.equal(controlToken(planOf(stateDir)).token, token)
})

t.test('a token file that others may read, or that holds no token, is made anew', async t => {
  const stateDir = t.testdir()
  const first = controlToken(planOf(stateDir))
  chmodSync(first.file ?? '', 0o644)
  const second = controlToken(planOf(stateDir))
  t.not(second.token, first.token)
  t.equal(modeOf(second.file ?? ''), 0o600)
  writeFileSync(second.file ?? '', 'guess')
  t.match(controlToken(planOf(stateDir)).token, /^[A-Za-z0-9_-]{43}$/)
})

t.test('a configured token is written nowhere', async t => {
  const stateDir = t.testdir()
  t.strictSame(controlToken(planOf(stateDir, 'configured-token')), { token: 'configured-token', file: null })
  t.notOk(existsSync(join(stateDir, 'control-token')))
})

t.test('the endpoint is there while its service lives', async t => {
  const stateDir = t.testdir()
  t.equal(readEndpoint(stateDir), null)
  writeEndpoint(stateDir, { url: 'http://127.0.0.1:1', pid: 7 })
  t.strictSame(readEndpoint(stateDir), { url: 'http://127.0.0.1:1', pid: 7 })
  removeEndpoint(stateDir, 8)
  t.ok(readEndpoint(stateDir), 'another service has written since')
  removeEndpoint(stateDir, 7)
  t.equal(readEndpoint(stateDir), null)
})

t.test('two living services never share a sessions folder; the folder of a dead one is taken again', async t => {
  const stateDir = t.testdir()
  const first = claimSessionsFolder(stateDir)
  const second = claimSessionsFolder(stateDir)
  t.strictSame([first.path, second.path], [join(stateDir, 'sessions'), join(stateDir, 'sessions-2')])
  t.equal(modeOf(first.path), 0o700)
  first.release()
  t.equal(claimSessionsFolder(stateDir).path, first.path)
  for (const owner of ['999999999 1\n', `${process.pid} 1\n`, 'nonsense\n']) {
    writeFileSync(`${second.path}.owner`, owner)
    t.equal(claimSessionsFolder(stateDir).path, second.path, `held by ${owner.trim()}, who does not live`)
  }
  t.match(readFileSync(`${second.path}.owner`, 'utf8'), new RegExp(`^${process.pid} `))
})

t.test('a folder that cannot be made is named', async t => {
  const folder = t.testdir({ file: '' })
  t.throws(() => makeFolder(join(folder, 'file/below')), {
    code: 'CONFIG_INVALID',
    message: /file\/below cannot be made/,
  })
  mkdirSync(join(folder, 'there'))
  makeFolder(join(folder, 'there'))
})

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { HarnessPreset } from '../../../src/harnesses/base.js'
import {
  harnessInstallDir,
  type InstallInput,
  type InstallProgress,
  installHarness,
  readInstalled,
} from '../../../src/harnesses/install.js'
import { shell } from '../../../src/harnesses/shell.js'
import { scratchFolder } from '../../support/local-runtime.js'
import { tinyRegistry } from '../../support/npm-registry.js'
import { wallClock } from '../../support/wall-clock.js'

const preset: HarnessPreset = {
  ...shell,
  id: 'tiny',
  version: '1.2.3',
  install: { package: 'tiny-agent', node: null, bin: 'node_modules/.bin/tiny' },
}

/** Prints its version, and notes in its HOME that it ran: a CLI writes there even then. */
const script = (version: string) =>
  `#!/usr/bin/env node\nrequire('fs').writeFileSync(process.env.HOME + '/ran', '');console.log('tiny-agent ${version} (build 7)')\n`

const setUp = async (t: Parameters<typeof tinyRegistry>[0], says = '1.2.3') => {
  const folder = scratchFolder(t)
  const pack = { name: 'tiny-agent', version: '1.2.3', bin: 'tiny', script: script(says) }
  const registry = await tinyRegistry(t, folder, pack)
  const cacheDir = join(folder, 'cache')
  const input: InstallInput = { preset, cacheDir, env: registry.env, clock: wallClock }
  return { registry, cacheDir, input, installDir: harnessInstallDir(preset, cacheDir) ?? '' }
}

t.test('a CLI is installed into a folder of its own, checked by running it, and found the next time', async t => {
  const { registry, input, installDir, cacheDir } = await setUp(t)
  const phases: InstallProgress['phase'][] = []
  const first = await installHarness({ ...input, onProgress: ({ phase }) => phases.push(phase) })
  t.match(first, { installDir, version: '1.2.3', cached: false, nodeBinDir: join(installDir, 'node-bin') })
  t.ok(first.diskBytes > script('1.2.3').length)
  t.ok(first.downloadedBytes >= registry.tarballBytes, 'what npm fetched is counted')
  t.strictSame([phases[0], phases.at(-1)], ['installing', 'checking'])
  t.strictSame(readdirSync(first.nodeBinDir), ['node'])
  t.match(readFileSync(join(installDir, 'package.json'), 'utf8'), '"tiny-agent": "1.2.3"')
  t.notOk(existsSync(join(installDir, '.version-home')))
  const again = await installHarness(input)
  t.match(again, { version: '1.2.3', cached: true, diskBytes: first.diskBytes, downloadedBytes: first.downloadedBytes })
  t.equal(registry.downloads(), 1)
  t.strictSame(readdirSync(join(cacheDir, 'harnesses')), ['tiny@1.2.3'], 'the lock is gone')
  t.match(await readInstalled(installDir), { version: '1.2.3' })
})

t.test('a half-made install is thrown away and made anew', async t => {
  const { input, installDir } = await setUp(t)
  mkdirSync(join(installDir, 'node_modules', '.bin'), { recursive: true })
  writeFileSync(join(installDir, 'node_modules', '.bin', 'tiny'), 'broken')
  writeFileSync(join(installDir, 'left-over'), 'x')
  await t.rejects(readInstalled(installDir), { code: 'HARNESS_INSTALL_FAILED' })
  t.match(await installHarness(input), { cached: false, version: '1.2.3' })
  t.notOk(existsSync(join(installDir, 'left-over')))
  writeFileSync(join(installDir, '.sextant-ready.json'), '{"installDir":"/elsewhere","version":"1.2.3"}')
  await t.rejects(readInstalled(installDir), { code: 'HARNESS_INSTALL_FAILED' }, 'a marker of another folder')
  writeFileSync(join(installDir, '.sextant-ready.json'), '{"cut')
  await t.rejects(readInstalled(installDir), { code: 'HARNESS_INSTALL_FAILED' }, 'a marker that was cut')
  t.match(await installHarness(input), { cached: false })
  rmSync(join(installDir, 'node_modules', '.bin', 'tiny'))
  t.match(await installHarness(input), { cached: false }, 'the program is gone')
})

t.test('of several that ask at once one installs and the others wait for it', async t => {
  const { registry, input } = await setUp(t)
  const waited: string[] = []
  const onProgress = ({ phase }: InstallProgress) => {
    if (phase === 'waiting') waited.push(phase)
  }
  const all = await Promise.all([1, 2, 3].map(() => installHarness({ ...input, onProgress })))
  t.equal(all.filter(({ cached }) => !cached).length, 1)
  t.ok(waited.length > 0)
  t.equal(registry.downloads(), 1)
})

t.test('a program that says another version is no install, and leaves no ready marker', async t => {
  const { input, installDir } = await setUp(t, '9.9.9')
  const refused = { code: 'HARNESS_INSTALL_FAILED', message: 'tiny: wanted version 1.2.3, the program says 9.9.9' }
  await t.rejects(installHarness(input), refused)
  await t.rejects(readInstalled(installDir), { code: 'HARNESS_INSTALL_FAILED' })
})

t.test('a version that does not exist fails with what npm said; a cancel leaves nothing for ready', async t => {
  const { input, cacheDir } = await setUp(t)
  const missing = { code: 'HARNESS_INSTALL_FAILED', message: /^npm install exited with 1.*tiny-agent/s }
  await t.rejects(installHarness({ ...input, version: '7.7.7' }), missing)
  const cancel = new AbortController()
  const cancelled = installHarness({ ...input, signal: cancel.signal, onProgress: () => cancel.abort() })
  await t.rejects(cancelled, { code: 'HARNESS_INSTALL_FAILED', message: /cancelled/ })
  t.notOk(existsSync(join(cacheDir, 'harnesses', 'tiny@1.2.3', '.sextant-ready.json')))
  t.match(await installHarness(input), { cached: false })
})

t.test('a preset without a CLI has nothing to install', async t => {
  t.equal(harnessInstallDir(shell, '/cache'), null)
  await t.rejects(installHarness({ preset: shell, cacheDir: '/cache', env: {}, clock: wallClock }), {
    code: 'HARNESS_INSTALL_FAILED',
  })
})

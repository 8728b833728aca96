// Installs a preset's CLI from the npm registry into the cache folder, once for all sessions: under a lock, with a package.json
// of its own, the ready marker written last. A folder without a valid marker is a broken install and is made anew.

import { access, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../domain/clock.js'
import { errorData, RolloutError } from '../domain/errors.js'
import { isObject } from '../domain/json.js'
import { commandPath } from '../runtimes/environment.js'
import type { HarnessInstall, HarnessPreset } from './base.js'
import { withFolderLock } from './install/lock.js'
import { bytesInFolder, bytesSince } from './install/measure.js'
import { runTool, type ToolContext } from './install/tool.js'

export { requestedVersion } from './shared/settings.js'

const MARKER = '.sextant-ready.json'
const INSTALL_LIMIT_MS = 10 * 60_000
const VERSION_LIMIT_MS = 60_000
const PROGRESS_INTERVAL_MS = 1_000
const XDG_NAMES = ['XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_STATE_HOME', 'XDG_CACHE_HOME'] as const

export interface InstalledHarness {
  readonly installDir: string
  /** Holds `node` and nothing else; comes first on the harness's PATH. */
  readonly nodeBinDir: string
  /** What the CLI said when asked. */
  readonly version: string
  /** Bytes of all files below `installDir`. */
  readonly diskBytes: number
  /** Bytes that npm's cache grew by during the install: what came over the network, other npm runs at that time included. */
  readonly downloadedBytes: number
}

export interface InstallProgress {
  readonly phase: 'waiting' | 'installing' | 'checking'
  readonly harness: string
  readonly version: string
  readonly elapsedMs: number
  /** Bytes unpacked by now; null where it is not measured. */
  readonly diskBytes: number | null
}

export interface InstallInput {
  readonly preset: HarnessPreset
  /** null = the preset's pin. */
  readonly version?: string | null
  readonly cacheDir: string
  /** Environment of the service; PATH, HOME, proxies and where packages come from are used, the rest is not. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: InstallProgress) => void
}

/** Folder of a preset's CLI at a version; null for presets without one. */
export function harnessInstallDir(preset: HarnessPreset, cacheDir: string, version?: string | null): string | null {
  if (preset.install === null) return null
  return join(cacheDir, 'harnesses', `${preset.id}@${version ?? preset.version}`)
}

/**
 * Returns at once when the CLI is there. Several processes may ask for the same one: one installs, the others wait.
 * Throws HARNESS_INSTALL_FAILED, also when `signal` fires; nothing half-made is ever taken for ready.
 */
export async function installHarness(input: InstallInput): Promise<InstalledHarness & { readonly cached: boolean }> {
  const { preset, cacheDir } = input
  const version = input.version ?? preset.version
  const installDir = harnessInstallDir(preset, cacheDir, version)
  if (preset.install === null || installDir === null || version === null) {
    throw new RolloutError('HARNESS_INSTALL_FAILED', `harness ${preset.id} has nothing to install`)
  }
  const install = preset.install
  const ready = await readMarker(installDir, install.bin)
  if (ready) return { ...ready, cached: true }
  const startedAt = input.clock.now()
  const progress = (phase: InstallProgress['phase'], diskBytes: number | null = null) =>
    input.onProgress?.({ phase, harness: preset.id, version, elapsedMs: input.clock.now() - startedAt, diskBytes })
  await mkdir(join(cacheDir, 'harnesses'), { recursive: true })
  return await withFolderLock(
    { folder: installDir, clock: input.clock, ...(input.signal && { signal: input.signal }) },
    () => progress('waiting'),
    async signal => {
      const made = await readMarker(installDir, install.bin)
      if (made) return { ...made, cached: true }
      const context: ToolContext = { env: installEnvironment(input.env), clock: input.clock, signal }
      return { ...(await makeInstall(context, preset.id, install, version, installDir, progress)), cached: false }
    },
  )
}

/** Reads what an install left. Throws HARNESS_INSTALL_FAILED when `installDir` holds no finished install. */
export async function readInstalled(installDir: string): Promise<InstalledHarness> {
  const ready = await readMarker(installDir, null)
  if (ready) return ready
  throw new RolloutError('HARNESS_INSTALL_FAILED', `${installDir} holds no finished install`)
}

async function makeInstall(
  context: ToolContext,
  id: string,
  install: HarnessInstall,
  version: string,
  installDir: string,
  progress: (phase: InstallProgress['phase'], diskBytes?: number | null) => void,
): Promise<InstalledHarness> {
  await rm(installDir, { recursive: true, force: true })
  await mkdir(installDir, { recursive: true })
  const dependencies = { [install.package]: version, ...(install.node !== null && { node: install.node }) }
  await writeFile(join(installDir, 'package.json'), JSON.stringify({ private: true, dependencies }, null, 2))
  const npmCache = await runTool(
    context,
    ['npm', 'config', 'get', 'cache', '--no-update-notifier'],
    installDir,
    VERSION_LIMIT_MS,
  )
  const startedAt = context.clock.now()
  progress('installing')
  const settled = new AbortController()
  const watching = watch(context.clock, settled.signal, async () => {
    progress('installing', await bytesInFolder(join(installDir, 'node_modules')))
  })
  try {
    // Install scripts of packages run the program once, which then writes into the user's own folders.
    const home = join(installDir, '.install-home')
    const xdg = Object.fromEntries(XDG_NAMES.map(name => [name, join(home, name.toLowerCase())]))
    const flags = ['--no-audit', '--no-fund', '--no-update-notifier', '--omit=dev', '--loglevel=error']
    const argv = ['npm', 'install', ...flags, '--engine-strict=false'] as const
    await runTool({ ...context, env: { ...context.env, ...xdg } }, argv, installDir, INSTALL_LIMIT_MS)
    await rm(home, { recursive: true, force: true })
  } finally {
    settled.abort()
    await watching
  }
  const downloadedBytes = await bytesSince(join(npmCache.trim(), '_cacache', 'content-v2'), startedAt)
  progress('checking')
  const nodeBinDir = join(installDir, 'node-bin')
  await mkdir(nodeBinDir)
  const node = install.node === null ? process.execPath : join(installDir, 'node_modules', 'node', 'bin', 'node')
  await symlink(node, join(nodeBinDir, 'node'))
  const found = await versionOf(context, join(installDir, install.bin), nodeBinDir, installDir)
  if (found !== version) {
    throw new RolloutError('HARNESS_INSTALL_FAILED', `${id}: wanted version ${version}, the program says ${found}`)
  }
  const diskBytes = await bytesInFolder(installDir)
  const ready = { installDir, nodeBinDir, version: found, diskBytes, downloadedBytes }
  await writeFile(join(installDir, MARKER), JSON.stringify(ready, null, 2))
  return ready
}

/** Runs `<bin> --version` in a throw-away HOME: CLIs write into it even then. */
async function versionOf(context: ToolContext, bin: string, nodeBinDir: string, installDir: string): Promise<string> {
  const home = join(installDir, '.version-home')
  await mkdir(home)
  try {
    const env = { PATH: commandPath(context.env['PATH'] ?? '', [nodeBinDir]), HOME: home, LANG: 'C.UTF-8' }
    const output = await runTool({ ...context, env }, [bin, '--version'], home, VERSION_LIMIT_MS)
    const version = /\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?/.exec(output)?.[0]
    if (version === undefined) {
      throw new RolloutError('HARNESS_INSTALL_FAILED', `${bin} --version names no version: ${output.slice(0, 200)}`)
    }
    return version
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

async function readMarker(installDir: string, bin: string | null): Promise<InstalledHarness | null> {
  try {
    const value: unknown = JSON.parse(await readFile(join(installDir, MARKER), 'utf8'))
    if (!isObject(value) || value['installDir'] !== installDir || typeof value['version'] !== 'string') return null
    if (bin !== null) await access(join(installDir, bin))
    const { nodeBinDir, version, diskBytes, downloadedBytes } = value
    return {
      installDir,
      nodeBinDir: String(nodeBinDir),
      version,
      diskBytes: Number(diskBytes),
      downloadedBytes: Number(downloadedBytes),
    }
  } catch (cause) {
    if (isMissing(cause) || cause instanceof SyntaxError) return null
    throw new RolloutError('HARNESS_INSTALL_FAILED', `${installDir} cannot be read: ${errorData(cause).message}`, {
      cause,
    })
  }
}

const isMissing = (cause: unknown): boolean =>
  ['ENOENT', 'ENOTDIR'].includes((cause as NodeJS.ErrnoException).code ?? '')

const KEPT =
  /^(HOME|LANG|TMPDIR|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|(https?|no|all)_proxy|npm_config_(registry|cafile|userconfig|globalconfig|cache))$/i

/** What an npm run of our own needs from outside: `npm_*` and `NODE_*` of a surrounding npm run would steer it, but where packages come from stays. */
function installEnvironment(env: InstallInput['env']): Record<string, string> {
  const kept = Object.entries(env).flatMap(([name, value]) => {
    const wanted = KEPT.test(name)
    return wanted && value !== undefined ? [[name, value] as const] : []
  })
  return { ...Object.fromEntries(kept), PATH: commandPath(env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin') }
}

async function watch(clock: Clock, settled: AbortSignal, look: () => Promise<void>): Promise<void> {
  let pause = PROGRESS_INTERVAL_MS
  while (!settled.aborted) {
    await clock.sleep(pause, settled).catch(() => undefined)
    if (settled.aborted) return
    const startedAt = clock.now()
    await look()
    // Looking must stay cheap beside the install itself.
    pause = Math.max(PROGRESS_INTERVAL_MS, 10 * (clock.now() - startedAt))
  }
}

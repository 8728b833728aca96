// End of a session's runtime: every process of it killed and proven gone, then its folders removed. `artifacts/` and `logs/`
// stay until the reaper finds them expired. Used by the POSTRUN task, and by main for what a dead thread left.

import { chmod, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { RuntimeDeps, RuntimeHandle, TeardownReport } from '../../src/runtimes/base.js'
import { runtimePlugin } from '../../src/runtimes/registry.js'

/** What outlives a session. */
const KEPT = ['artifacts', 'logs']

/** Kills and proves; the agent's handle stands for the whole session, its fresh copy included. Idempotent. */
export const destroyRuntime = (deps: RuntimeDeps, runtime: RuntimeHandle): Promise<TeardownReport> =>
  runtimePlugin(runtime.backend, deps).destroy(runtime)

/** `destroyRuntime`, then removes workspace, home and everything else but artifacts and logs. Folders stay when death was not proven. */
export async function tearDown(deps: RuntimeDeps, runtime: RuntimeHandle): Promise<TeardownReport> {
  const report = await destroyRuntime(deps, runtime)
  if (report.proven || report.method === 'process-group') await removeWorkFolders(runtime.sessionDir)
  return report
}

/** Removes all but artifacts and logs; returns how many entries went. A missing folder is fine. */
export async function removeWorkFolders(sessionDir: string): Promise<number> {
  const names = await readdir(sessionDir).catch(() => [])
  const gone = names.filter(name => !KEPT.includes(name))
  for (const name of gone) await removeTree(join(sessionDir, name))
  return gone.length
}

/** Also removes folders whose modes forbid it. Never follows links. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3 })
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code !== 'EACCES' && code !== 'EPERM') throw cause
    await openFolders(path)
    await rm(path, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function openFolders(path: string): Promise<void> {
  await chmod(path, 0o700)
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await openFolders(join(path, entry.name))
  }
}

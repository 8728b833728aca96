// End of a session's runtime: every process of it killed and proven gone, then its folders removed. `artifacts/` and `logs/`
// stay until the reaper finds them expired. Used by the POSTRUN task, and by main for what a dead thread left.

import type { RuntimeDeps, RuntimeHandle, TeardownReport } from '../../src/runtimes/base.js'
import { removeWorkFolders } from '../../src/runtimes/folders.js'
import { runtimePlugin } from '../../src/runtimes/registry.js'

/** Kills and proves; the agent's handle stands for the whole session, its fresh copy included. Idempotent. */
export const destroyRuntime = (deps: RuntimeDeps, runtime: RuntimeHandle): Promise<TeardownReport> =>
  runtimePlugin(runtime.backend, deps).destroy(runtime)

/** `destroyRuntime`, then removes workspace, home and everything else but artifacts and logs. Folders stay when death was not proven. */
export async function tearDown(deps: RuntimeDeps, runtime: RuntimeHandle): Promise<TeardownReport> {
  const report = await destroyRuntime(deps, runtime)
  if (report.proven || report.method === 'process-group') await removeWorkFolders(runtime.sessionDir)
  return report
}

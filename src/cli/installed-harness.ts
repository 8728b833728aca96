// A harness of the registry made ready from the command line: installed into the cache, or found there, with a line for each phase.

import type { Plan } from '../config/plan.js'
import type { Clock } from '../domain/clock.js'
import { RolloutError } from '../domain/errors.js'
import { type InstallProgress, installHarness } from '../harnesses/install.js'
import { harnesses } from '../harnesses/registry.js'

/** Bytes downloaded for the harness; 0 when it was in the cache. Throws HARNESS_UNKNOWN, or what the install throws. */
export async function installedHarness(
  id: string,
  plan: Plan,
  clock: Clock,
  say: (text: string) => void,
  signal: AbortSignal,
): Promise<number> {
  const preset = Object.hasOwn(harnesses, id) ? harnesses[id as keyof typeof harnesses] : undefined
  if (preset === undefined) {
    throw new RolloutError(
      'HARNESS_UNKNOWN',
      `--harness: wanted one of ${Object.keys(harnesses).join(', ')}, got ${id}`,
    )
  }
  if (preset.install === null)
    throw new RolloutError('HARNESS_UNKNOWN', `--harness: ${id} brings no agent program of its own`)
  const installed = await installHarness({
    preset,
    cacheDir: plan.cacheDir,
    env: plan.hostEnvironment,
    clock,
    onProgress: once(({ phase, harness, version }) => say(`${harness} ${version}: ${phase} ...`)),
    signal,
  })
  say(`${id} ${installed.version ?? ''} ${installed.cached ? 'from the cache' : 'installed'}: ${installed.installDir}`)
  return installed.downloadedBytes
}

/** Tells each phase of an install once. */
function once(tell: (progress: InstallProgress) => void): (progress: InstallProgress) => void {
  let last = ''
  return progress => {
    if (progress.phase !== last) tell(progress)
    last = progress.phase
  }
}

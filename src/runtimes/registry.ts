// The runtimes by wire name. The one line to add when a runtime is added.

import { RolloutError } from '../domain/errors.js'
import type { RuntimeDeps, RuntimeFactory, RuntimePlugin } from './base.js'
import { localRuntime } from './local.js'

export const runtimes = {
  local: localRuntime,
} as const satisfies Record<string, RuntimeFactory>

export type RuntimeId = keyof typeof runtimes

export const isRuntimeId = (id: string): id is RuntimeId => Object.hasOwn(runtimes, id)

/** Throws TASK_INVALID when no runtime has this name. */
export function runtimePlugin(backend: string, deps: RuntimeDeps): RuntimePlugin {
  if (isRuntimeId(backend)) return runtimes[backend](deps)
  throw new RolloutError(
    'TASK_INVALID',
    `runtime.backend: wanted one of ${Object.keys(runtimes).join(', ')}, got ${JSON.stringify(backend)}`,
  )
}

/** Every runtime with the same dependencies: what a task is checked against. */
export const runtimePlugins = (deps: RuntimeDeps): Readonly<Record<RuntimeId, RuntimePlugin>> => ({
  local: localRuntime(deps),
})

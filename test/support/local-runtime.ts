// A runtime `local` in a scratch folder that is destroyed with the test.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { RuntimeSpec } from '../../src/domain/task.js'
import type { Runtime, RuntimeDeps, RuntimeHandle, RuntimePlugin } from '../../src/runtimes/base.js'
import { runtimePlugin } from '../../src/runtimes/registry.js'
import { localRuntime } from './session-fixtures.js'
import { wallClock } from './wall-clock.js'

export const localSpec: RuntimeSpec = localRuntime

export const localDeps: RuntimeDeps = {
  clock: wallClock,
  basePath: process.env.PATH ?? '/usr/bin:/bin',
  outputBytes: 1_048_576,
  fileBytes: 64 * 1_048_576,
  sourceRoots: [],
}

/** Not below the system's temporary folder, which some CLIs refuse as HOME. Removed with the test. */
export function scratchFolder(t: Test): string {
  const folder = realpathSync(mkdtempSync(join('/var/tmp', 'sextant-test-')))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export interface LocalSession {
  readonly plugin: RuntimePlugin
  readonly handle: RuntimeHandle
  readonly runtime: Runtime
  readonly folder: string
}

export async function localSession(
  t: Test,
  options: { spec?: Partial<RuntimeSpec>; deps?: Partial<RuntimeDeps>; sessionId?: string } = {},
): Promise<LocalSession> {
  const folder = scratchFolder(t)
  const sessionId = options.sessionId ?? `s-${Math.random().toString(36).slice(2)}`
  const plugin = runtimePlugin('local', { ...localDeps, ...options.deps })
  const spec = { ...localSpec, ...options.spec }
  const handle = await plugin.create({ sessionId, sessionDir: join(folder, sessionId), spec, role: 'agent' })
  t.teardown(() => plugin.destroy(handle))
  return { plugin, handle, runtime: plugin.attach(handle), folder }
}

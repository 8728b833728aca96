// Runs a tool of the install (npm, the CLI's --version) in a process group of its own.

import type { Clock } from '../../domain/clock.js'
import { RolloutError } from '../../domain/errors.js'
import { launch } from '../../runtimes/launch.js'
import { EXEC_MARKER, endProcesses, findProcesses } from '../../runtimes/processes.js'

const TAIL_BYTES = 64 * 1_024

export interface ToolContext {
  readonly env: Readonly<Record<string, string>>
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Standard output. Throws HARNESS_INSTALL_FAILED with the end of the output unless it exits 0 within `timeoutMs`. */
export async function runTool(
  context: ToolContext,
  argv: readonly [string, ...string[]],
  cwd: string,
  timeoutMs: number,
): Promise<string> {
  const marker = `install-${process.pid}-${context.clock.now()}-${Math.random().toString(36).slice(2)}`
  const result = await launch({
    argv,
    cwd,
    env: { ...context.env, [EXEC_MARKER]: marker },
    timeoutMs,
    signal: context.signal,
    tailBytes: TAIL_BYTES,
    stdoutFiles: [],
    stderrFiles: [],
    endAll: async started => {
      await endProcesses(() => findProcesses({ markers: { [EXEC_MARKER]: marker } }), [started.pid], context.clock)
    },
    clock: context.clock,
  })
  if (result.returnCode === 0) return result.stdout
  const why = result.cancelled
    ? 'was cancelled'
    : result.timedOut
      ? 'ran out of time'
      : `exited with ${result.returnCode}`
  const output = (result.stderr.trim() || result.stdout.trim()).slice(-2_000)
  throw new RolloutError('HARNESS_INSTALL_FAILED', `${argv.slice(0, 2).join(' ')} ${why}${output && `: ${output}`}`)
}

// Runs a spec's prepare actions in order, in any runtime. Retries are the action's own setting; a timed-out command is never
// repeated. The budget bounds uploads too, between actions.

import { join } from 'node:path'
import type { Clock } from '../domain/clock.js'
import { errorData } from '../domain/errors.js'
import type { PrepareAction } from '../domain/task.js'
import type { ExecResult, ProcessStarted, Runtime } from './base.js'

const BACKOFF_LIMIT_MS = 5_000

export interface PrepareInput {
  readonly runtime: Runtime
  readonly actions: readonly PrepareAction[]
  /** Start of the log names: `prepare.00.stdout.log`. */
  readonly name: 'prepare' | 'eval_prepare'
  /** Host folder of the logs, inside the session folder. */
  readonly logsDir: string
  /** Environment of a command, given the action's own `env`. */
  readonly env: (own: Readonly<Record<string, string>>) => Readonly<Record<string, string>>
  /** Milliseconds for all actions together; null = none. */
  readonly timeoutMs: number | null
  readonly clock: Clock
  readonly signal?: AbortSignal
  readonly onProcess?: (started: ProcessStarted) => void
}

export interface PrepareOutcome {
  readonly status: 'done' | 'failed' | 'timeout' | 'cancelled'
  /** What failed, with the end of its output; null when done. */
  readonly error: string | null
  /** Commands and uploads that were carried out, retries counted. */
  readonly attempts: number
}

/** Never throws for an action that fails: that is an outcome. */
export async function runPrepare(input: PrepareInput): Promise<PrepareOutcome> {
  const endsAt = input.timeoutMs === null ? Number.POSITIVE_INFINITY : input.clock.now() + input.timeoutMs
  let attempts = 0
  for (const [index, action] of input.actions.entries()) {
    const at = `${input.name}[${index}]`
    for (let attempt = 1; ; attempt++) {
      if (input.signal?.aborted) return { status: 'cancelled', error: `${at}: cancelled`, attempts }
      const remainingMs = endsAt - input.clock.now()
      if (remainingMs <= 0) return { status: 'timeout', error: `${at}: no time left`, attempts }
      attempts++
      const problem = await runAction(input, action, index, attempt, remainingMs)
      if (problem === null) break
      if (problem.status === 'failed' && action.type === 'exec' && attempt < action.max_attempts) {
        const delayMs = Math.min(BACKOFF_LIMIT_MS, action.retry_backoff_seconds * 1_000 * 2 ** (attempt - 1))
        if (delayMs > 0) await input.clock.sleep(Math.min(delayMs, remainingMs), input.signal).catch(() => undefined)
        continue
      }
      return { status: problem.status, error: `${at}: ${problem.error}`, attempts }
    }
  }
  return { status: 'done', error: null, attempts }
}

type Problem = { readonly status: 'failed' | 'timeout' | 'cancelled'; readonly error: string }

async function runAction(
  input: PrepareInput,
  action: PrepareAction,
  index: number,
  attempt: number,
  remainingMs: number,
): Promise<Problem | null> {
  try {
    if (action.type !== 'exec') {
      await input.runtime.upload(action.source, action.target)
      return null
    }
    const log = join(input.logsDir, logName(input.name, index, action.max_attempts > 1 ? attempt : null))
    const result = await input.runtime.exec(
      {
        command: action.command,
        ...(action.cwd !== undefined && { cwd: action.cwd }),
        env: input.env(action.env ?? {}),
        ...(Number.isFinite(remainingMs) && { timeoutMs: remainingMs }),
        stdoutPath: `${log}.stdout.log`,
        stderrPath: `${log}.stderr.log`,
      },
      { ...(input.signal && { signal: input.signal }), ...(input.onProcess && { onProcess: input.onProcess }) },
    )
    return problemOf(result)
  } catch (cause) {
    return { status: 'failed', error: errorData(cause).message }
  }
}

function problemOf(result: ExecResult): Problem | null {
  if (result.cancelled) return { status: 'cancelled', error: 'cancelled' }
  if (result.timedOut) return { status: 'timeout', error: 'the command ran into the time limit' }
  if (result.returnCode === 0) return null
  const output = (result.stderr.trim() || result.stdout.trim()).slice(-2_000)
  return { status: 'failed', error: `the command exited with ${result.returnCode}${output && `: ${output}`}` }
}

function logName(name: string, index: number, attempt: number | null): string {
  const two = (value: number) => String(value).padStart(2, '0')
  return `${name}.${two(index)}${attempt === null ? '' : `.attempt-${two(attempt)}`}`
}

// Runs one command in a process group of its own: output to files and to capped tails as bytes, a time limit, a cancel.
// It waits for `exit`, then at most a second for the pipes: a background process that inherited them keeps its end,
// and what it writes later is read and dropped, so that it does not die of a closed pipe.

import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import type { Clock } from '../domain/clock.js'
import { RolloutError } from '../domain/errors.js'
import type { ExecResult, ProcessStarted } from './base.js'
import { signalGroup, startTimeOf } from './processes.js'

const PIPE_GRACE_MS = 1_000

export interface OutputFile {
  append(chunk: Buffer): Promise<void>
  /** Bytes that did not fit under the file's cap. */
  unwritten(): number
  close(): Promise<void>
}

export interface LaunchInput {
  readonly argv: readonly [string, ...string[]]
  /** Must exist. */
  readonly cwd: string
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>
  readonly stdin?: string
  /** Milliseconds; absent = none. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** Bytes kept of each stream's end. */
  readonly tailBytes: number
  readonly stdoutFiles: readonly OutputFile[]
  readonly stderrFiles: readonly OutputFile[]
  readonly onProcess?: (started: ProcessStarted) => void
  /** Ends everything the command started; called on time-out and cancel, before the wait goes on. */
  readonly endAll: (started: ProcessStarted) => Promise<void>
  readonly clock: Clock
}

/** Throws RUNTIME_FAILED when the program cannot be started; whatever it does after that is in the result. */
export async function launch(input: LaunchInput): Promise<ExecResult> {
  const startedAt = input.clock.now()
  const stdout = new Tail(input.tailBytes)
  const stderr = new Tail(input.tailBytes)
  const files = [...new Set([...input.stdoutFiles, ...input.stderrFiles])]
  const settled = new AbortController()
  const outcome = { timedOut: false, cancelled: false }
  try {
    if (input.signal?.aborted) return result(-1, null, { timedOut: false, cancelled: true })
    const child = start(input)
    const exited = new Promise<{ code: number | null; signal: string | null }>((resolve, reject) => {
      child.once('error', cause => reject(startFailure(input, cause)))
      child.once('exit', (code, signal) => resolve({ code, signal }))
    })
    if (child.pid === undefined) await exited
    const started = { pid: child.pid ?? 0, startTime: startTimeOf(child.pid ?? 0) }
    input.onProcess?.(started)
    const pipes = Promise.all([
      readPipe(child.stdout, stdout, input.stdoutFiles, settled.signal),
      readPipe(child.stderr, stderr, input.stderrFiles, settled.signal),
    ])
    const stopped = stopWhenAsked(input, started, outcome, settled.signal)
    const { code, signal } = await exited
    const failures = await Promise.race([
      pipes,
      input.clock.sleep(PIPE_GRACE_MS, settled.signal).catch(() => undefined),
    ])
    settled.abort()
    await stopped
    const failure = failures?.find(cause => cause !== null)
    if (failure)
      throw new RolloutError('RUNTIME_FAILED', `output cannot be stored: ${failure.message}`, { cause: failure })
    if (outcome.timedOut || outcome.cancelled) return result(-1, signal, outcome)
    // A shell reports a signalled child as 128 + n; a signalled shell has no code, and gets the same form.
    return result(code ?? 128 + signalNumber(signal), signal, outcome)
  } finally {
    settled.abort()
    for (const file of files) await file.close()
  }

  function result(returnCode: number, signal: string | null, flags: typeof outcome): ExecResult {
    return {
      returnCode,
      signal,
      timedOut: flags.timedOut,
      cancelled: flags.cancelled,
      stdout: stdout.text(),
      stderr: stderr.text(),
      truncatedBytes: stdout.dropped + stderr.dropped,
      unwrittenBytes: files.reduce((sum, file) => sum + file.unwritten(), 0),
      durationMs: input.clock.now() - startedAt,
    }
  }
}

function start(input: LaunchInput): ChildProcess {
  const [program, ...rest] = input.argv
  const child = spawn(program, rest, {
    cwd: input.cwd,
    env: { ...input.env },
    detached: true,
    stdio: [input.stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  // A command may end without reading its input: EPIPE is no fault of the command.
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(input.stdin)
  return child
}

/** Reads to the end of the pipe, whatever becomes of the files; the first failure to write is returned. */
async function readPipe(
  pipe: Readable | null,
  tail: Tail,
  files: readonly OutputFile[],
  settled: AbortSignal,
): Promise<Error | null> {
  let failure: Error | null = null
  if (pipe === null) return failure
  settled.addEventListener('abort', () => (pipe as Readable & { unref?: () => void }).unref?.(), { once: true })
  try {
    for await (const chunk of pipe as AsyncIterable<Buffer>) {
      if (settled.aborted) continue
      tail.push(chunk)
      if (failure !== null) continue
      failure = await appendAll(files, chunk)
    }
  } catch (cause) {
    return failure ?? (cause as Error)
  }
  return failure
}

async function appendAll(files: readonly OutputFile[], chunk: Buffer): Promise<Error | null> {
  try {
    for (const file of files) await file.append(chunk)
    return null
  } catch (cause) {
    return cause as Error
  }
}

async function stopWhenAsked(
  input: LaunchInput,
  started: ProcessStarted,
  outcome: { timedOut: boolean; cancelled: boolean },
  settled: AbortSignal,
): Promise<void> {
  const why = await new Promise<'timeout' | 'cancel' | null>(resolve => {
    settled.addEventListener('abort', () => resolve(null), { once: true })
    const onCancel = () => resolve('cancel')
    if (input.signal?.aborted) onCancel()
    input.signal?.addEventListener('abort', onCancel, { once: true })
    settled.addEventListener('abort', () => input.signal?.removeEventListener('abort', onCancel), { once: true })
    if (input.timeoutMs !== undefined) {
      input.clock.sleep(Math.max(0, input.timeoutMs), settled).then(
        () => resolve('timeout'),
        () => resolve(null),
      )
    }
  })
  if (why === null) return
  if (why === 'timeout') outcome.timedOut = true
  else outcome.cancelled = true
  signalGroup(started.pid, started.startTime, 'SIGTERM')
  await input.endAll(started)
  signalGroup(started.pid, started.startTime, 'SIGKILL')
}

/** Keeps the last `limit` bytes. */
class Tail {
  readonly #limit: number
  readonly #chunks: Buffer[] = []
  #bytes = 0
  dropped = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    while (this.#bytes > this.#limit) {
      const first = this.#chunks[0]
      if (first === undefined) return
      const over = this.#bytes - this.#limit
      const cut = Math.min(over, first.length)
      if (cut === first.length) this.#chunks.shift()
      else this.#chunks[0] = first.subarray(cut)
      this.#bytes -= cut
      this.dropped += cut
    }
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8')
  }
}

const startFailure = (input: LaunchInput, cause: Error): RolloutError =>
  new RolloutError('RUNTIME_FAILED', `cannot start ${input.argv[0]}: ${cause.message}`, { cause })

const SIGNAL_NUMBERS: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGPIPE: 13, SIGTERM: 15 }
const signalNumber = (signal: string | null): number => SIGNAL_NUMBERS[signal ?? ''] ?? 0

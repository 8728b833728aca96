// Where a session's commands run. A handle is plain data: each pool task attaches to it anew.

import type { Clock } from '../domain/clock.js'
import type { RuntimeSpec } from '../domain/task.js'

/** `eval` = the fresh copy for grading. */
export type RuntimeRole = 'agent' | 'eval'

export interface RuntimeHandle {
  readonly backend: string
  readonly sessionId: string
  readonly role: RuntimeRole
  /** Folder of the runtime on this host, 0700: the session's own, or `eval_runtime/` in it for the fresh copy. */
  readonly sessionDir: string
  /** Where the agent works: `<sessionDir>/workspace` for `local`. */
  readonly workspaceDir: string
  readonly homeDir: string
}

export interface ExecRequest {
  /** Shell text, run by bash with pipefail; or an argv. */
  readonly command: string | readonly string[]
  /** Relative to the workspace; absolute only inside the session folder. Default: the workspace. */
  readonly cwd?: string
  /** On top of the runtime's own environment. */
  readonly env: Readonly<Record<string, string>>
  readonly timeoutMs?: number
  readonly stdin?: string
  /** Whole output is appended to these files besides being captured. */
  readonly stdoutPath?: string
  readonly stderrPath?: string
  /** Both streams, in the order in which they arrive. */
  readonly combinedPath?: string
}

export interface ExecResult {
  /** -1 = stopped by its time limit. */
  readonly returnCode: number
  readonly signal: string | null
  readonly timedOut: boolean
  readonly cancelled: boolean
  /** Tail of the output, bytes as UTF-8 view; capped. */
  readonly stdout: string
  readonly stderr: string
  /** Bytes of both streams that the tails leave out. */
  readonly truncatedBytes: number
  /** Bytes that the output files leave out, because a file reached its cap. */
  readonly unwrittenBytes: number
  readonly durationMs: number
}

/** Told before the task waits on the process, so that the session actor can kill what a dead thread left behind. */
export interface ProcessStarted {
  readonly pid: number
  /** Field 22 of /proc/<pid>/stat; null without /proc. Guards against a reused pid. */
  readonly startTime: string | null
}

export interface ExecOptions {
  readonly signal?: AbortSignal
  readonly onProcess?: (started: ProcessStarted) => void
}

export interface Runtime {
  readonly handle: RuntimeHandle
  exec(request: ExecRequest, options?: ExecOptions): Promise<ExecResult>
  /** `target` is relative to the workspace, or absolute inside the session folder. Merges; never follows links. Throws RUNTIME_PATH_REFUSED. */
  upload(source: string, target: string): Promise<void>
  writeFile(target: string, content: string | Uint8Array, mode?: number): Promise<void>
  /** Capped at `maxBytes`; null when there is no such regular file. */
  readFile(source: string, maxBytes: number): Promise<Uint8Array | null>
}

export interface TeardownReport {
  /** Two consecutive scans saw no process of the session. */
  readonly proven: boolean
  readonly killed: number
  /** Without /proc only the process group was killed. */
  readonly method: 'proc-scan' | 'process-group'
}

/** What every runtime gets from the thread it is used in. */
export interface RuntimeDeps {
  readonly clock: Clock
  /** PATH of the service; commands find their programs there. */
  readonly basePath: string
  /** Cap of a captured tail, bytes per stream. */
  readonly outputBytes: number
  /** Cap of one output file, bytes. */
  readonly fileBytes: number
  /** `upload` sources must lie below one of these; empty = anywhere. */
  readonly sourceRoots: readonly string[]
}

export type RuntimeFactory = (deps: RuntimeDeps) => RuntimePlugin

export interface RuntimePlugin {
  readonly id: string
  readonly summary: string
  /** Problems of a spec; `path` starts in the spec (`prepare[0].target`); empty = fine. Called at submit. */
  check(spec: RuntimeSpec): readonly { readonly path: string; readonly message: string }[]
  /** Makes the folders and starts what must run. `role` eval = fresh copy for grading. */
  create(input: {
    readonly sessionId: string
    readonly sessionDir: string
    readonly spec: RuntimeSpec
    readonly role: RuntimeRole
  }): Promise<RuntimeHandle>
  attach(handle: RuntimeHandle): Runtime
  /** Kills everything of the session and proves it; does not remove artifacts. Idempotent. */
  destroy(handle: RuntimeHandle): Promise<TeardownReport>
}

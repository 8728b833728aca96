// Starts one thread, real or inline. Who keeps it alive is host.ts.

import { MessageChannel, type MessagePort, type ResourceLimits, Worker, type WorkerOptions } from 'node:worker_threads'
import { type ErrorData, errorData } from '../../src/domain/errors.js'
import { EVENTS } from '../../src/observability/events.js'
import type { LogLevel } from '../../src/observability/logger.js'
import type { ActorClock, Logger } from '../system/behavior.js'
import { realClock } from '../system/clock.js'
import { type BootData, END } from './boot-data.js'
import { controlThread, type ThreadControl } from './control.js'
import { loadThread, runThread } from './entry.js'

/** How long a thread gets to end by itself, real time. */
const END_MS = 3_000
/** How long an inline thread gets to let go of what it holds when it is killed. */
const INLINE_KILL_MS = 2_000

export interface ThreadEnvironment {
  /** The thread's whole environment but for NODE_OPTIONS. Default: empty. */
  readonly env?: Readonly<Record<string, string>>
  readonly resourceLimits?: ResourceLimits
  /**
   * When killed it ends by itself between two turns of its event loop, and is ended by force only when it does not. For a thread that
   * owns a store: cut off in the middle of a transaction it would take the store's lock with it, and never be gone.
   */
  readonly endsBetweenTurns?: boolean
}

/**
 * Options for every thread of ours, pool threads too: no loader or flag of the parent reaches it (a test runner's, inherited, makes a
 * thread start twenty times slower), its output goes to the parent's stdout and stderr.
 */
export const threadOptions = ({ env = {}, resourceLimits }: ThreadEnvironment = {}) =>
  ({
    execArgv: [],
    env: { ...env, NODE_OPTIONS: '' },
    stdout: false,
    stderr: false,
    ...(resourceLimits && { resourceLimits }),
  }) satisfies WorkerOptions

export interface ThreadExit {
  readonly code: number
  /** What ended it, when it was an exception. */
  readonly error: ErrorData | null
}

export interface RunningThread {
  readonly name: string
  /** To be linked: `system.connect({ port, peer: name })`. */
  readonly systemPort: MessagePort
  readonly control: ThreadControl
  readonly exited: Promise<ThreadExit>
}

export interface StartThreadOptions extends ThreadEnvironment {
  /** Compiled module that exports `thread` (entry.ts). */
  readonly entry: URL
  readonly name: string
  readonly mode: 'real' | 'inline'
  readonly clock: ActorClock
  readonly log: Logger
  readonly logLevel: LogLevel
}

/** The thread is up but does nothing until `control.start`. An entry that cannot be loaded shows in `exited`. */
export function startThread(options: StartThreadOptions): RunningThread {
  return options.mode === 'real' ? startReal(options) : startInline(options)
}

function startReal({
  entry,
  name,
  clock,
  log,
  logLevel,
  endsBetweenTurns = false,
  ...environment
}: StartThreadOptions): RunningThread {
  const system = new MessageChannel()
  const control = new MessageChannel()
  const data: BootData = { name, entry: entry.href, logLevel, systemPort: system.port2, controlPort: control.port2 }
  const worker = new Worker(new URL('./boot.thread.js', import.meta.url), {
    ...threadOptions(environment),
    name,
    workerData: data,
    transferList: [system.port2, control.port2],
  })
  let error: ErrorData | null = null
  worker.on('error', cause => {
    error = errorData(cause)
  })
  const exited = new Promise<ThreadExit>(resolve => {
    worker.once('exit', code => {
      log.debug(EVENTS.threadExit, { thread: name, code, ...(error && { error }) })
      resolve({ code, error })
    })
  })
  const kill = async () => {
    if (endsBetweenTurns) {
      worker.postMessage(END)
      const stopWaiting = new AbortController()
      await Promise.race([
        exited,
        realClock()
          .sleep(END_MS, stopWaiting.signal)
          .catch(() => undefined),
      ])
      stopWaiting.abort()
    }
    await worker.terminate()
    await exited
  }
  log.debug(EVENTS.threadStart, { thread: name })
  return {
    name,
    systemPort: system.port1,
    control: controlThread({ port: control.port1, name, clock, exited, kill }),
    exited,
  }
}

function startInline({ entry, name, clock, log }: StartThreadOptions): RunningThread {
  const system = new MessageChannel()
  const control = new MessageChannel()
  let exit: (how: ThreadExit) => void
  const exited = new Promise<ThreadExit>(resolve => {
    exit = resolve
  })
  const cut = () => {
    system.port2.close()
    control.port2.close()
  }
  const running = loadThread(entry).then(body =>
    runThread({
      name,
      body,
      systemPort: system.port2,
      controlPort: control.port2,
      clock,
      log,
      onFailure: error => void kill({ code: 1, error }),
    }),
  )
  running.catch(cause => {
    cut()
    exit({ code: 1, error: errorData(cause) })
  })
  // Cut off first, so that others see a death and not a stop. A real thread loses its sockets and timers with its life; this one must
  // be told to let go.
  const kill = async (how: ThreadExit) => {
    cut()
    const [made] = await Promise.allSettled([running])
    if (made.status === 'fulfilled') {
      made.value.cut()
      await made.value.system.stop(INLINE_KILL_MS)
    }
    exit(how)
  }
  return {
    name,
    systemPort: system.port1,
    control: controlThread({ port: control.port1, name, clock, exited, kill: () => kill({ code: 1, error: null }) }),
    exited,
  }
}

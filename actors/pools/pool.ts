// The one place where Piscina is used. A pool has a fixed number of threads that are never let go: a thread is the host of its
// runs' child processes. `atomics: 'disabled'`, since the default stops every timer and socket of a thread between tasks.
//
// Each task has a port of its own, for reports and for a cooperative cancel. A pool whose threads host one task at a time may
// also end a task that does not listen, by ending its thread (`signal`); a pool of co-hosted runs never passes one: Piscina
// does not co-host a task that carries a signal, and the thread's other runs would die with it.

import { MessageChannel } from 'node:worker_threads'
import { Piscina } from 'piscina'
import { ownedBuffers } from '../system/transfer.js'
import type { PoolData, TaskInput, TaskOrder, TaskReport } from './task.js'

export interface PoolOptions {
  /** file: URL of a module whose default export is the task. */
  readonly taskFile: string
  readonly threads: number
  /** Tasks that one thread hosts at the same time. Above 1, `end` has no effect. */
  readonly tasksPerThread: number
  /** Tasks waiting in the pool; beyond it a run is rejected. */
  readonly maxQueue: number
  readonly data: PoolData
  /** A thread died without a task on it. */
  readonly onIdleDeath: (cause: Error) => void
}

export interface PoolRun<R> {
  /** Rejects when the thread died, whatever the reason; never for an outcome of the task. */
  readonly result: Promise<R>
  /** Tells the task to stop. Idempotent; also before it starts. */
  cancel(): void
  /** Ends the thread under the task, where it is the only one there. */
  end(): void
}

export interface Pool<J, R> {
  /** Typed arrays of `job` that own their buffers are moved into the thread. */
  run(job: J, onReport: (report: TaskReport) => void): PoolRun<R>
  /** Ends thread `index` (from 1) as a crash would. False when there is no such thread. */
  killThread(index: number): boolean
  /** Ends every thread, after the running tasks have been told to stop by their owners. */
  close(): Promise<void>
}

export function openPool<J, R>(options: PoolOptions): Pool<J, R> {
  const { threads, tasksPerThread } = options
  const piscina = new Piscina({
    filename: options.taskFile,
    minThreads: threads,
    maxThreads: threads,
    concurrentTasksPerWorker: tasksPerThread,
    idleTimeout: Number.POSITIVE_INFINITY,
    maxQueue: Number.POSITIVE_INFINITY,
    atomics: 'disabled',
    execArgv: LOADED_BY_IMPORT,
    env: { NODE_OPTIONS: '' },
    workerData: options.data,
    recordTiming: false,
  })
  piscina.on('error', options.onIdleDeath)
  const limit = threads * tasksPerThread + options.maxQueue
  let taken = 0
  return {
    run(job, onReport) {
      // Piscina's own limit does not count waiting tasks that carry a signal.
      if (taken >= limit) return refused(`the pool holds ${taken} tasks, its limit`)
      taken += 1
      const { port1, port2 } = new MessageChannel()
      const ending = tasksPerThread === 1 ? new AbortController() : null
      port1.on('message', onReport)
      const input: TaskInput<J> = { job, port: port2 }
      const running: Promise<R> = piscina.run(input, {
        transferList: [port2, ...ownedBuffers(job)],
        ...(ending && { signal: ending.signal }),
      })
      return {
        result: running.finally(() => {
          taken -= 1
          port1.close()
        }),
        cancel: () => port1.postMessage({ type: 'cancel' } satisfies TaskOrder),
        end: () => ending?.abort(),
      }
    },
    killThread(index) {
      const thread = piscina.threads[index - 1]
      if (thread === undefined) return false
      void thread.terminate()
      return true
    },
    close: () => piscina.destroy(),
  }
}

/**
 * Piscina tries `require` first. Where Node lets that load an ES module it does so in one synchronous step, and a thread that is ended
 * within it takes the whole process along (a V8 check, SIGABRT). Without it Piscina goes on to `import()`, which can be cut off.
 */
const LOADED_BY_IMPORT: string[] = process.allowedNodeEnvironmentFlags.has('--experimental-require-module')
  ? ['--no-experimental-require-module']
  : []

const refused = <R>(why: string): PoolRun<R> => ({
  result: Promise.reject(new Error(why)),
  cancel() {},
  end() {},
})

/** Runs per thread of the RUNNING pool: two threads at least, so that one death never takes every run. */
export function hostingOf(runs: number): { readonly threads: number; readonly tasksPerThread: number } {
  const threads = Math.max(Math.min(2, runs), Math.ceil(runs / RUNS_PER_THREAD))
  return { threads, tasksPerThread: Math.max(Math.ceil(runs / threads), 2) }
}

/** A run is I/O bound: it waits for its processes and copies their output. */
const RUNS_PER_THREAD = 16

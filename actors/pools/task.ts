// What a pool task and main say to each other, and what every task is given. A task runs in a pool thread, gets plain data and
// one port of its own, and ends with a result: expected failures are results, so a rejected task means a dead thread.

import { type MessagePort, workerData } from 'node:worker_threads'
import type { Plan } from '../../src/config/plan.js'
import type { ErrorData } from '../../src/domain/errors.js'
import type { AgentResult } from '../../src/domain/session.js'
import type { RuntimeDeps, RuntimeHandle } from '../../src/runtimes/base.js'
import { realClock } from '../system/clock.js'

/** Task to main, over the task's port. */
export type TaskReport =
  /** As soon as there is something that must be torn down. */
  | { readonly type: 'runtime-created'; readonly runtime: RuntimeHandle }
  | { readonly type: 'run-progress'; readonly stage: 'setup' | 'exec' | 'postprocess' }
  | { readonly type: 'process-started'; readonly pid: number; readonly startTime: string | null }
  | { readonly type: 'postrun-progress'; readonly stage: 'build' | 'evaluate' | 'teardown' }

/** Main to task. */
export interface TaskOrder {
  readonly type: 'cancel'
}

export interface TaskInput<J> {
  readonly job: J
  readonly port: MessagePort
}

export interface InitTaskResult {
  readonly runtime: RuntimeHandle | null
  readonly harnessInstallDir: string | null
  readonly timing: Readonly<Record<string, number>>
  readonly error: ErrorData | null
  readonly timedOut: boolean
}

/** Exactly one of `result` and `error` is there: an error is a broken runtime, not a bad run. */
export interface RunTaskResult {
  readonly result: AgentResult | null
  readonly error: ErrorData | null
  readonly timing: Readonly<Record<string, number>>
}

/** `workerData` of every pool thread. */
export interface PoolData {
  readonly plan: Plan
}

/** The task's end of its port. `signal` aborts when main says cancel. Call `close` in a `finally`. */
export interface TaskLine {
  readonly signal: AbortSignal
  report(message: TaskReport): void
  close(): void
}

export function openLine(port: MessagePort): TaskLine {
  const cancelled = new AbortController()
  port.on('message', (order: TaskOrder) => {
    if (order.type === 'cancel') cancelled.abort(new Error('cancelled'))
  })
  return {
    signal: cancelled.signal,
    report: message => port.postMessage(message),
    close: () => port.close(),
  }
}

/** The plan that this thread was started with. */
export function planOfThread(): Plan {
  const { plan } = workerData as PoolData
  return plan
}

/** What runtimes get, here and in main. */
export const runtimeDepsOf = (plan: Plan): RuntimeDeps => ({
  clock: realClock(),
  basePath: basePathOf(plan),
  outputBytes: plan.limits.outputBytes,
  fileBytes: plan.limits.sessionBytes,
  sourceRoots: plan.security.sourceRoots,
})

export const basePathOf = (plan: Plan): string => plan.hostEnvironment['PATH'] ?? '/usr/local/bin:/usr/bin:/bin'

// Runs the pool tasks and turns their ends into messages to self; reports of a running task go straight to its session.
// Must hold: each task ends in exactly one message, also when its thread dies, and what a dead thread left running is killed
// before that message is sent.

import { defer, EMPTY, from, map, mergeMap, type Observable, of } from 'rxjs'
import { type ErrorData, errorData } from '../../src/domain/errors.js'
import type { SessionId } from '../../src/domain/ids.js'
import { EVENTS } from '../../src/observability/events.js'
import type { RuntimeDeps, RuntimeHandle, TeardownReport } from '../../src/runtimes/base.js'
import type { PoolRun } from '../pools/pool.js'
import type { PoolName, StagePools, StagePoolsOptions } from '../pools/stage-pools.js'
import type { InitTaskResult, RunTaskResult, TaskReport } from '../pools/task.js'
import { destroyRuntime, tearDown } from '../pools/teardown.js'
import type { PostrunOutcome } from '../protocol/outcomes.js'
import type { SessionMessage } from '../protocol/session.js'
import type { StagesReport } from '../protocol/stages.js'
import type { ActorContext } from '../system/behavior.js'
import { settledWithin } from '../system/clock.js'
import type { Interpreter } from '../system/machine.js'
import type { ActorRef } from '../system/ref.js'
import type { StagesEffect, StagesInput } from './state.js'

export interface StagesDeps {
  /** Called at each start of the actor, which closes them. */
  readonly openPools: (onIdleDeath: StagePoolsOptions['onIdleDeath']) => StagePools
  readonly rollout: ActorRef<StagesReport>
  /** For teardown from main. */
  readonly runtimeDeps: RuntimeDeps
  /** How long a task may take to stop after a cancel before it is stopped by force, and again before it is given up. */
  readonly stopMs: number
}

/** A task that runs, with what is needed to end it. */
interface Running {
  readonly run: PoolRun<unknown>
  /** What it made or was given; the last resort kills its processes. */
  runtime: RuntimeHandle | null
  /** Ends the wait for a task that no longer answers. */
  readonly giveUp: (cause: Error) => void
  ended: boolean
}

export interface StagesInterpreter {
  readonly interpret: Interpreter<StagesInput, StagesEffect>
  /** Cancels what runs, ends the threads and tears down every runtime that POSTRUN has not. */
  close(): Promise<void>
}

export function stagesEffects(deps: StagesDeps, context: ActorContext<StagesInput>): StagesInterpreter {
  const { rollout, runtimeDeps, stopMs } = deps
  const pools = deps.openPools((pool, cause) => context.log.warn(EVENTS.poolThreadDeath, { pool, cause }))
  const running = new Map<string, Running>()
  /** By session folder: made by INIT and torn down by nobody yet. */
  const owned = new Map<string, RuntimeHandle>()
  const { clock, log } = context

  const start = <R>(
    pool: PoolName,
    sessionId: SessionId,
    runtime: RuntimeHandle | null,
    open: (onReport: (report: TaskReport) => void) => PoolRun<R>,
    session: ActorRef<SessionMessage> | null,
  ): { readonly task: Running; readonly result: Promise<R> } => {
    const key = `${pool} ${sessionId}`
    let giveUp: (cause: Error) => void = () => {}
    const givenUp = new Promise<never>((_, reject) => {
      giveUp = reject
    })
    const run = open(report => {
      if (report.type === 'runtime-created') {
        task.runtime = report.runtime
        owned.set(report.runtime.sessionDir, report.runtime)
      } else session?.tell(report)
    })
    const task: Running = { run, runtime, giveUp, ended: false }
    running.set(key, task)
    const result = Promise.race([run.result, givenUp]).finally(() => {
      task.ended = true
      if (running.get(key) === task) running.delete(key)
    })
    return { task, result }
  }

  /** Under way in main; a stop waits for them. */
  const teardowns = new Set<Promise<unknown>>()
  const teardown = (runtime: RuntimeHandle | null, sessionId: SessionId): Promise<TeardownReport | null> => {
    if (runtime === null) return Promise.resolve(null)
    const ending = tearDown(runtimeDeps, runtime)
      .catch(cause => {
        log.error(EVENTS.teardownFail, { sessionId, cause })
        return null
      })
      .finally(() => teardowns.delete(ending))
    owned.delete(runtime.sessionDir)
    teardowns.add(ending)
    return ending
  }

  /** Tasks with what follows them; a stop waits for these too. */
  const underWay = new Set<Promise<unknown>>()
  const followed = <R>(work: Promise<R>): Promise<R> => {
    const kept = work.finally(() => underWay.delete(kept))
    underWay.add(kept)
    return kept
  }

  const crash = (pool: PoolName, sessionId: SessionId, cause: unknown): ErrorData => {
    log.warn(EVENTS.poolTaskCrash, { pool, sessionId, cause })
    return { code: 'ACTOR_DEAD', message: `the ${pool} thread ended: ${errorData(cause).message}` }
  }

  /** Cooperative first; then by force; then given up. */
  async function stop(task: Running, pool: PoolName, sessionId: SessionId): Promise<void> {
    task.run.cancel()
    await clock.sleep(stopMs)
    if (task.ended) return
    log.warn(EVENTS.poolTaskForce, { pool, sessionId })
    task.run.end()
    if (pool === 'running' && task.runtime !== null) await destroyRuntime(runtimeDeps, task.runtime)
    await clock.sleep(stopMs)
    if (!task.ended) task.giveUp(new Error(`the ${pool} task did not stop within ${2 * stopMs} ms`))
  }

  const tell = (send: () => void): Observable<never> =>
    defer(() => {
      send()
      return EMPTY
    })

  const runInit = async (sessionId: SessionId, started: ReturnType<typeof start<InitTaskResult>>) => {
    try {
      const result = await started.result
      if (result.runtime !== null) owned.set(result.runtime.sessionDir, result.runtime)
      return { type: 'init-task-ended', sessionId, ...result } as const
    } catch (cause) {
      const { runtime } = started.task
      if (runtime !== null) await destroyRuntime(runtimeDeps, runtime).catch(() => null)
      const error = crash('init', sessionId, cause)
      const nothing = { harnessInstallDir: null, timing: {}, timedOut: false }
      return { type: 'init-task-ended', sessionId, runtime, error, ...nothing } as const
    }
  }

  const runRun = async (sessionId: SessionId, started: ReturnType<typeof start<RunTaskResult>>) => {
    try {
      const { result, error, timing } = await started.result
      if (result !== null) return { type: 'run-task-ended', sessionId, result, timing } as const
      return { type: 'run-task-crashed', sessionId, error: error ?? noResult } as const
    } catch (cause) {
      const { runtime } = started.task
      if (runtime !== null) await destroyRuntime(runtimeDeps, runtime).catch(() => null)
      return { type: 'run-task-crashed', sessionId, error: crash('running', sessionId, cause) } as const
    }
  }

  const runPostrun = async (sessionId: SessionId, started: ReturnType<typeof start<PostrunOutcome>>) => {
    try {
      const outcome = await started.result
      if (started.task.runtime !== null) owned.delete(started.task.runtime.sessionDir)
      return { type: 'postrun-task-ended', sessionId, outcome } as const
    } catch (cause) {
      const error = crash('postrun', sessionId, cause)
      const report = await teardown(started.task.runtime, sessionId)
      return { type: 'postrun-task-crashed', sessionId, crash: { error, teardown: report } } as const
    }
  }

  const interpret: Interpreter<StagesInput, StagesEffect> = effect => {
    switch (effect.type) {
      case 'watch-session':
        return tell(() => context.watch(effect.session))
      case 'tell-session':
        // The fact lacks nothing but its time.
        return tell(() => effect.session.tell({ ...effect.fact, atMs: clock.now() } as SessionMessage))
      case 'tell-free':
        return tell(() => rollout.tell({ type: 'init-slots-free', count: effect.count }))
      case 'arm-level':
        return clock.timer$(effect.afterMs).pipe(map((): StagesInput => ({ type: 'level-due' })))
      case 'run-init-task': {
        const { sessionId, job } = effect
        return defer(() =>
          followed(
            runInit(
              sessionId,
              start('init', sessionId, null, report => pools.init.run(job, report), null),
            ),
          ),
        )
      }
      case 'run-run-task': {
        const { sessionId, job, session } = effect
        return defer(() =>
          followed(
            runRun(
              sessionId,
              start('running', sessionId, job.runtime, report => pools.running.run(job, report), session),
            ),
          ),
        )
      }
      case 'run-postrun-task': {
        const { sessionId, job, session } = effect
        return defer(() =>
          followed(
            runPostrun(
              sessionId,
              start('postrun', sessionId, job.runtime, report => pools.postrun.run(job, report), session),
            ),
          ),
        )
      }
      case 'cancel-task': {
        const task = running.get(`${effect.pool} ${effect.sessionId}`)
        if (task === undefined) return EMPTY
        return from(stop(task, effect.pool, effect.sessionId)).pipe(mergeMap(() => EMPTY))
      }
      case 'destroy-runtime':
        return defer(() => teardown(effect.runtime, effect.runtime.sessionId as SessionId)).pipe(mergeMap(() => EMPTY))
      case 'kill-thread':
        return tell(() => {
          const found = pools[effect.pool].killThread(effect.index)
          log.warn(EVENTS.poolThreadKill, { pool: effect.pool, index: effect.index, found })
        })
      case 'describe':
        return of(effect).pipe(
          map(({ replyTo, description }) => replyTo.tell(description)),
          mergeMap(() => EMPTY),
        )
    }
  }

  return {
    interpret,
    async close() {
      for (const { run } of running.values()) run.cancel()
      await settledWithin(clock, stopMs, Promise.allSettled(underWay))
      await Promise.all([pools.init.close(), pools.running.close(), pools.postrun.close()])
      // Threads that were ended reject their tasks; what these had made is known only then.
      await Promise.allSettled(underWay)
      for (const runtime of owned.values()) void teardown(runtime, runtime.sessionId as SessionId)
      await Promise.all(teardowns)
    },
  }
}

const noResult: ErrorData = { code: 'INTERNAL_BUG', message: 'the run gave neither a result nor an error' }

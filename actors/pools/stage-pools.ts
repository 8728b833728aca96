// The three pools of a node, sized by the plan: INIT and POSTRUN one task a thread, RUNNING many runs a thread.

import type { Plan } from '../../src/config/plan.js'
import type { PostrunOutcome } from '../protocol/outcomes.js'
import type { InitJob, PostrunJob, RunJob } from '../protocol/stages.js'
import { hostingOf, openPool, type Pool } from './pool.js'
import type { InitTaskResult, RunTaskResult } from './task.js'

export type PoolName = 'init' | 'running' | 'postrun'

export interface StagePools {
  readonly init: Pool<InitJob, InitTaskResult>
  readonly running: Pool<RunJob, RunTaskResult>
  readonly postrun: Pool<PostrunJob, PostrunOutcome>
}

export interface StagePoolsOptions {
  readonly plan: Plan
  readonly onIdleDeath: (pool: PoolName, cause: Error) => void
  /** file: URLs of other task modules, for tests. */
  readonly taskFiles?: Partial<Readonly<Record<PoolName, string>>>
}

/** Starts the threads. Whoever opens closes each pool. */
export function openStagePools({ plan, onIdleDeath, taskFiles = {} }: StagePoolsOptions): StagePools {
  const { init, running, postrun } = plan.stages
  const open = <J, R>(pool: PoolName, sessions: number, hosting: { threads: number; tasksPerThread: number }) =>
    openPool<J, R>({
      ...hosting,
      taskFile: taskFiles[pool] ?? new URL(`./${pool}.task.js`, import.meta.url).href,
      // Stages hands out no more than there are slots; a run that would not die may hold one a little longer.
      maxQueue: 2 * sessions,
      data: { plan },
      onIdleDeath: cause => onIdleDeath(pool, cause),
    })
  return {
    init: open('init', init, { threads: init, tasksPerThread: 1 }),
    running: open('running', running, hostingOf(running)),
    postrun: open('postrun', postrun, { threads: postrun, tasksPerThread: 1 }),
  }
}

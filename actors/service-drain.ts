// An orderly end: no more tasks, running sessions get their time, what runs on is stopped early enough to give its partial result.

import type { CallbackMessage } from './protocol/callback.js'
import type { RolloutMessage } from './protocol/rollout.js'
import type { ActorRef } from './system/ref.js'
import type { ActorSystem } from './system/system.js'

export interface DrainReport {
  /** Sessions that were ended because their time was over: `gateway_restarted`. */
  readonly stopped: number
  /** Sessions that had not ended even then; the next start ends them. */
  readonly left: number
  /** Sessions that wait for the next start, and their tasks. */
  readonly kept: number
  readonly keptTasks: readonly string[]
  /** Results that no receiver has taken. */
  readonly undelivered: number
}

/** How often it looks whether it is over. */
const LOOK_MS = 50
const ASK_MS = 20_000

export interface DrainInput {
  readonly system: Pick<ActorSystem, 'ask' | 'clock'>
  readonly rollout: ActorRef<RolloutMessage>
  readonly callback: ActorRef<CallbackMessage>
  readonly deadlineMs: number
}

/** Two thirds of the time for sessions to end by themselves, one for those that are stopped then. What waits is kept for the next start. */
export async function drainService({ system, rollout, callback, deadlineMs }: DrainInput): Promise<DrainReport> {
  const { clock } = system
  const endMs = clock.now() + deadlineMs
  const until = async (atMs: number, left: () => Promise<number>) => {
    for (;;) {
      const count = await left()
      if (count === 0 || clock.now() >= atMs) return count
      await clock.sleep(Math.min(LOOK_MS, Math.max(1, atMs - clock.now())))
    }
  }
  const tasks = () => system.ask(rollout, { type: 'tasks-requested' }, ASK_MS)
  const sessions = async () => (await tasks()).activeSessions
  const deliveries = () => system.ask(callback, { type: 'deliveries-described' }, ASK_MS)
  // Each result is offered once more; a receiver that stays away does not hold up the end.
  const untried = async () => {
    const { pending, tried } = await deliveries()
    return pending - tried
  }

  rollout.tell({ type: 'drain-rollout' })
  const stopped = await until(endMs - deadlineMs / 3, sessions)
  if (stopped > 0) rollout.tell({ type: 'stop-sessions' })
  const left = await until(endMs, sessions)
  await until(endMs, untried)
  const { pendingSessions, tasks: known } = await tasks()
  const keptTasks = known.flatMap(({ taskId, status }) => (isOver(status) ? [] : [taskId]))
  return { stopped, left, kept: pendingSessions - left, keptTasks, undelivered: (await deliveries()).pending }
}

const isOver = (status: string): boolean => status !== 'running' && status !== 'cancelling'

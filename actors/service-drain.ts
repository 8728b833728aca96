// An orderly end: no more tasks, running sessions get their time, what runs on is cancelled early enough to give its partial result.

import type { CallbackMessage } from './protocol/callback.js'
import type { RolloutMessage } from './protocol/rollout.js'
import type { ActorRef } from './system/ref.js'
import type { ActorSystem } from './system/system.js'

export interface DrainReport {
  /** Sessions that were cancelled because their time was over. */
  readonly cancelled: number
  /** Sessions that had not ended even then. */
  readonly left: number
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

/** Two thirds of the time for sessions to end by themselves, one for those that are cancelled then. */
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
  const sessions = async () => (await system.ask(rollout, { type: 'tasks-requested' }, ASK_MS)).pendingSessions
  const deliveries = () => system.ask(callback, { type: 'deliveries-described' }, ASK_MS)
  // Each result is offered once more; a receiver that stays away does not hold up the end.
  const untried = async () => {
    const { pending, tried } = await deliveries()
    return pending - tried
  }

  rollout.tell({ type: 'drain-rollout' })
  const cancelled = await until(endMs - deadlineMs / 3, sessions)
  if (cancelled > 0) rollout.tell({ type: 'cancel-all-tasks', reason: 'the service is stopping' })
  const left = await until(endMs, sessions)
  await until(endMs, untried)
  return { cancelled, left, undelivered: (await deliveries()).pending }
}

// What may be said to the simulation actor, which owns the embedded inference server in its thread.

import type { ActorRef } from '../system/ref.js'

export interface SimulationLoadRequested {
  readonly type: 'simulation-load-requested'
  readonly replyTo: ActorRef<SimulationLoadReply>
}

/** Generations since the server's start. */
export interface SimulationLoadReply {
  readonly type: 'simulation-load'
  readonly running: number
  readonly finished: number
  readonly aborted: number
}

export type SimulationMessage = SimulationLoadRequested

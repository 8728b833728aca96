// What may be said to the host of a group of threads (a pair: merge-k, then proxy-k): questions about them, and killing one.

import type { ErrorData } from '../../src/domain/errors.js'
import type { SystemInspection } from '../system/inspect.js'
import type { ActorRef } from '../system/ref.js'

export type ThreadHostMessage =
  /** Answered once every thread of the group is up. */
  | { readonly type: 'threads-started-requested'; readonly replyTo: ActorRef<ThreadsStarted> }
  | { readonly type: 'threads-described'; readonly replyTo: ActorRef<ThreadsDescription> }
  /** Ends the thread at once; it is restarted like after any death. An unknown name changes nothing. */
  | { readonly type: 'kill-thread'; readonly thread: string }

export interface ThreadsStarted {
  readonly type: 'threads-started'
  /** By name of the thread: what its `start` returned. */
  readonly replies: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

export type ThreadPhase = 'down' | 'starting' | 'up'

export interface ThreadDescription {
  readonly name: string
  readonly phase: ThreadPhase
  readonly restarts: number
  readonly lastError: ErrorData | null
  /** Its actors; null while it is not up, or when it did not answer in time. */
  readonly system: SystemInspection | null
  /** Bytes; null likewise. */
  readonly heapUsedBytes: number | null
  /** How late its event loop was since it was last described, milliseconds; null likewise. */
  readonly loopDelay: { readonly p50Ms: number; readonly p99Ms: number; readonly maxMs: number } | null
}

export interface ThreadsDescription {
  readonly type: 'threads-description'
  readonly threads: readonly ThreadDescription[]
}

// What may be said to the proxy actor of a pair, which serves the model routes on its own port.

import type { SessionId } from '../../src/domain/ids.js'
import type { GateState } from '../../src/domain/inference.js'
import type { SamplingSpec, TaskLimits } from '../../src/domain/task.js'
import type { SideCallRule } from '../../src/harnesses/base.js'
import type { ActorRef } from '../system/ref.js'
import type { UpstreamObstacle } from './prober.js'
import type { SessionMessage } from './session.js'

/** Sums over the session's recorded calls. */
export interface LimitsUsed {
  readonly turns: number
  readonly promptTokens: number
  readonly sampledTokens: number
}

export interface ProxySession {
  readonly sessionId: SessionId
  /** SHA-256 of the session key, hex: the key itself is not kept. */
  readonly keyHash: string
  readonly attempt: number
  readonly state: 'registered' | 'running' | 'ended'
  readonly sampling: SamplingSpec
  readonly samplingSeed: number | null
  readonly limits: TaskLimits
  readonly models: Readonly<Record<string, string>>
  readonly sideCalls: readonly SideCallRule[]
  /** Told `limit-reached`. */
  readonly session: ActorRef<SessionMessage>
  /** To go on from after a restart of the proxy's thread: the number of the next call, and what counts against the task's limits. */
  readonly firstSequence: number
  readonly used: LimitsUsed
}

export type ProxyMessage =
  /** Registers, or replaces what is known of the session (state changes, after a restart). */
  | { readonly type: 'session-put'; readonly session: ProxySession; readonly replyTo: ActorRef<SessionPutReply> }
  /** Refuses further calls, cancels running ones upstream, and replies when none is left and every capture is acknowledged. */
  | {
      readonly type: 'session-close-requested'
      readonly sessionId: SessionId
      readonly replyTo: ActorRef<SessionClosed>
    }
  /** The key is unknown from now on. */
  | { readonly type: 'forget-session'; readonly sessionId: SessionId }
  /** From main: new calls wait or go on. With `awaitDrain` answered when no call is at an engine any more, or the gate opened again. */
  | {
      readonly type: 'gate-set-requested'
      readonly gate: GateState
      readonly awaitDrain: boolean
      readonly replyTo: ActorRef<GateDescription>
    }
  | { readonly type: 'gate-described'; readonly replyTo: ActorRef<GateDescription> }
  /** Whether calls to it may be trained on from now on; null = they may. */
  | { readonly type: 'upstream-standing'; readonly upstream: string; readonly obstacle: UpstreamObstacle | null }
  | { readonly type: 'proxy-described'; readonly replyTo: ActorRef<ProxyDescription> }

export interface SessionPutReply {
  readonly type: 'session-put-done'
  /** Base URL for the harness, without `/v1`. */
  readonly gatewayUrl: string
}

export interface SessionClosed {
  readonly type: 'session-closed'
  readonly calls: number
  readonly aborted: number
}

export interface GateDescription {
  readonly type: 'gate-description'
  readonly isClosed: boolean
  /** Calls at an engine, each counted until its record is safe. */
  readonly inflight: number
  readonly waiting: number
}

export interface ProxyDescription {
  readonly type: 'proxy-description'
  readonly port: number
  readonly sessions: number
  readonly inflight: number
  readonly unacknowledged: number
}

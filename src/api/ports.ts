// What the control API asks of the rest of the service. The control actor fills these in; tests use fakes.

import type { Plan } from '../config/plan.js'
import type { Clock } from '../domain/clock.js'
import type { ErrorData } from '../domain/errors.js'
import type { InferenceStatus, PauseMode } from '../domain/inference.js'
import type { TaskRequest } from '../domain/task.js'
import type { ProbeReport, ProbeVerdict } from '../upstreams/probe.js'
import type { AuthSettings } from './auth.js'
import type { EventHub } from './event-hub.js'
import type { TaskPlugins } from './plugins.js'
import type { EncodeBinary, EncodeReference, EncodeResult, TaskSnapshot } from './task-json.js'

export type Submitted =
  | { readonly ok: true; readonly taskId: string; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly error: ErrorData }

export interface TaskOverview {
  readonly tasks: readonly { readonly taskId: string; readonly status: string }[]
  readonly pendingSessions: number
}

/** This node as the contract shows it (3.11). */
export interface NodeInfo {
  readonly nodeId: string
  readonly gatewayUrl: string
  readonly draining: boolean
  readonly workers: { readonly init: number; readonly running: number; readonly postrun: number }
  /** NodeStageMetrics; null = the stages did not answer. */
  readonly metrics: {
    readonly initQueueDepth: number
    readonly initInflight: number
    readonly readyDepth: number
    readonly runInflight: number
    readonly postrunQueueDepth: number
    readonly postrunInflight: number
  } | null
}

/** Another owner holds the pause. */
export interface PauseHeld {
  readonly heldBy: string
}

/** An inference server, as far as its probe has told. */
export interface UpstreamStatus {
  readonly id: string
  readonly profile: string
  /** `off` = not to be probed (`upstreams[].probe`). */
  readonly verdict: ProbeVerdict | 'not_probed' | 'off'
  readonly report: ProbeReport | null
}

export interface ControlPorts {
  /** Any of these may reject with RolloutError ACTOR_*: the answer is then 503. */
  submit(request: TaskRequest): Promise<Submitted>
  task(taskId: string, generation: number | null): Promise<TaskSnapshot | null>
  /** Answers when every session has ended; null = no such task. */
  cancel(taskId: string, registerIfMissing: boolean): Promise<TaskSnapshot | null>
  list(): Promise<TaskOverview>
  node(): Promise<NodeInfo>
  /** Calls of all proxies. */
  inference(): Promise<InferenceStatus>
  /** Answers when drained, or at the time-out: paused either way, unless it was ended meanwhile (`pause` null). */
  pause(asked: {
    readonly owner: string
    readonly mode: PauseMode
    readonly leaseMs: number
    readonly timeoutMs: number
  }): Promise<InferenceStatus | PauseHeld>
  resume(asked: {
    readonly owner: string
    readonly force: boolean
    readonly policyVersion: string | null
  }): Promise<InferenceStatus | PauseHeld>
  upstreams(): readonly UpstreamStatus[]
}

export interface ControlOptions {
  readonly plan: Plan
  readonly plugins: TaskPlugins
  readonly auth: AuthSettings
  readonly ports: ControlPorts
  readonly hub: EventHub
  readonly clock: Clock
  readonly encode: EncodeResult
  readonly encodeBinary: EncodeBinary
  readonly encodeReference: EncodeReference
  /** Told of errors that are no answer of the API. */
  readonly onFailure: (route: string, cause: unknown) => void
}

// Runs the rollout machine without a kernel: its effects are carried out at once (ids counted, results "stored"), sessions end when
// the test says so. For table and property tests.

import type { SubmitReply, TaskList, TaskReply, TaskView } from '../../actors/protocol/rollout.js'
import { rolloutMachine } from '../../actors/rollout/machine.js'
import { finalResult } from '../../actors/rollout/results.js'
import type { RolloutEffect, RolloutInput, RolloutSettings, RolloutState } from '../../actors/rollout/state.js'
import type { SessionResult } from '../../src/domain/session.js'
import type { TaskRequest } from '../../src/domain/task.js'
import { localRuntime, recordingRef, sessionSpec } from './session-fixtures.js'

export const rolloutSettings: RolloutSettings = {
  nodeId: 'node-1',
  queuedSessions: 1_000,
  defaultRuntime: null,
  retainedSessions: 1_000,
  retainedMs: 60_000,
  tombstoneMs: 300_000,
  tombstones: 100,
}

export function taskRequest(over: Partial<TaskRequest> = {}): TaskRequest {
  const { agent, builder, sampling, limits } = sessionSpec()
  return {
    task_id: 'task-1',
    instruction: 'go',
    num_samples: 1,
    dispatch_priority: 0,
    early_stop_min_usable_sessions: null,
    timeout_seconds: 60,
    runtime: localRuntime,
    agent,
    builder,
    evaluator: null,
    callback_url: null,
    callback_results: 'full',
    metadata: {},
    sampling,
    limits,
    models: {},
    ...over,
  }
}

/** A result as a session actor gives it; `trained` tokens in one trace, none = no trace. */
export function sessionResult(sessionId: string, trained: number, over: Partial<SessionResult> = {}): SessionResult {
  const spec = sessionSpec({ sessionId: sessionId as SessionResult['sessionId'] })
  const empty = finalResult(spec, null, null, { nodeId: 'node-1', createdAtMs: 0, dispatchedAtMs: 0, nowMs: 0 })
  const { trajectory } = empty
  return {
    ...empty,
    status: 'COMPLETED',
    error: null,
    trajectory: {
      ...trajectory,
      status: 'COMPLETED',
      error: null,
      traces:
        trained === 0
          ? []
          : [
              {
                promptIds: Int32Array.of(1),
                responseIds: new Int32Array(trained).fill(2),
                lossMask: new Uint8Array(trained).fill(1),
                responseLogprobs: new Float32Array(trained).fill(-0.5),
                promptMessages: [],
                responseMessages: [],
                tools: null,
                finishReason: 'stop',
                reward: 1,
                agent: 'main',
                agentId: null,
                breakReason: null,
                calls: [],
                metadata: {},
              },
            ],
      ledger: {
        ...trajectory.ledger,
        calls: trained === 0 ? 0 : 1,
        traces: trained === 0 ? 0 : 1,
        tokens: { sampled: trained, trained, setAside: {} },
      },
    },
    ...over,
  }
}

export class RolloutWorld {
  state: RolloutState
  readonly effects: RolloutEffect[] = []
  readonly started: string[] = []
  readonly cancelled: string[] = []
  readonly #machine: ReturnType<typeof rolloutMachine>
  #now = 1_000
  #ids = 0
  /** False: results wait in `unstored` until `store()`. */
  storeAtOnce = true
  readonly unstored: Extract<RolloutEffect, { type: 'store-result' }>[] = []

  constructor(settings: Partial<RolloutSettings> = {}) {
    this.#machine = rolloutMachine({ ...rolloutSettings, ...settings })
    this.state = this.#machine.initial.state
  }

  send(message: RolloutInput): readonly RolloutEffect[] {
    this.#now += 1
    const { state, effects } = this.#machine.step(this.state, message)
    this.state = state
    this.effects.push(...effects)
    for (const effect of effects) this.#carryOut(effect)
    return effects
  }

  submit(over: Partial<TaskRequest> = {}): SubmitReply {
    const replyTo = recordingRef<SubmitReply>('/ask/submit/')
    this.send({ type: 'task-submit-requested', request: taskRequest(over), replyTo })
    return only(replyTo.told)
  }

  /** Asks for a task; null = unknown. */
  task(taskId = 'task-1', generation: number | null = null): TaskView | null {
    const replyTo = recordingRef<TaskReply>('/ask/task/')
    this.send({ type: 'task-requested', taskId, generation, replyTo })
    const reply = only(replyTo.told)
    return reply.type === 'task-found' ? reply.task : null
  }

  list(): TaskList {
    const replyTo = recordingRef<TaskList>('/ask/list/')
    this.send({ type: 'tasks-requested', replyTo })
    return only(replyTo.told)
  }

  cancel(taskId = 'task-1', registerIfMissing = false): readonly TaskReply[] {
    const replyTo = recordingRef<TaskReply>('/ask/cancel/')
    this.send({ type: 'task-cancel-requested', taskId, registerIfMissing, replyTo })
    return replyTo.told
  }

  slots(count: number): void {
    this.send({ type: 'init-slots-free', count })
  }

  /** The session leaves REGISTERED. */
  begin(sessionId: string): void {
    this.send({ type: 'session-status-changed', sessionId: sessionId as never, status: 'INITIALIZING' })
  }

  end(sessionId: string, result: SessionResult = sessionResult(sessionId, 3)): void {
    this.send({ type: 'session-ended', sessionId: result.sessionId, result })
  }

  store(): void {
    for (const effect of this.unstored.splice(0)) this.#store(effect)
  }

  events(): readonly string[] {
    return this.effects.flatMap(effect => (effect.type === 'publish' ? [effect.event.type] : []))
  }

  #carryOut(effect: RolloutEffect): void {
    switch (effect.type) {
      case 'prepare-task':
        return void this.send({
          type: 'task-prepared',
          request: effect.request,
          sessionIds: Array.from({ length: effect.request.num_samples }, () => `s-${++this.#ids}`),
          deliveryId: `d-${++this.#ids}`,
          atMs: this.#now,
          replyTo: effect.replyTo,
        })
      case 'start-session':
        this.started.push(effect.spec.sessionId)
        return void this.send({ type: 'session-dispatched', sessionId: effect.spec.sessionId, atMs: this.#now })
      case 'cancel-session':
        return void this.cancelled.push(effect.sessionId)
      case 'store-result':
        if (this.storeAtOnce) this.#store(effect)
        else this.unstored.push(effect)
        return
      case 'reply-submit':
        effect.replyTo.tell(effect.reply)
        return
      case 'reply-task':
        effect.replyTo.tell(effect.reply)
        return
      case 'reply-list':
        effect.replyTo.tell(effect.reply)
        return
      default:
        return
    }
  }

  #store(effect: Extract<RolloutEffect, { type: 'store-result' }>): void {
    const { createdAtMs, dispatchedAtMs, spec } = effect
    const marks = { nodeId: 'node-1', createdAtMs, dispatchedAtMs, nowMs: this.#now }
    const result = finalResult(spec, effect.result, effect.substitute, marks)
    this.send({
      type: 'result-stored',
      taskId: spec.taskId,
      index: spec.sampleIndex,
      result,
      path: effect.write ? `ses_${spec.sessionId}.json` : null,
      atMs: this.#now,
    })
  }
}

function only<T>(told: readonly T[]): T {
  const [first] = told
  if (told.length !== 1 || first === undefined) throw new Error(`one answer wanted, got ${told.length}`)
  return first
}

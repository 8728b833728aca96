// Runs the rollout machine without a kernel: its effects are carried out at once (ids counted, results "stored"), sessions end when
// the test says so. For table and property tests.

import type { SubmitReply, TaskList, TaskReply, TaskView } from '../../actors/protocol/rollout.js'
import { rolloutMachine } from '../../actors/rollout/machine.js'
import { recovered } from '../../actors/rollout/recover.js'
import { countsOf, finalResult } from '../../actors/rollout/results.js'
import type {
  RolloutEffect,
  RolloutInput,
  RolloutSettings,
  RolloutState,
  TaskFacts,
} from '../../actors/rollout/state.js'
import type { SessionResult } from '../../src/domain/session.js'
import type { TaskRequest } from '../../src/domain/task.js'
import type { KeptOutbox, KeptResult, KeptSession, KeptState, KeptTask } from '../../src/store/control-records.js'
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
  readonly stopped: string[] = []
  readonly #settings: RolloutSettings
  #machine: ReturnType<typeof rolloutMachine>
  #now = 1_000
  #ids = 0
  /** What is on disk. */
  readonly #tasks = new Map<string, KeptTask>()
  readonly #sessions = new Map<string, KeptSession>()
  readonly #outbox = new Map<string, KeptOutbox>()
  readonly #results = new Map<string, SessionResult>()
  /** Results in the order in which they were stored; a session twice = it was resolved twice. */
  readonly stored: string[] = []
  /** Sessions that an earlier life ran, as the next one takes them up. */
  readonly orphans: string[] = []
  /** False: results wait in `unstored` until `store()`. */
  storeAtOnce = true
  readonly unstored: Extract<RolloutEffect, { type: 'store-result' }>[] = []

  constructor(settings: Partial<RolloutSettings> = {}) {
    this.#settings = { ...rolloutSettings, ...settings }
    this.#machine = rolloutMachine(this.#settings)
    this.state = this.#machine.initial.state
  }

  /** The process is killed: only what is on disk is left, and the next start takes it up. */
  restart(): void {
    this.unstored.length = 0
    const kept: KeptState = {
      tasks: [...this.#tasks.values()],
      sessions: [...this.#sessions.values()],
      outbox: [...this.#outbox.values()],
      tombstones: [],
    }
    this.#machine = rolloutMachine(this.#settings, recovered(this.#settings, kept, this.#now))
    const { state, effects } = this.#machine.initial
    this.state = state
    this.effects.push(...effects)
    for (const effect of effects) this.#carryOut(effect)
  }

  /** A receiver has acknowledged. */
  acknowledge(deliveryId: string): void {
    const entry = this.#outbox.get(deliveryId)
    if (!entry) return
    this.#outbox.delete(deliveryId)
    const key = `${entry.taskId} ${entry.generation}`
    const task = this.#tasks.get(key)
    const delivery = { state: 'delivered', attempts: 1, error: null } as const
    if (task) this.#tasks.set(key, { ...task, delivery })
    this.send({ type: 'delivery-changed', taskId: entry.taskId, deliveryId, ...delivery })
  }

  #keepTask(task: KeptTask): void {
    this.#tasks.set(`${task.taskId} ${task.generation}`, task)
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
  task(taskId = 'task-1', generation: number | null = null): ShownTask | null {
    const replyTo = recordingRef<TaskReply>('/ask/task/')
    this.send({ type: 'task-requested', taskId, generation, replyTo })
    const reply = only(replyTo.told)
    return reply.type === 'task-found' ? shown(reply.task) : null
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
      case 'store-task':
        this.#keepTask(effect.task)
        return void this.send({ type: 'task-stored', taskId: effect.task.taskId })
      case 'note-task':
        this.#keepTask(effect.task)
        return
      case 'store-end': {
        const { task, outbox } = effect
        this.#keepTask(task)
        if (outbox) this.#outbox.set(outbox.deliveryId, outbox)
        return void this.send({ type: 'task-end-stored', taskId: task.taskId, generation: task.generation })
      }
      case 'forget-tasks':
        for (const { taskId, generation } of effect.tasks) this.#tasks.delete(`${taskId} ${generation}`)
        return
      case 'end-orphan':
        return void this.orphans.push(effect.spec.sessionId)
      case 'start-session': {
        const { sessionId, taskId, sampleIndex: index } = effect.spec
        this.started.push(sessionId)
        const { generation } = effect
        const started = { sessionId, taskId, generation, index, pair: 1, dispatchedAtMs: this.#now, result: null }
        this.#sessions.set(sessionId, started)
        return void this.send({ type: 'session-dispatched', sessionId, pair: 1, atMs: this.#now })
      }
      case 'stop-session':
        return void this.stopped.push(effect.sessionId)
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
        effect.replyTo.tell(
          effect.task ? { type: 'task-found', task: this.#view(effect.task) } : { type: 'task-unknown' },
        )
        return
      case 'reply-list':
        effect.replyTo.tell(effect.reply)
        return
      default:
        return
    }
  }

  /** With the results that are only on disk. */
  #view(task: TaskFacts): TaskView {
    const results = task.results.flatMap(result =>
      'kept' in result ? (this.#results.get(result.sessionId) ?? []) : result,
    )
    return { ...task, results }
  }

  #store(effect: Extract<RolloutEffect, { type: 'store-result' }>): void {
    const { createdAtMs, dispatchedAtMs, spec, generation, pair, usable } = effect
    const { sessionId, taskId, sampleIndex: index } = spec
    const marks = { nodeId: 'node-1', createdAtMs, dispatchedAtMs, nowMs: this.#now }
    const result = finalResult(spec, effect.result, effect.substitute, marks)
    const counts = countsOf(result) ?? effect.counts
    const path = effect.write ? `ses_${sessionId}.json` : null
    const kept: KeptResult = { status: result.status, ...counts, usable, path, atMs: this.#now }
    this.#sessions.set(sessionId, { sessionId, taskId, generation, index, pair, dispatchedAtMs, result: kept })
    this.#results.set(sessionId, result)
    this.stored.push(sessionId)
    this.send({ type: 'result-stored', taskId, index, result, kept })
  }
}

/** Every result in memory. */
export type ShownTask = Omit<TaskView, 'results'> & { readonly results: readonly SessionResult[] }

const shown = (task: TaskView): ShownTask => ({
  ...task,
  results: task.results.flatMap(result => ('binary' in result ? [] : [result])),
})

function only<T>(told: readonly T[]): T {
  const [first] = told
  if (told.length !== 1 || first === undefined) throw new Error(`one answer wanted, got ${told.length}`)
  return first
}

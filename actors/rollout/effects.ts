// Carries out what the rollout machine asks for: ids and times, session actors, result files, events, answers.

import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { catchError, defer, EMPTY, ignoreElements, map, mergeMap, type Observable, of, retry, throwError } from 'rxjs'
import {
  type EncodeBinary,
  type EncodeReference,
  type EncodeResult,
  type StoredResult,
  taskResultJson,
} from '../../src/api/task-json.js'
import { errorData, RolloutError } from '../../src/domain/errors.js'
import type { SessionResult, SessionSpec } from '../../src/domain/session.js'
import { unreachable } from '../../src/domain/unreachable.js'
import { EVENTS } from '../../src/observability/events.js'
import { failpoint } from '../../src/observability/failpoints.js'
import type { KeptResult } from '../../src/store/control-records.js'
import type { ControlStore } from '../../src/store/control-store.js'
import type { CallbackMessage } from '../protocol/callback.js'
import type { ControlMessage } from '../protocol/control.js'
import type { TaskView } from '../protocol/rollout.js'
import type { SessionMessage, SessionReport } from '../protocol/session.js'
import type { ActorContext } from '../system/behavior.js'
import type { Interpreter } from '../system/machine.js'
import type { ActorRef } from '../system/ref.js'
import { binaryPath, type ResultFile, writeResult, writtenResult } from './files.js'
import { countsOf, finalResult, goneResult } from './results.js'
import type { ResultRef, RolloutEffect, RolloutInput, RolloutSettings, TaskFacts } from './state.js'

export interface RolloutDeps {
  readonly settings: RolloutSettings
  /** Folder of result files; null = none are written. */
  readonly saveDir: string | null
  readonly encode: EncodeResult
  /** The form written beside the JSON, and kept in the store where no file is. */
  readonly encodeBinary: EncodeBinary
  /** What a callback holds that asked for references. */
  readonly encodeReference: EncodeReference
  readonly callback: ActorRef<CallbackMessage>
  readonly control: ActorRef<ControlMessage>
  readonly store: ControlStore
  /** The session's result is on disk: its records, in the shard of that pair, are not needed any more. Also told twice. */
  readonly releaseRecords: (sessionId: string, pair: number) => void
  readonly now: () => number
  /** Number of the pair that is to serve the next session. */
  readonly placeSession: () => number
  /** Starts the session's actor under rollout, with the session id as its name. */
  readonly startSession: (
    spawn: ActorContext<RolloutInput>['spawn'],
    start: SessionStart,
    rollout: ActorRef<SessionReport>,
  ) => ActorRef<SessionMessage>
}

/** Whole results, or where they are, as the task asked. */
const callbackForm = (deps: RolloutDeps, { request, generation }: TaskView): EncodeResult =>
  request?.callback_results === 'references' ? result => deps.encodeReference(result, generation) : deps.encode
export interface SessionStart {
  readonly spec: SessionSpec
  readonly pair: number
  /** Since when a session has been there that a dead process ran: what it captured is all that is left of it. null = it begins. */
  readonly orphanSinceMs: number | null
}

/** A full disk may have room again; after these the result goes on without its file, and that is reported. */
const WRITE_RETRIES = 4
const WRITE_RETRY_MS = 250
/** Waits between tries of what must be stored before anything goes on. */
const STORE_RETRY_MS = 250
const LONGEST_STORE_RETRY_MS = 5_000

export function rolloutEffects(
  deps: RolloutDeps,
  context: ActorContext<RolloutInput>,
): Interpreter<RolloutInput, RolloutEffect> {
  const { clock, log } = context
  const sessions = new Map<string, ActorRef<SessionMessage>>()

  const perform = (work: () => void): Observable<never> =>
    defer(() => {
      work()
      return EMPTY
    })
  const quietly = (work: () => Promise<unknown>): Observable<never> => defer(work).pipe(ignoreElements())

  /** Sessions whose start is being stored -> the order that came meanwhile. */
  const starting = new Map<string, SessionMessage | null>()

  /** A store that is full or cannot be written may be put right: until then this waits, and nothing that depends on it happens. */
  const untilStored = <T>(what: string, work: () => Promise<T>): Observable<T> =>
    defer(work).pipe(
      retry({
        delay: (cause, attempt) => {
          if (attempt === 1 || attempt % 20 === 0)
            log.error(EVENTS.storeWait, { what, attempt, error: errorData(cause) })
          return clock.timer$(Math.min(LONGEST_STORE_RETRY_MS, STORE_RETRY_MS * 2 ** Math.min(attempt - 1, 10)))
        },
      }),
    )

  const begin = (start: SessionStart): ActorRef<SessionMessage> => {
    const ref = deps.startSession(context.spawn, start, context.self)
    sessions.set(start.spec.sessionId, ref)
    context.watch(ref)
    return ref
  }

  const startSession = ({ spec, generation }: Extract<RolloutEffect, { type: 'start-session' }>) =>
    defer(() => {
      const { sessionId, taskId, sampleIndex: index } = spec
      const pair = deps.placeSession()
      const atMs = clock.now()
      starting.set(sessionId, null)
      const started = { sessionId, taskId, generation, index, pair, dispatchedAtMs: atMs, result: null }
      return untilStored('session-start', () => deps.store.putSession(started)).pipe(
        map((): RolloutInput => {
          failpoint('session.put')
          const order = starting.get(sessionId)
          starting.delete(sessionId)
          const ref = begin({ spec, pair, orphanSinceMs: null })
          if (order) ref.tell(order)
          return { type: 'session-dispatched', sessionId, pair, atMs }
        }),
      )
    })

  const endOrphan = (effect: Extract<RolloutEffect, { type: 'end-orphan' }>) =>
    defer(() => writtenResult(deps.saveDir, effect.spec)).pipe(
      mergeMap((kept): Observable<RolloutInput> => {
        const { spec, generation, pair, dispatchedAtMs, createdAtMs } = effect
        const { sessionId, taskId, sampleIndex: index } = spec
        if (kept === null)
          return perform(() => {
            begin({ spec, pair, orphanSinceMs: createdAtMs })
          })
        const session = { sessionId, taskId, generation, index, pair, dispatchedAtMs, result: kept }
        return untilStored('session-result', () => deps.store.putSession(session)).pipe(
          map((): RolloutInput => {
            deps.releaseRecords(sessionId, pair)
            return { type: 'result-found', sessionId, kept }
          }),
        )
      }),
    )

  /** To a session whether it is there or its start is still being stored. */
  const order = (sessionId: string, message: SessionMessage): void => {
    if (starting.has(sessionId)) starting.set(sessionId, message)
    else sessions.get(sessionId)?.tell(message)
  }

  const writeFile = (spec: Extract<RolloutEffect, { type: 'store-result' }>['spec'], file: ResultFile) => {
    const { saveDir } = deps
    const { taskId, sessionId } = spec
    if (saveDir === null) return of(null)
    return defer(() => writeResult(saveDir, taskId, sessionId, file)).pipe(
      retry({
        delay: (cause, attempt) =>
          attempt > WRITE_RETRIES ? throwError(() => cause) : clock.timer$(WRITE_RETRY_MS * 2 ** (attempt - 1)),
      }),
      catchError(cause => {
        log.error(EVENTS.resultWriteFail, { taskId, sessionId, error: errorData(cause) })
        return of(null)
      }),
    )
  }

  const storeResult = (effect: Extract<RolloutEffect, { type: 'store-result' }>): Observable<RolloutInput> => {
    const { spec, createdAtMs, dispatchedAtMs, generation, pair, usable } = effect
    const { taskId, sessionId, sampleIndex: index } = spec
    sessions.delete(sessionId)
    const atMs = clock.now()
    const marks = { nodeId: deps.settings.nodeId, createdAtMs, dispatchedAtMs, nowMs: atMs }
    const result = finalResult(spec, effect.result, effect.substitute, marks)
    const { calls, sampledTokens } = countsOf(result) ?? effect.counts
    return defer(() => deps.encodeBinary(result)).pipe(
      mergeMap(binary =>
        (effect.write ? writeFile(spec, { json: deps.encode(result), binary }) : of(null)).pipe(
          mergeMap(path => {
            failpoint('session.filed')
            const kept: KeptResult = { status: result.status, calls, sampledTokens, usable, path, atMs }
            const session = { sessionId, taskId, generation, index, pair, dispatchedAtMs, result: kept }
            return untilStored('session-result', () =>
              deps.store.putSession(session, path === null ? binary : null),
            ).pipe(
              map((): RolloutInput => {
                failpoint('session.stored')
                deps.releaseRecords(sessionId, pair)
                return { type: 'result-stored', taskId, index, result, kept }
              }),
            )
          }),
        ),
      ),
    )
  }

  /** The task with the results that are only on disk. One that is gone from there is said to be. */
  const viewed = async (task: TaskFacts): Promise<TaskView> => ({
    ...task,
    results: await Promise.all(
      task.results.map(result => ('kept' in result ? readResult(task.taskId, result) : result)),
    ),
  })

  async function readResult(
    taskId: string,
    { sessionId, index, kept }: ResultRef,
  ): Promise<SessionResult | StoredResult> {
    try {
      const path = kept.path === null ? null : binaryPath(kept.path)
      return { sessionId, binary: path === null ? deps.store.resultBytes(sessionId) : await readFile(path) }
    } catch (cause) {
      log.error(EVENTS.resultReadFail, { taskId, sessionId, error: errorData(cause) })
      return goneResult({ taskId, sessionId, index, status: kept.status, nodeId: deps.settings.nodeId })
    }
  }

  return effect => {
    switch (effect.type) {
      case 'prepare-task': {
        const { request, replyTo } = effect
        return of<RolloutInput>({
          type: 'task-prepared',
          request,
          sessionIds: Array.from({ length: request.num_samples }, () => `s-${randomUUID()}`),
          deliveryId: randomUUID(),
          atMs: clock.now(),
          replyTo,
        })
      }
      case 'store-task':
        return defer(() => deps.store.putTask(effect.task)).pipe(
          map((): RolloutInput => {
            failpoint('submit.put')
            return { type: 'task-stored', taskId: effect.task.taskId }
          }),
          catchError(cause =>
            of<RolloutInput>({ type: 'task-not-stored', taskId: effect.task.taskId, error: errorData(cause) }),
          ),
        )
      case 'note-task':
        return quietly(() => deps.store.putTask(effect.task))
      case 'store-end':
        return untilStored('task-end', () => deps.store.endTask(effect.task, effect.outbox)).pipe(
          map((): RolloutInput => {
            const { taskId, generation } = effect.task
            if (effect.outbox !== null) failpoint('outbox.put')
            return { type: 'task-end-stored', taskId, generation }
          }),
        )
      case 'forget-tasks':
        return quietly(() => Promise.all(effect.tasks.map(task => deps.store.forgetTask(task))))
      case 'start-session':
        return startSession(effect)
      case 'end-orphan':
        return endOrphan(effect)
      case 'cancel-session':
        return perform(() => order(effect.sessionId, { type: 'cancel-session', reason: effect.reason }))
      case 'stop-session':
        return perform(() => order(effect.sessionId, { type: 'stop-session' }))
      case 'store-result':
        return storeResult(effect)
      case 'publish':
        return perform(() => deps.control.tell({ type: 'publish-event', event: effect.event }))
      case 'deliver':
        return defer(() => viewed(effect.task)).pipe(
          mergeMap(task =>
            perform(() =>
              deps.callback.tell({
                type: 'deliver-result',
                entry: effect.outbox,
                body: taskResultJson(task, callbackForm(deps, task)),
                atMs: clock.now(),
                reportTo: context.self,
              }),
            ),
          ),
        )
      case 'arm-tombstone': {
        const { taskId, stone, afterMs } = effect
        const untilMs = clock.now() + afterMs
        const stored: Observable<unknown> = effect.store
          ? untilStored('tombstone', () => deps.store.putTombstone({ taskId, untilMs }))
          : of(null)
        return stored.pipe(
          mergeMap(() => clock.timer$(afterMs)),
          mergeMap(() => defer(() => deps.store.dropTombstone(taskId))),
          map((): RolloutInput => ({ type: 'tombstone-expired', taskId, stone })),
        )
      }
      case 'reply-submit':
        return perform(() => effect.replyTo.tell(effect.reply))
      case 'reply-task': {
        const { task, replyTo } = effect
        if (task === null) return perform(() => replyTo.tell({ type: 'task-unknown' }))
        return defer(() => viewed(task)).pipe(
          mergeMap(view => perform(() => replyTo.tell({ type: 'task-found', task: view }))),
        )
      }
      case 'reply-list':
        return perform(() => effect.replyTo.tell(effect.reply))
      case 'warn':
        return perform(() => log.warn(EVENTS.rolloutEffectFail, effect.fields))
      default:
        return unreachable(effect)
    }
  }
}

/** An effect that failed, as the message the machine gets. A session that could not be started is resolved; others are reported. */
export function effectFailed(effect: RolloutEffect, cause: unknown): RolloutInput {
  const error = errorData(cause)
  if (effect.type === 'start-session') return { type: 'dispatch-failed', sessionId: effect.spec.sessionId, error }
  if (effect.type === 'store-result')
    throw new RolloutError('INTERNAL_BUG', `a result could not be made: ${error.message}`, { cause })
  return { type: 'effect-failed', effect: effect.type, error }
}

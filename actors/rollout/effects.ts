// Carries out what the rollout machine asks for: ids and times, session actors, result files, events, answers.

import { randomUUID } from 'node:crypto'
import { catchError, defer, EMPTY, map, type Observable, of, retry, throwError } from 'rxjs'
import { type EncodeBinary, type EncodeReference, type EncodeResult, taskResultJson } from '../../src/api/task-json.js'
import { errorData, RolloutError } from '../../src/domain/errors.js'
import type { SessionSpec } from '../../src/domain/session.js'
import { unreachable } from '../../src/domain/unreachable.js'
import { EVENTS } from '../../src/observability/events.js'
import type { CallbackMessage } from '../protocol/callback.js'
import type { ControlMessage } from '../protocol/control.js'
import type { TaskView } from '../protocol/rollout.js'
import type { SessionMessage, SessionReport } from '../protocol/session.js'
import type { ActorContext } from '../system/behavior.js'
import type { Interpreter } from '../system/machine.js'
import type { ActorRef } from '../system/ref.js'
import { writeResult } from './files.js'
import { finalResult } from './results.js'
import type { RolloutEffect, RolloutInput, RolloutSettings } from './state.js'

export interface RolloutDeps {
  readonly settings: RolloutSettings
  /** Folder of result files; null = none are written. */
  readonly saveDir: string | null
  readonly encode: EncodeResult
  /** The form written beside the JSON; absent = none is. */
  readonly encodeBinary?: EncodeBinary
  /** What a callback holds that asked for references. */
  readonly encodeReference: EncodeReference
  readonly callback: ActorRef<CallbackMessage>
  readonly control: ActorRef<ControlMessage>
  /** Starts the session's actor under rollout, with the session id as its name. */
  readonly startSession: (
    spawn: ActorContext<RolloutInput>['spawn'],
    spec: SessionSpec,
    rollout: ActorRef<SessionReport>,
  ) => ActorRef<SessionMessage>
}

/** Whole results, or where they are, as the task asked. */
const callbackForm = (deps: RolloutDeps, { request, generation }: TaskView): EncodeResult =>
  request?.callback_results === 'references' ? result => deps.encodeReference(result, generation) : deps.encode

/** A full disk may have room again; after these the result goes on without its file, and that is reported. */
const WRITE_RETRIES = 4
const WRITE_RETRY_MS = 250

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

  const store = (effect: Extract<RolloutEffect, { type: 'store-result' }>): Observable<RolloutInput> => {
    const { spec, createdAtMs, dispatchedAtMs } = effect
    const { taskId, sessionId, sampleIndex: index } = spec
    sessions.delete(sessionId)
    const marks = { nodeId: deps.settings.nodeId, createdAtMs, dispatchedAtMs, nowMs: clock.now() }
    const result = finalResult(spec, effect.result, effect.substitute, marks)
    const stored = (path: string | null): RolloutInput => ({
      type: 'result-stored',
      taskId,
      index,
      result,
      path,
      atMs: clock.now(),
    })
    const { saveDir } = deps
    if (saveDir === null || !effect.write) return of(stored(null))
    const json = deps.encode(result)
    const binary = deps.encodeBinary?.(result) ?? Promise.resolve(null)
    return defer(async () => writeResult(saveDir, taskId, sessionId, { json, binary: await binary })).pipe(
      retry({
        delay: (cause, attempt) =>
          attempt > WRITE_RETRIES ? throwError(() => cause) : clock.timer$(WRITE_RETRY_MS * 2 ** (attempt - 1)),
      }),
      map(stored),
      catchError(cause => {
        log.error(EVENTS.resultWriteFail, { taskId, sessionId, error: errorData(cause) })
        return of(stored(null))
      }),
    )
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
      case 'start-session':
        return defer(() => {
          const { sessionId } = effect.spec
          const ref = deps.startSession(context.spawn, effect.spec, context.self)
          sessions.set(sessionId, ref)
          context.watch(ref)
          return of<RolloutInput>({ type: 'session-dispatched', sessionId, atMs: clock.now() })
        })
      case 'cancel-session':
        return perform(() => sessions.get(effect.sessionId)?.tell({ type: 'cancel-session', reason: effect.reason }))
      case 'store-result':
        return store(effect)
      case 'publish':
        return perform(() => deps.control.tell({ type: 'publish-event', event: effect.event }))
      case 'deliver':
        return perform(() =>
          deps.callback.tell({
            type: 'deliver-result',
            taskId: effect.task.taskId,
            url: effect.url,
            body: taskResultJson(effect.task, callbackForm(deps, effect.task)),
            deliveryId: effect.deliveryId,
            reportTo: context.self,
          }),
        )
      case 'arm-tombstone':
        return clock
          .timer$(effect.afterMs)
          .pipe(map((): RolloutInput => ({ type: 'tombstone-expired', taskId: effect.taskId, stone: effect.stone })))
      case 'reply-submit':
        return perform(() => effect.replyTo.tell(effect.reply))
      case 'reply-task':
        return perform(() => effect.replyTo.tell(effect.reply))
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

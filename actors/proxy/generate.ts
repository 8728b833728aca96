// One model call: prepare, wait for a slot, ask the engine, capture, and only then let the harness have what it can act on. Each way
// it can end leaves exactly one record or one failed call (a call that never reached the engine because it was cancelled leaves none).

import type { Dialect, HttpRequestHead, RouteMatch } from '../../src/dialects/base.js'
import type { CanonicalRequest, CanonicalResponse } from '../../src/domain/conversation.js'
import { RolloutError } from '../../src/domain/errors.js'
import type { CompletionId } from '../../src/domain/ids.js'
import type { JsonObject } from '../../src/domain/json.js'
import type { AnswerWriter } from '../../src/http/answer.js'
import { failpoint, failpointAfterWrites } from '../../src/observability/failpoints.js'
import type { UpstreamAnswer } from '../../src/upstreams/base.js'
import { admitted } from './admission.js'
import { type CallOutcome, callUpstream } from './call-upstream.js'
import { completionRecord, usageOfAnswer } from './capture.js'
import { frameReport } from './frame-report.js'
import { reachedLimit } from './limits.js'
import { callIdOf, type EventIdentity, LiveEvents } from './live-events.js'
import { type PreparedCall, prepareCall, retryCountOf } from './prepare.js'
import { type Refusal, type Reply, refusalOf, refusalOfUpstream, replyTo } from './reply.js'
import type { ProxyServices } from './services.js'
import { CallCancelled, type RunningCall, type SessionEntry } from './sessions.js'
import type { Release } from './slots.js'

/** What a later call may go on from, once this one is answered. */
export interface Continuation {
  readonly previousId: string | null
  readonly items: readonly JsonObject[]
}

/** One call of a running session, its body read and decoded. */
export interface ModelCall {
  readonly entry: SessionEntry
  readonly running: RunningCall
  readonly sequence: number
  readonly dialect: Dialect
  readonly route: RouteMatch
  readonly head: HttpRequestHead
  readonly answer: AnswerWriter
  readonly body: string
  readonly decoded: CanonicalRequest
  /** null = nothing is kept. */
  readonly goesOn: Continuation | null
  readonly startedAtMs: number
}

/** Generations that an engine aborted and that are made again, unseen by the harness. */
const MAX_REGENERATIONS = 3
/** Not in HTTP's list, but everyone's word for it: the client closed the request. */
const CLIENT_CLOSED_REQUEST = 499

/** Settles when the answer is written and every frame of the call is acknowledged. Throws only what is our bug. */
export async function generate(services: ProxyServices, call: ModelCall): Promise<void> {
  const { entry, running, dialect, route, head, answer, decoded } = call
  const { signal } = running.abort
  const reply = replyTo(answer, dialect, route, decoded)
  const report = frameReport(services, entry, call)
  try {
    await firstAttemptGone(entry, running, call)
    const limit = reachedLimit(entry)
    if (limit !== null) {
      if (!entry.isLimitTold) entry.session.session.tell({ type: 'limit-reached', limit })
      entry.isLimitTold = true
      const stop = finalStop(services, decoded, limit)
      keepAnswer(call, stop)
      await reply.whole(stop)
      return
    }
    const prepared = await prepareCall(services, entry, dialect, head, decoded)
    mayBegin(services)
    const leave = await admitted(services, entry, prepared.model.upstream, {
      signal,
      onHold: waiting => reply.stream?.keepAlive(services.clock, waiting),
    })
    const counts = prepared.sideRule === null
    let isRecorded = false
    try {
      signal.throwIfAborted()
      // It may have waited for long.
      mayBegin(services)
      if (counts) entry.turns += 1
      isRecorded = await ask(services, call, prepared, reply, report, leave)
    } finally {
      if (counts && !isRecorded) entry.turns -= 1
      leave()
    }
  } catch (cause) {
    if (signal.aborted) {
      await cancelled(reply, call)
      return
    }
    if (
      cause instanceof RolloutError &&
      (cause.code === 'DIALECT_RATE_LIMITED' || cause.code.startsWith('UPSTREAM_'))
    ) {
      report.failed(cause.status, cause.message, 0, { error: cause.message })
    }
    if (!(cause instanceof RolloutError)) report.failed(500, 'internal error of the gateway', 0)
    await reply.fail(refusalOf(cause, services.addresses))
    if (!(cause instanceof RolloutError)) throw cause
  } finally {
    await report.settled()
  }
}

/** Throws the store's own code: an answer that cannot be recorded is not asked for. */
function mayBegin({ sender }: ProxyServices): void {
  if (sender.intake !== null) throw new RolloutError(sender.intake, 'records cannot be stored at present; try again')
}

/**
 * Asks until there is an answer or no more to try, and delivers it. True when a record was made. `admission`: the right of the first
 * attempt; it is given back as soon as the record is safe, so that a slow harness holds up no pause.
 */
async function ask(
  services: ProxyServices,
  call: ModelCall,
  prepared: PreparedCall,
  reply: Reply,
  report: ReturnType<typeof frameReport>,
  admission: Release,
): Promise<boolean> {
  const { signal } = call.running.abort
  const identity: EventIdentity = {
    id: services.newCompletionId(),
    createdAt: Math.floor(services.clock.now() / 1000),
    model: call.decoded.model,
  }
  const events = new LiveEvents(identity)
  const template = services.facts.template(prepared.model.upstream, prepared.request, prepared.model.model)
  const waiting = new AbortController()
  const keepAlive = reply.stream?.keepAlive(services.clock, waiting.signal)
  let leave = admission
  /** A further attempt waits like a first one: the engine may be paused, or busy with others. */
  const again = async () => {
    leave()
    leave = await admitted(services, call.entry, prepared.model.upstream, { signal, onHold: () => undefined })
  }
  try {
    let replica = 0
    for (let regenerations = 0; ; ) {
      const url = prepared.urls[replica]
      if (url === undefined) {
        throw new RolloutError('UPSTREAM_UNREACHABLE', `upstream ${prepared.model.upstream.plan.id} has no url`)
      }
      const where = { upstream: prepared.model.upstream.plan.id, url }
      report.started()
      const policyVersion = services.gate.policyVersion
      const outcome: CallOutcome = await callUpstream({
        client: services.client,
        profile: prepared.model.upstream.profile,
        request: prepared.engine,
        url,
        apiKey: prepared.model.upstream.plan.apiKey,
        signal,
        now: () => services.clock.now(),
        onDeltas: async deltas => reply.stream?.push(deltas.flatMap(delta => events.of(delta))),
      })
      if (outcome.kind === 'cancelled') {
        report.failed(CLIENT_CLOSED_REQUEST, CANCEL_TEXTS[cancelReason(signal)], outcome.abortedTokens)
        await cancelled(reply, call)
        return false
      }
      if (outcome.kind === 'failed') {
        report.failed(outcome.error.status, outcome.error.message, outcome.abortedTokens, {
          ...where,
          // The engine's own words may quote the prompt.
          ...(outcome.isBroken && { error: outcome.error.message }),
        })
        if (outcome.isUnsent) services.onLost(prepared.model.upstream.plan.id)
        if (outcome.isUnsent && replica + 1 < prepared.urls.length) {
          replica += 1
          await again()
          continue
        }
        await reply.fail(refusalOfUpstream(outcome.error, call.dialect, services.addresses), outcome.isBroken)
        return false
      }
      const { answer } = outcome
      if (answer.finish === 'abort' || answer.finish === 'error') {
        const what = answer.finish === 'abort' ? 'aborted the generation' : 'ended the generation with an error'
        report.failed(503, `the inference server ${what}`, usageOfAnswer(answer).completionTokens, where)
        if (answer.finish === 'abort' && !events.isVisible && regenerations < MAX_REGENERATIONS) {
          regenerations += 1
          await again()
          continue
        }
        await reply.fail({ status: 503, message: `the inference server ${what}`, headers: { 'retry-after': '2' } })
        return false
      }
      failpoint('proxy.answer-complete')
      const response = canonicalResponse(answer, identity, call.decoded)
      const record = completionRecord({
        ...prepared,
        completionId: identity.id as CompletionId,
        sessionId: call.entry.session.sessionId,
        sequence: call.sequence,
        attempt: call.entry.session.attempt,
        engineBody: prepared.engine.body,
        originalRequest: call.body,
        model: prepared.model.model,
        upstream: prepared.model.upstream.plan.id,
        replica: url,
        capturesIds: prepared.model.upstream.profile.capturesIds,
        isModelTrainable: prepared.model.trainable,
        obstacle: services.obstacles.get(prepared.model.upstream.plan.id) ?? null,
        template: await template,
        answer,
        response,
        gateVersions: { start: policyVersion, end: services.gate.policyVersion },
        startedAtMs: call.startedAtMs,
        finishedAtMs: services.clock.now(),
        firstTokenAtMs: outcome.firstTokenAtMs,
      })
      const refusal = await report.captured(record)
      leave()
      if (refusal !== null) {
        await reply.fail(refusal)
        return false
      }
      call.entry.memory.remember(answerTurn(response), prepared.request.messages)
      keepAnswer(call, response)
      if (signal.aborted) {
        // Recorded, but the harness is refused: whatever it is sent is not the answer.
        await cancelled(reply, call)
        report.delivered(record.completionId, Promise.resolve(false))
        return true
      }
      if (reply.stream !== null && prepared.engine.stream) {
        await reply.stream.release()
        await failpointAfterWrites('proxy.first-held-byte')
        await reply.stream.push(events.end(response))
        reply.stream.end()
      } else await reply.whole(response)
      report.delivered(record.completionId, call.answer.delivered)
      void call.answer.delivered.then(() => failpoint('proxy.finished'))
      return true
    }
  } finally {
    leave()
    waiting.abort(OVER)
    await keepAlive
  }
}

/** A marked retry waits until the attempt whose connection is gone has let go of the engine. An unmarked equal call is a call of its own. */
async function firstAttemptGone(entry: SessionEntry, running: RunningCall, call: ModelCall): Promise<void> {
  running.body = call.body
  if (retryCountOf(call.head.headers) === 0) return
  const gone = [...entry.running].filter(
    other => other !== running && other.body === running.body && other.isClientGone,
  )
  for (const other of gone) await other.done
}

/** Reason of aborts that end a wait: without one, each makes a DOMException with its stack. */
const OVER = new Error('the wait is over')

/** The end of a call that was cancelled: a harness that is still there learns that its session is over, or that the proxy stops. */
async function cancelled(reply: Reply, { answer, entry, running }: ModelCall): Promise<void> {
  if (answer.closed) return
  if (answer.started) answer.destroy()
  else if (cancelReason(running.abort.signal) === 'proxy-stopping') await reply.fail(STOPPING)
  else await reply.fail(inactive(entry.session.state))
}

/** A harness tries again, and finds the restarted proxy. */
export const STOPPING: Refusal = { status: 503, message: 'the gateway is stopping', headers: { 'retry-after': '2' } }

export const inactive = (state: 'registered' | 'running' | 'ended') => ({
  status: 403,
  message: `the session is ${state === 'running' ? 'ending' : state}, not running`,
  code: 'inactive_session_credential',
})

const cancelReason = ({ reason }: AbortSignal): CallCancelled['reason'] =>
  reason instanceof CallCancelled ? reason.reason : 'client-left'

const CANCEL_TEXTS: Readonly<Record<CallCancelled['reason'], string>> = {
  'client-left': 'the client closed its connection before the answer',
  'session-ended': 'the session ended before the answer',
  'proxy-stopping': 'the gateway stopped before the answer',
}

/** Keeps an answer for a later call to go on from, where the API does that and the harness did not forbid it. */
function keepAnswer({ entry, dialect, decoded, body, goesOn }: ModelCall, response: CanonicalResponse): void {
  if (goesOn === null || dialect.stored === undefined) return
  const { id, items } = dialect.stored.answerItems(response, decoded)
  entry.stored.keep(id, { previousId: goesOn.previousId, items: [...goesOn.items, ...items], size: body.length })
}

const answerTurn = ({ content, reasoning, toolCalls }: CanonicalResponse) => ({
  content,
  reasoning: reasoning ?? null,
  toolCalls,
})

function canonicalResponse(
  answer: UpstreamAnswer,
  identity: EventIdentity,
  { wantsLogprobs }: CanonicalRequest,
): CanonicalResponse {
  return {
    ...identity,
    content: answer.content,
    ...(answer.reasoning !== null && { reasoning: answer.reasoning }),
    toolCalls: answer.toolCalls.map((call, index) => ({ ...call, id: callIdOf(call.id, identity.id, index) })),
    finish: answer.finish,
    ...(answer.stopSequence !== null && { stopSequence: answer.stopSequence }),
    usage: usageOfAnswer(answer),
    ...(wantsLogprobs && answer.logprobContent !== null && { logprobs: { content: answer.logprobContent } }),
  }
}

/** Answer in place of a generation once a limit of the task is reached. It is not sampled and not recorded. */
function finalStop(services: ProxyServices, request: CanonicalRequest, limit: string): CanonicalResponse {
  return {
    id: services.newCompletionId(),
    createdAt: Math.floor(services.clock.now() / 1000),
    model: request.model,
    content: `This session has reached its limit (${limit}).`,
    toolCalls: [],
    finish: 'stop',
    usage: { promptTokens: 0, completionTokens: 0, cachedTokens: 0 },
  }
}

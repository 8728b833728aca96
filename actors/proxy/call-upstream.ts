// One generation at an inference server: the request goes to the session's replica, the answer comes back whole or piece by piece.
// Every way it can end is a value; nothing is thrown. Another replica is asked only when the first could not be reached at all.

import { RolloutError } from '../../src/domain/errors.js'
import { parseAnswerBytes } from '../../src/http/answer-bytes.js'
import type { HttpAnswer, HttpClient } from '../../src/http/client.js'
import { authorization, withoutKey } from '../../src/http/credentials.js'
import { eventBatchesOf } from '../../src/http/event-stream.js'
import { jsonObjectBy } from '../../src/http/json-body.js'
import type {
  UpstreamAnswer,
  UpstreamDelta,
  UpstreamErrorInfo,
  UpstreamProfile,
  UpstreamRequest,
} from '../../src/upstreams/base.js'
import { replicaUrl } from '../../src/upstreams/routing.js'

export type CallOutcome =
  | { readonly kind: 'answered'; readonly answer: UpstreamAnswer; readonly firstTokenAtMs: number | null }
  /** `abortedTokens`: ids that came before it broke. `isUnsent`: the engine has not seen the call. `isBroken`: the
   * connection ended without the engine's word. */
  | {
      readonly kind: 'failed'
      readonly error: UpstreamErrorInfo
      readonly abortedTokens: number
      readonly isUnsent: boolean
      readonly isBroken: boolean
    }
  /** The signal fired: client gone, session over. */
  | { readonly kind: 'cancelled'; readonly abortedTokens: number }

export type LiveDelta = Exclude<UpstreamDelta, { type: 'error' }>

export interface UpstreamCall {
  readonly client: HttpClient
  readonly profile: UpstreamProfile
  readonly request: UpstreamRequest
  /** Base URL of the replica. */
  readonly url: string
  readonly apiKey?: string | null | undefined
  readonly signal: AbortSignal
  readonly now: () => number
  /**
   * What one chunk of the engine's stream brought. Awaited before more is read: a slow harness holds the engine's socket back. Not
   * called for buffered answers.
   */
  readonly onDeltas: (deltas: readonly LiveDelta[]) => Promise<void>
}

export async function callUpstream(call: UpstreamCall): Promise<CallOutcome> {
  let received = 0
  try {
    const response = await call.client.request({
      method: 'POST',
      url: replicaUrl(call.url, call.request.path),
      headers: {
        'content-type': 'application/json',
        accept: call.request.stream ? 'text/event-stream' : 'application/json',
        ...call.request.headers,
        ...authorization(call.apiKey),
      },
      body: JSON.stringify(call.request.body),
      signal: call.signal,
    })
    if (response.status < 200 || response.status > 299) {
      const error = call.profile.readError(response.status, response.headers, await response.text())
      const message = withoutKey(error.message, call.apiKey)
      return { kind: 'failed', error: { ...error, message }, abortedTokens: 0, isUnsent: false, isBroken: false }
    }
    if (/text\/event-stream/i.test(response.headers['content-type'] ?? '')) {
      return await readStream(call, response, count => {
        received = count
      })
    }
    const answer = call.profile.readAnswer(jsonObjectBy(parseAnswerBytes, await response.bytes()))
    return { kind: 'answered', answer, firstTokenAtMs: null }
  } catch (cause) {
    if (call.signal.aborted) return { kind: 'cancelled', abortedTokens: received }
    if (!(cause instanceof RolloutError)) throw cause
    const isUnsent =
      (cause.code === 'UPSTREAM_UNREACHABLE' && cause.details['cause'] === 'ECONNREFUSED') ||
      (cause.code === 'UPSTREAM_TIMEOUT' && cause.details['connected'] === false)
    return {
      kind: 'failed',
      error: { status: cause.status, message: cause.message, contextLength: null, retryAfter: null },
      abortedTokens: received,
      isUnsent,
      isBroken: true,
    }
  }
}

async function readStream(
  call: UpstreamCall,
  response: HttpAnswer,
  onCount: (ids: number) => void,
): Promise<CallOutcome> {
  const reader = call.profile.streamReader()
  const sampled = () => reader.answer().answer.sampledIds?.length ?? 0
  let firstTokenAtMs: number | null = null
  const failed = (status: number, message: string, isBroken: boolean): CallOutcome => ({
    kind: 'failed',
    error: { status, message: withoutKey(message, call.apiKey), contextLength: null, retryAfter: null },
    abortedTokens: sampled(),
    isUnsent: false,
    isBroken,
  })
  try {
    for await (const events of eventBatchesOf(response.chunks())) {
      const deltas: LiveDelta[] = []
      let failure: Extract<UpstreamDelta, { type: 'error' }> | null = null
      for (const { data } of events) {
        for (const delta of reader.push(data)) {
          if (delta.type === 'error') failure ??= delta
          else if (failure === null) deltas.push(delta)
        }
        if (failure !== null) break
      }
      if (deltas.some(({ type }) => type !== 'prompt')) firstTokenAtMs ??= call.now()
      if (deltas.length > 0) await call.onDeltas(deltas)
      if (failure !== null) return failed(failure.status, failure.message, false)
      // A client that left is noticed here even when the engine has already sent everything.
      call.signal.throwIfAborted()
    }
  } catch (cause) {
    onCount(sampled())
    throw cause
  }
  const { answer, complete } = reader.answer()
  if (!complete) return failed(502, 'the inference server ended its stream without a finish reason', true)
  return { kind: 'answered', answer, firstTokenAtMs }
}

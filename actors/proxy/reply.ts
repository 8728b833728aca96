// One answer to a harness, streamed or whole, and its errors in the dialect's own shape. An error known before the first byte is a
// plain JSON answer with its status, after it the dialect's in-stream error.

import type { Dialect, RouteMatch } from '../../src/dialects/base.js'
import type { CanonicalRequest, CanonicalResponse } from '../../src/domain/conversation.js'
import { ERROR_CODES, errorData, RolloutError } from '../../src/domain/errors.js'
import type { AnswerWriter } from '../../src/http/answer.js'
import type { UpstreamErrorInfo } from '../../src/upstreams/base.js'
import { withoutAddresses } from './addresses.js'
import { type HeldStream, heldStream } from './held-stream.js'
import { eventsOfResponse } from './live-events.js'

export interface Refusal {
  readonly status: number
  readonly message: string
  readonly code?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Plain JSON refusal, before anything was written. */
export function refuse(answer: AnswerWriter, dialect: Dialect, { status, message, code, headers }: Refusal): void {
  answer.json(status, dialect.errorBody(status, message, code), headers)
}

export interface Reply {
  /** null for a harness that does not stream. */
  readonly stream: HeldStream | null
  /** `isBroken`: the engine's connection broke; once a stream has begun, the dialect says what the harness gets. */
  fail(refusal: Refusal, isBroken?: boolean): Promise<void>
  /** A whole answer whose record is safe, or that has none. */
  whole(response: CanonicalResponse): Promise<void>
}

export function replyTo(answer: AnswerWriter, dialect: Dialect, route: RouteMatch, request: CanonicalRequest): Reply {
  const stream = request.stream ? heldStream(answer, dialect, route, dialect.streamEncoder(request)) : null
  return {
    stream,
    async fail(refusal, isBroken = false) {
      if (stream !== null && answer.started && isBroken && dialect.onBrokenEngine === 'break') answer.destroy()
      else if (stream !== null && answer.started) await stream.fail(refusal.status, refusal.message, refusal.code)
      else refuse(answer, dialect, refusal)
    },
    async whole(response) {
      if (stream === null) {
        answer.json(200, dialect.encodeResponse(response, request))
        return
      }
      await stream.release()
      await stream.push(eventsOfResponse(response))
      stream.end()
    },
  }
}

/** Codex gives up at once on a 429 without it. */
const RETRY_AFTER_SECONDS = '2'

/** An error of ours as the harness sees it, without the hosts of `urls`. What has no code of ours is our bug, and says no more than that. */
export function refusalOf(cause: unknown, urls: readonly string[]): Refusal {
  if (!(cause instanceof RolloutError)) {
    return { status: 500, message: 'internal error of the gateway', code: 'internal_error' }
  }
  const { code, message: told } = errorData(cause)
  // Other errors speak of what the harness itself has sent.
  const message = code.startsWith('UPSTREAM_') ? withoutAddresses(told, urls) : told
  switch (code) {
    case 'DIALECT_RATE_LIMITED':
      return { status: 429, message, code: 'rate_limit_exceeded', headers: { 'retry-after': RETRY_AFTER_SECONDS } }
    case 'DIALECT_INVALID_REQUEST': {
      const named = cause.details['code']
      return { status: 400, message, ...(typeof named === 'string' && { code: named }) }
    }
    case 'UPSTREAM_CONTEXT_LENGTH':
      return { status: 400, message, code: 'context_length_exceeded' }
    case 'STORE_FULL':
    case 'STORE_UNWRITABLE':
    case 'STORE_DAMAGED':
      return { status: 503, message, code: code.toLowerCase(), headers: { 'retry-after': RETRY_AFTER_SECONDS } }
    case 'DIALECT_TOO_LARGE':
    case 'DIALECT_UNSUPPORTED_ENCODING':
      // The dialect has a word of its own API for the status.
      return { status: ERROR_CODES[code].status, message }
    default:
      return { status: ERROR_CODES[code].status, message, code: code.toLowerCase() }
  }
}

/** Engines quote what they refuse. */
const REFUSED = 'the inference server refused the gateway'

/**
 * An error of the engine as the harness sees it: its status and words kept, but for addresses (`urls`: the upstreams'); our credentials at
 * the engine are not the harness's.
 */
export function refusalOfUpstream(error: UpstreamErrorInfo, dialect: Dialect, urls: readonly string[]): Refusal {
  if (error.contextLength !== null) {
    const { promptTokens, window } = error.contextLength
    return {
      status: 400,
      message: dialect.contextLengthMessage(promptTokens, window),
      code: 'context_length_exceeded',
    }
  }
  const isOurs = error.status < 400 || error.status === 401 || error.status === 403
  const retryAfter = error.retryAfter ?? (error.status === 429 ? RETRY_AFTER_SECONDS : null)
  return {
    status: isOurs ? 502 : error.status,
    message: isOurs ? REFUSED : withoutAddresses(error.message, urls),
    ...(error.status === 429 && { code: 'rate_limit_exceeded' }),
    ...(retryAfter !== null && { headers: { 'retry-after': retryAfter } }),
  }
}

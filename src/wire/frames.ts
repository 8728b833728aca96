// What proxy-k and merge-k say to each other over their own MessagePort, as MessagePack (src/wire/codec.ts).
// Versioned and checked once, here, at the thread boundary; inside a thread the types are trusted.

import type { CompletionRecord, Delivered, FailedCall } from '../domain/completion.js'
import { ERROR_CODES, type ErrorCode, RolloutError } from '../domain/errors.js'
import type { SessionId } from '../domain/ids.js'
import { isObject } from '../domain/json.js'

export const FRAME_VERSION = 1

/**
 * proxy -> merge, once for each attempt at an engine, before it; then follows one `completion-captured` or `call-failed` of the same
 * sequence, or the link ends. Not acknowledged and outside the credit window: bounded by the calls in flight.
 */
export interface CallStartedFrame {
  readonly v: 1
  readonly kind: 'call-started'
  readonly frameId: number
  readonly sessionId: SessionId
  readonly sequence: number
  readonly attempt: number
  readonly startedAtMs: number
}

/** proxy -> merge. All but the first need an acknowledgement and count against the credit window. */
export type CaptureFrame =
  | CallStartedFrame
  | { readonly v: 1; readonly kind: 'completion-captured'; readonly frameId: number; readonly record: CompletionRecord }
  | { readonly v: 1; readonly kind: 'call-failed'; readonly frameId: number; readonly failed: FailedCall }
  | {
      readonly v: 1
      readonly kind: 'delivery-known'
      readonly frameId: number
      readonly sessionId: string
      readonly completionId: string
      readonly delivered: Delivered
    }

/** merge -> proxy. */
export type AckFrame =
  | { readonly v: 1; readonly kind: 'frame-acknowledged'; readonly frameId: number }
  /** The session is unknown or sealed: the frame was counted, not stored. */
  | {
      readonly v: 1
      readonly kind: 'frame-refused'
      readonly frameId: number
      readonly reason: 'unknown-session' | 'sealed' | 'malformed'
    }

/** merge -> proxy, of no frame (`frameId` is 0): whether records can be stored. null, or why not. */
export interface IntakeFrame {
  readonly v: 1
  readonly kind: 'intake-set'
  readonly frameId: number
  readonly code: ErrorCode | null
}

type Check = (value: unknown) => boolean

const isText: Check = value => typeof value === 'string'
const isCount: Check = value => Number.isSafeInteger(value) && (value as number) >= 0
const isTime: Check = value => typeof value === 'number' && Number.isFinite(value)
const isList: Check = Array.isArray
const orNull =
  (check: Check): Check =>
  value =>
    value === null || check(value)
const isNumberOrNull: Check = orNull(value => typeof value === 'number' && Number.isFinite(value))
const isIds: Check = value => value instanceof Int32Array
const isDelivered: Check = value => value === 'yes' || value === 'no' || value === 'unknown'

const isOriginalLike: Check = value =>
  isObject(value) && isText(value['completionId']) && isCount(value['prefix']) && isCount(value['suffix'])

const SAMPLING_CHECKS: Readonly<Record<keyof CompletionRecord['sampling'], Check>> = {
  temperature: isNumberOrNull,
  topP: isNumberOrNull,
  topK: isNumberOrNull,
  minP: isNumberOrNull,
  presencePenalty: isNumberOrNull,
  frequencyPenalty: isNumberOrNull,
  maxTokens: isNumberOrNull,
  seed: isNumberOrNull,
}

const RECORD_CHECKS: Readonly<Record<keyof CompletionRecord, Check>> = {
  completionId: isText,
  sessionId: isText,
  sequence: isCount,
  attempt: isCount,
  dialect: isText,
  modelRequested: isText,
  modelUsed: isText,
  upstream: isText,
  promptIds: orNull(isIds),
  sampledIds: orNull(isIds),
  logprobs: orNull(value => value instanceof Float32Array),
  completionTokens: isCount,
  promptTokens: isCount,
  cachedTokens: isCount,
  finish: isText,
  engineFinish: isText,
  notTrainable: orNull(isText),
  sampling: value => isObject(value) && firstWrong(value, SAMPLING_CHECKS) === null,
  generationPromptLength: isCount,
  endTokenId: orNull(isCount),
  policyVersionStart: orNull(isText),
  policyVersionEnd: orNull(isText),
  policySpans: value => value === undefined || isList(value),
  replica: isText,
  retryCount: isCount,
  sideRule: orNull(isText),
  agentId: orNull(isText),
  startedAtMs: isTime,
  finishedAtMs: isTime,
  firstTokenAtMs: orNull(isTime),
  request: isObject,
  response: isObject,
  originalRequest: isText,
  originalLike: orNull(isOriginalLike),
  losses: isList,
  rulesApplied: isList,
}

const FAILED_CHECKS: Readonly<Record<keyof FailedCall, Check>> = {
  sessionId: isText,
  sequence: isCount,
  attempt: isCount,
  ordinal: value => value === undefined || isCount(value),
  status: isCount,
  error: isText,
  abortedTokens: isCount,
  startedAtMs: isTime,
  finishedAtMs: isTime,
}

const STARTED_CHECKS: Readonly<Record<keyof Omit<CallStartedFrame, 'v' | 'kind' | 'frameId'>, Check>> = {
  sessionId: isText,
  sequence: isCount,
  attempt: isCount,
  startedAtMs: isTime,
}

/** First key of `checks` that `value` breaks, or null. */
function firstWrong(value: Record<string, unknown>, checks: Readonly<Record<string, Check>>): string | null {
  for (const [key, check] of Object.entries(checks)) if (!check(value[key])) return key
  return null
}

/** `frameId` of the malformed frame where it can be told, so that it can be refused by number; else null. */
const malformed = (message: string, frameId: number | null): RolloutError =>
  new RolloutError('WIRE_MALFORMED', `malformed frame: ${message}`, { details: { frameId } })

/** Checks version, kind, fields and lengths. Throws RolloutError WIRE_MALFORMED with `details.frameId` (number or null). */
export function parseCaptureFrame(value: unknown): CaptureFrame {
  const { frame, frameId } = parseHead(value)
  const need = (part: unknown, checks: Readonly<Record<string, Check>>, name: string): void => {
    if (!isObject(part)) throw malformed(`${name} is missing`, frameId)
    const wrong = firstWrong(part, checks)
    if (wrong !== null) throw malformed(`${name}.${wrong} is missing or of another type`, frameId)
  }
  switch (frame['kind']) {
    case 'call-started':
      need(frame, STARTED_CHECKS, 'frame')
      return frame as unknown as CaptureFrame
    case 'completion-captured': {
      need(frame['record'], RECORD_CHECKS, 'record')
      // Every field was checked just above.
      const { logprobs, sampledIds } = frame['record'] as unknown as CompletionRecord
      if (logprobs !== null && logprobs.length !== sampledIds?.length) {
        throw malformed(`record.logprobs has ${logprobs.length} entries, sampledIds ${sampledIds?.length}`, frameId)
      }
      return frame as unknown as CaptureFrame
    }
    case 'call-failed':
      need(frame['failed'], FAILED_CHECKS, 'failed')
      return frame as unknown as CaptureFrame
    case 'delivery-known':
      need(frame, { sessionId: isText, completionId: isText, delivered: isDelivered }, 'frame')
      return frame as unknown as CaptureFrame
    default:
      throw malformed(`kind ${String(frame['kind'])} is unknown`, frameId)
  }
}

/** Throws RolloutError WIRE_MALFORMED. */
export function parseAckFrame(value: unknown): AckFrame | IntakeFrame {
  const { frame, frameId } = parseHead(value)
  if (frame['kind'] === 'frame-acknowledged') return { v: FRAME_VERSION, kind: 'frame-acknowledged', frameId }
  const { code, reason } = frame
  if (frame['kind'] === 'intake-set' && (code === null || (typeof code === 'string' && code in ERROR_CODES))) {
    return { v: FRAME_VERSION, kind: 'intake-set', frameId, code: code as ErrorCode | null }
  }
  if (
    frame['kind'] === 'frame-refused' &&
    (reason === 'unknown-session' || reason === 'sealed' || reason === 'malformed')
  ) {
    return { v: FRAME_VERSION, kind: 'frame-refused', frameId, reason }
  }
  throw malformed(`kind ${String(frame['kind'])} is unknown or its reason is`, frameId)
}

function parseHead(value: unknown): { frame: Record<string, unknown>; frameId: number } {
  if (!isObject(value)) throw malformed('not an object', null)
  const frameId = value['frameId']
  if (!Number.isSafeInteger(frameId) || (frameId as number) < 0) throw malformed('frameId is no count', null)
  if (value['v'] !== FRAME_VERSION) {
    throw malformed(`version ${String(value['v'])}, wanted ${FRAME_VERSION}`, frameId as number)
  }
  return { frame: value, frameId: frameId as number }
}

/** Session that a frame counts against. */
export function sessionOf(frame: CaptureFrame): string {
  switch (frame.kind) {
    case 'completion-captured':
      return frame.record.sessionId
    case 'call-failed':
      return frame.failed.sessionId
    case 'delivery-known':
    case 'call-started':
      return frame.sessionId
  }
}

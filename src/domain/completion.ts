// One captured model call (design: trajectory.md, section 1). Token ids are Int32Array, logprobs Float32Array in nats,
// lengths in tokens. Plain data plus typed arrays: it is what a MessagePack frame carries from proxy to merge.

import type { DialectId, FinishReason, Loss } from './conversation.js'
import type { CompletionId, SessionId } from './ids.js'
import type { JsonObject } from './json.js'

/** Engines report logprobs below this as exactly this: unknown, not trainable. */
export const UNKNOWN_LOGPROB = -9999

/** What was in force at the engine, not what was asked; null = not known. */
export interface SamplingInForce {
  readonly temperature: number | null
  readonly topP: number | null
  /** -1 = off. */
  readonly topK: number | null
  readonly minP: number | null
  readonly presencePenalty: number | null
  readonly frequencyPenalty: number | null
  readonly maxTokens: number | null
  readonly seed: number | null
}

/** `[start, end)` in the sampled ids. */
export interface PolicySpan {
  readonly version: string
  readonly start: number
  readonly end: number
}

/** The body of that call gives the first `prefix` and the last `suffix` characters (UTF-16 units). */
export interface OriginalLike {
  readonly completionId: CompletionId
  readonly prefix: number
  readonly suffix: number
}

export interface CompletionRecord {
  readonly completionId: CompletionId
  readonly sessionId: SessionId
  /** From 0 per session, in order of arrival of the request. */
  readonly sequence: number
  readonly attempt: number
  readonly dialect: DialectId
  readonly modelRequested: string
  readonly modelUsed: string
  readonly upstream: string
  /** Ids the engine tokenised; null where it told none. An empty array is a legal empty prompt. */
  readonly promptIds: Int32Array | null
  /** Ids the engine sampled, stop id included where the engine gives it; null where it told none. */
  readonly sampledIds: Int32Array | null
  /** Same length as `sampledIds`; null where missing or of another length. */
  readonly logprobs: Float32Array | null
  /** From usage; counts what is lost where ids are missing. */
  readonly completionTokens: number
  readonly promptTokens: number
  readonly cachedTokens: number
  readonly finish: FinishReason
  /** The engine's own word, e.g. `stop`. */
  readonly engineFinish: string
  /** Why the call may not be trained (length mismatch, unknown sampling ...); null = it may. */
  readonly notTrainable: string | null
  readonly sampling: SamplingInForce
  /** Suffix of the prompt that is the template's generation prompt; 0 where not known. */
  readonly generationPromptLength: number
  /** The template's end-of-turn token; null where not known. */
  readonly endTokenId: number | null
  readonly policyVersionStart: string | null
  readonly policyVersionEnd: string | null
  /** Which sampled ids came under which weights, where the engine tells it. */
  readonly policySpans?: readonly PolicySpan[]
  readonly replica: string
  readonly retryCount: number
  /** Name of the preset rule or shape rule that makes this a side call; null = main or sub-agent work. */
  readonly sideRule: string | null
  /** Harness's own name of the (sub-)agent; null = main. */
  readonly agentId: string | null
  /** Milliseconds since the epoch. */
  readonly startedAtMs: number
  readonly finishedAtMs: number
  readonly firstTokenAtMs: number | null
  /** Request as sent to the engine (Chat form) and the answer in Chat form, ids left out. */
  readonly request: JsonObject
  readonly response: JsonObject
  /** Body as the harness sent it; in a ledger only what it does not share with the call in `originalLike` (src/ledger/original-request.ts). */
  readonly originalRequest: string
  /** null = `originalRequest` is the whole body. */
  readonly originalLike: OriginalLike | null
  readonly losses: readonly Loss[]
  /** Named rules that changed the prompt (reasoning re-attached, volatile line stripped ...). */
  readonly rulesApplied: readonly string[]
}

/** Second fact about a call: did the harness get the answer? Missing = unknown, which counts as yes. */
export type Delivered = 'yes' | 'no' | 'unknown'

/** A call that gave no answer: upstream error, abort before the end, refused. */
export interface FailedCall {
  readonly sessionId: SessionId
  readonly sequence: number
  readonly attempt: number
  /** Which failure of the call it is, from 0: one call may ask engines several times, and fail twice in one millisecond. Absent = 0. */
  readonly ordinal?: number
  readonly status: number
  /** At most 2,000 characters. */
  readonly error: string
  /** Ids received before the call broke off are counted `aborted`. */
  readonly abortedTokens: number
  readonly startedAtMs: number
  readonly finishedAtMs: number
}

/** A call as it was captured: with its whole prompt and its whole request. */
export interface CapturedCall {
  readonly record: CompletionRecord
  readonly delivered: Delivered
}

/** What a session log keeps of a record; prompt and messages are places in what the session shares. */
export type LoggedRecord = Omit<CompletionRecord, 'promptIds' | 'request'>

/** A request whose lists are numbers in `SharedHistory.lists`; null where that field is no list of objects. */
export interface LoggedRequest {
  /** The request's other fields. */
  readonly rest: JsonObject
  readonly messages: number | null
  readonly tools: number | null
}

/** A call of a session log (src/ledger/session-log.ts). */
export interface LoggedCall {
  readonly record: LoggedRecord
  /** null where the engine told no prompt ids. */
  readonly prompt: TokenPlace | null
  readonly request: LoggedRequest
  readonly delivered: Delivered
}

export type LedgerCall = CapturedCall | LoggedCall

/** Ids at positions `[start, start + ids.length)` of every sequence that goes through this segment. */
export interface TokenSegment {
  readonly ids: Int32Array
  /** Number of the segment it branches off, always a smaller one; -1 for the first, the root, which holds no ids. */
  readonly parent: number
  readonly start: number
}

/** Where a sequence of a token tree ends: `segment` holds its last id; the root (0) ends the empty one. */
export interface TokenPlace {
  readonly segment: number
  /** Length of the sequence in tokens. */
  readonly length: number
}

/** Lists of messages and tools with every shared start stored once: number 0 is the empty list, each other one its parent's and one item. */
export interface SharedLists {
  readonly parents: Int32Array
  /** Index in `contents` of each list's last item; -1 for the empty list. */
  readonly last: Int32Array
  /** Each distinct item once. */
  readonly contents: readonly JsonObject[]
}

export interface SharedHistory {
  /** Own the memory of all segments, sampled ids and logprobs: transferred, they take these along. */
  readonly memory: readonly Int32Array[]
  readonly segments: readonly TokenSegment[]
  readonly lists: SharedLists
}

/** A sealed session: everything captured, handed from the merge actor to the build. Order of `calls` has no meaning. */
export interface SessionLedger {
  readonly sessionId: SessionId
  readonly calls: readonly LedgerCall[]
  readonly failed: readonly FailedCall[]
  /** What its logged calls share; absent where there is none. */
  readonly shared?: SharedHistory
}

// What a dialect is: the API a harness speaks, as pure functions from and to the canonical form. No I/O, no clock, no randomness.

import type { CanonicalEvent, CanonicalRequest, CanonicalResponse, DialectId } from '../domain/conversation.js'
import type { JsonObject } from '../domain/json.js'
import type { RulesOff } from '../domain/rules.js'

/** What a path means. `count` answers a template-exact token count without generating; `models` lists names, `model` describes the one in
 * `RouteMatch.model`; `hello` is a reachability probe without a key, answered 200 with an empty body. */
export type DialectOperation = 'generate' | 'count' | 'models' | 'model' | 'hello'

export interface RouteMatch {
  readonly operation: DialectOperation
  /** Model named in the path (Google; `model` of every dialect), else null. */
  readonly model: string | null
  /** Stream asked for by the path (Google), else null. */
  readonly stream: boolean | null
  /** `alt=sse` or not (Google answers a JSON array without it). */
  readonly sse: boolean
}

export interface HttpRequestHead {
  readonly method: string
  /** Path without query. A prefix before the dialect's own path is legal. */
  readonly path: string
  readonly query: URLSearchParams
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | undefined>>
}

/** One server-sent event. `event` null = only a data line. `data` is the text after `data: `. */
export interface SseFrame {
  readonly event: string | null
  readonly data: string
}

/** Encodes one live answer. Frames come back in order; `hold` marks the first frame that a harness can act on: it and all after
 * wait until the record is acknowledged (trajectory.md, section 1). Once held, everything later is held too. */
export interface StreamEncoder {
  /** Throws UPSTREAM_ERROR for a `response-end` that finished `abort` or `error` (then `fail` ends the stream: half an answer must not look
   * complete), INTERNAL_BUG for a piece of a call that was not started. An answer pushed as start and end alone is sent whole. */
  push(event: CanonicalEvent): readonly { readonly frame: SseFrame; readonly hold: boolean }[]
  /** The dialect's in-stream error event; nothing follows it. */
  fail(status: number, message: string, code?: string): readonly SseFrame[]
}

/** For an API that keeps its answers: how a request goes on from one. */
export interface StoredConversations {
  /** Id of the answer that a request goes on from; null = none. Throws DIALECT_INVALID_REQUEST. */
  previousId(body: JsonObject): string | null
  /** Items of this request alone, for later ones to go on from; null when the harness asked that nothing be kept. Throws as decodeRequest. */
  ownItems(body: JsonObject): readonly JsonObject[] | null
  /** Decodes `body` with the conversation so far before its own items. Throws as decodeRequest. */
  decodeContinued(body: JsonObject, conversation: readonly JsonObject[], off?: RulesOff): CanonicalRequest
  /** The answer's id towards the harness, and its items. */
  answerItems(
    response: CanonicalResponse,
    request: CanonicalRequest,
  ): { readonly id: string; readonly items: readonly JsonObject[] }
}

export interface Dialect {
  readonly id: DialectId
  readonly summary: string
  /** null = not a path of this dialect. */
  route(head: HttpRequestHead): RouteMatch | null
  /** The session key, where this dialect's clients put it; null = none. */
  sessionKey(head: HttpRequestHead): string | null
  /** `off`: rules that the config switches off. Throws RolloutError DIALECT_INVALID_REQUEST naming the field and what was wanted. */
  decodeRequest(body: JsonObject, route: RouteMatch, head: HttpRequestHead, off?: RulesOff): CanonicalRequest
  /** Absent: the API keeps nothing between requests. With it, decodeRequest refuses a request that goes on from an answer. */
  readonly stored?: StoredConversations
  /** Body of a non-streaming answer. Throws UPSTREAM_ERROR for an answer that finished `abort` or `error`. */
  encodeResponse(response: CanonicalResponse, request: CanonicalRequest): JsonObject
  streamEncoder(request: CanonicalRequest): StreamEncoder
  /**
   * What a harness gets when the engine's connection breaks in mid-stream: the in-stream error, or a connection that breaks as well, where
   * this dialect's harnesses try again only then (measured: qwen and pi end at an in-stream error).
   */
  readonly onBrokenEngine: 'error' | 'break'
  /** Frame that keeps a waiting client alive, or null where none is tolerated (Gemini). Raw bytes as text. */
  readonly keepAlive: string | null
  /** Body of the answer to a `count` route. */
  countResponse(tokens: number): JsonObject
  modelsResponse(names: readonly string[], one: string | null): JsonObject
  /** Error body in this dialect's own shape, for any status. `code` e.g. context_length_exceeded. */
  errorBody(status: number, message: string, code?: string): JsonObject
  /** The dialect's own words for an over-long prompt. */
  contextLengthMessage(promptTokens: number | null, window: number | null): string
}

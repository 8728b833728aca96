// What an upstream profile is: how one kind of inference server is asked and read. Pure: bodies in, bodies out; the HTTP client is src/http/client.ts.

import type { PolicySpan, SamplingInForce } from '../domain/completion.js'
import type { CanonicalRequest, FinishReason, Loss, ToolCall, Usage } from '../domain/conversation.js'
import type { JsonObject } from '../domain/json.js'

export interface UpstreamRequestOptions {
  /** The served model or adapter name that replaces the harness's. */
  readonly model: string
  readonly sampling: SamplingInForce
  readonly stop: readonly string[]
  /** Session id for affinity headers; never a fresh id per request. */
  readonly affinityKey: string
}

export interface UpstreamRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: JsonObject
  /** False where the profile cannot stream ids: the call is buffered. */
  readonly stream: boolean
  /** What of the request this engine cannot take (malformed arguments in the history ...); paths in the engine body. */
  readonly losses: readonly Loss[]
}

/** The captured part of an answer, whole. */
export interface UpstreamAnswer {
  readonly content: string | null
  readonly reasoning: string | null
  readonly toolCalls: readonly ToolCall[]
  readonly finish: FinishReason
  readonly engineFinish: string
  readonly stopSequence: string | null
  readonly usage: Usage | null
  readonly promptIds: Int32Array | null
  readonly sampledIds: Int32Array | null
  readonly logprobs: Float32Array | null
  /** Chat's `logprobs.content`, for a harness that asked for logprobs. Made when it is read, if the answer came as bytes. */
  readonly logprobContent: readonly JsonObject[] | null
  /** Of the weights at the end of the answer. */
  readonly weightVersion: string | null
  /** In order; absent where the engine tells none. */
  readonly weightSpans?: readonly PolicySpan[]
}

export type UpstreamDelta =
  | { readonly type: 'prompt'; readonly promptTokens: number }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool-call-start'; readonly index: number; readonly id: string; readonly name: string }
  | { readonly type: 'tool-call-arguments'; readonly index: number; readonly text: string }
  /** The engine failed in mid-stream. */
  | { readonly type: 'error'; readonly status: number; readonly message: string }

/** Reads one streamed answer. `push` takes the `data:` text of each event in order. */
export interface UpstreamStreamReader {
  push(data: string): readonly UpstreamDelta[]
  /** The accumulated answer; `complete` false when no finish reason was seen. */
  answer(): { readonly answer: UpstreamAnswer; readonly complete: boolean }
}

export interface UpstreamErrorInfo {
  readonly status: number
  readonly message: string
  /** The prompt was over the window. */
  readonly contextLength: { readonly promptTokens: number | null; readonly window: number | null } | null
  readonly retryAfter: string | null
}

export interface UpstreamProfile {
  readonly id: string
  readonly summary: string
  /** False: nothing it gives is ever trainable (openai_compatible). */
  readonly capturesIds: boolean
  buildRequest(request: CanonicalRequest, options: UpstreamRequestOptions): UpstreamRequest
  /** What of the request makes this server sample under a grammar, so that logprobs are not the policy's; null = nothing known. */
  grammar(request: CanonicalRequest): string | null
  /** `body`: of JSON.parse or parseAnswerBytes. Throws RolloutError UPSTREAM_MALFORMED. */
  readAnswer(body: JsonObject): UpstreamAnswer
  streamReader(): UpstreamStreamReader
  readError(status: number, headers: Readonly<Record<string, string | undefined>>, body: string): UpstreamErrorInfo
  /** Body and path of a template-exact count of `request`'s prompt; null where the server cannot. */
  countRequest(
    request: CanonicalRequest,
    model: string,
    addGenerationPrompt: boolean,
  ): { readonly path: string; readonly body: JsonObject } | null
  /** Throws RolloutError UPSTREAM_MALFORMED. */
  readCount(body: JsonObject): number
  /** Ids of the counted prompt, where the answer of a count carries them; else null. */
  readTokens(body: JsonObject): Int32Array | null
  /** Context window in tokens, where the answer of a count carries it; else null. */
  readWindow(body: JsonObject): number | null
  detokenizeRequest(ids: Int32Array, model: string): { readonly path: string; readonly body: JsonObject } | null
  readDetokenized(body: JsonObject): string
  readonly healthPath: string
}

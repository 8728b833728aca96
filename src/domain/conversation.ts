// The neutral model between dialects and upstreams: dialect -> canonical -> upstream and back, never dialect to dialect.
// It is close to Chat Completions, since that is what inference servers speak, but keeps apart what dialects need apart.
// Plain data throughout: it crosses threads.

import type { JsonObject } from './json.js'

export type DialectId = 'anthropic_messages' | 'openai_chat' | 'openai_responses' | 'google_generate'

/** Something a dialect could not carry into the canonical form, or the canonical form into the upstream. Never dropped in silence. */
export interface Loss {
  /** Path in the harness's own body, e.g. `tools[1]` or `messages[3].content[0]`. */
  readonly path: string
  readonly reason: string
}

export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  /** `url` is a data URL or http(s) URL. */
  | { readonly type: 'image'; readonly url: string; readonly detail?: string }

export interface ToolCall {
  /** Never empty. Synthetic ids are a function of the position in the history, so that they are stable over requests (gemini-1). */
  readonly id: string
  readonly name: string
  /** The raw argument text as the model wrote it; never re-serialised when it is known. */
  readonly arguments: string
}

export type CanonicalMessage =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user'; readonly content: string | readonly ContentPart[] }
  | {
      readonly role: 'assistant'
      readonly content: string | null
      readonly reasoning?: string
      readonly toolCalls?: readonly ToolCall[]
    }
  | { readonly role: 'tool'; readonly toolCallId: string; readonly content: string | readonly ContentPart[] }

export interface ToolDefinition {
  /** Name towards the engine (flat; a namespace is folded in). */
  readonly name: string
  readonly description?: string
  /** JSON schema; absent where the harness sends none. */
  readonly parameters?: JsonObject
  readonly strict?: boolean
}

export type ToolChoice =
  | { readonly type: 'auto' | 'required' | 'none' }
  | { readonly type: 'function'; readonly name: string }

/** What the harness asked for; the sampling contract (decisions.md, section 2) decides what is in force. */
export interface RequestedSampling {
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly minP?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  readonly maxTokens?: number
  readonly seed?: number
  readonly stop?: readonly string[]
}

/** A decoded request of any dialect. */
export interface CanonicalRequest {
  readonly dialect: DialectId
  /** Model name the harness asked for. */
  readonly model: string
  readonly messages: readonly CanonicalMessage[]
  readonly tools: readonly ToolDefinition[]
  readonly toolChoice?: ToolChoice
  readonly parallelToolCalls?: boolean
  readonly sampling: RequestedSampling
  readonly stream: boolean
  /** The harness wants Chat's `logprobs` in the answer. Absent = no. */
  readonly wantsLogprobs?: boolean
  /** `{type:"json_schema", json_schema:{...}}` or `{type:"json_object"}`, in Chat's own form. */
  readonly responseFormat?: JsonObject
  readonly reasoningEffort?: string
  /** undefined = template default. */
  readonly enableThinking?: boolean
  readonly losses: readonly Loss[]
  /** Named rules by which the decoder wrote something else than the harness sent (billing line stripped, notice folded ...); they go to
   * `CompletionRecord.rulesApplied`. Absent = none. */
  readonly rules?: readonly string[]
  /** What the dialect's encoder needs to answer in the harness's own shape (wants usage, wants logprobs, kinds and namespaces of tools ...). Plain data; only the dialect reads it. */
  readonly echo: JsonObject
}

export type FinishReason = 'stop' | 'tool_calls' | 'length' | 'content_filter' | 'abort' | 'error'

/** Words of engines and captures for it. A map: a word may be any text, `constructor` too. */
export const FINISH_WORDS: ReadonlyMap<string, FinishReason> = new Map([
  ['stop', 'stop'],
  ['eos', 'stop'],
  ['stop_sequence', 'stop'],
  ['tool_calls', 'tool_calls'],
  ['function_call', 'tool_calls'],
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['content_filter', 'content_filter'],
  ['abort', 'abort'],
  ['error', 'error'],
  ['end_turn', 'stop'],
  ['tool_use', 'tool_calls'],
])

export interface Usage {
  readonly promptTokens: number
  readonly completionTokens: number
  readonly cachedTokens: number
}

/** A whole answer. */
export interface CanonicalResponse {
  /** Completion id of ours (`msg_...`); dialects derive their own ids from it. */
  readonly id: string
  /** Unix seconds. */
  readonly createdAt: number
  /** The model name the harness asked for. */
  readonly model: string
  readonly content: string | null
  readonly reasoning?: string
  readonly toolCalls: readonly ToolCall[]
  readonly finish: FinishReason
  /** Matched stop string, when the engine told one. */
  readonly stopSequence?: string
  readonly usage: Usage
  /** Chat's `logprobs` object, only for a harness that asked for it. */
  readonly logprobs?: JsonObject
}

/** One step of a live answer, in order: start, deltas, end. Text pieces are never empty. */
export type CanonicalEvent =
  | {
      readonly type: 'response-start'
      readonly id: string
      readonly createdAt: number
      readonly model: string
      readonly promptTokens: number | null
    }
  | { readonly type: 'reasoning-delta'; readonly text: string }
  | { readonly type: 'text-delta'; readonly text: string }
  | { readonly type: 'tool-call-start'; readonly index: number; readonly id: string; readonly name: string }
  | { readonly type: 'tool-call-delta'; readonly index: number; readonly arguments: string }
  | { readonly type: 'tool-call-end'; readonly index: number }
  | { readonly type: 'response-end'; readonly response: CanonicalResponse }

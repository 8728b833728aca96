// Answer of the engine -> CompletionRecord. Lengths are checked against usage here; what does not fit is kept and marked not
// trainable, with a reason. Ids are never made again by tokenising text.

import { type CompletionRecord, type SamplingInForce, UNKNOWN_LOGPROB } from '../../src/domain/completion.js'
import type { CanonicalRequest, CanonicalResponse, Loss, Usage } from '../../src/domain/conversation.js'
import type { CompletionId, SessionId } from '../../src/domain/ids.js'
import type { JsonObject } from '../../src/domain/json.js'
import type { UpstreamAnswer } from '../../src/upstreams/base.js'
import type { UpstreamObstacle } from '../protocol/prober.js'
import { isSamplingKnown } from './sampling.js'
import type { TemplateFacts } from './token-facts.js'

export interface CapturedCall {
  readonly completionId: CompletionId
  readonly sessionId: SessionId
  readonly sequence: number
  readonly attempt: number
  /** As decoded, with recorded turns restored. */
  readonly request: CanonicalRequest
  readonly engineBody: JsonObject
  readonly originalRequest: string
  readonly model: string
  readonly upstream: string
  readonly replica: string
  readonly capturesIds: boolean
  readonly isModelTrainable: boolean
  /** Why nothing of this upstream may be trained on; null = it may. */
  readonly obstacle: UpstreamObstacle | null
  readonly sampling: SamplingInForce
  /** Drawn under a grammar: its logprobs are not the policy's. */
  readonly isConstrained: boolean
  readonly template: TemplateFacts
  readonly answer: UpstreamAnswer
  readonly response: CanonicalResponse
  readonly retryCount: number
  readonly sideRule: string | null
  readonly agentId: string | null
  readonly startedAtMs: number
  readonly finishedAtMs: number
  readonly firstTokenAtMs: number | null
  /** Names of the weights by the service's own account, when the call was sent and when its answer was there. */
  readonly gateVersions: { readonly start: string | null; readonly end: string | null }
  readonly losses: readonly Loss[]
  readonly rulesApplied: readonly string[]
}

export function completionRecord(call: CapturedCall): CompletionRecord {
  const { answer, response } = call
  const logprobs = answer.logprobs?.length === answer.sampledIds?.length ? answer.logprobs : null
  return {
    completionId: call.completionId,
    sessionId: call.sessionId,
    sequence: call.sequence,
    attempt: call.attempt,
    dialect: call.request.dialect,
    modelRequested: call.request.model,
    modelUsed: call.model,
    upstream: call.upstream,
    promptIds: answer.promptIds,
    sampledIds: answer.sampledIds,
    logprobs,
    completionTokens: response.usage.completionTokens,
    promptTokens: response.usage.promptTokens,
    cachedTokens: response.usage.cachedTokens,
    finish: answer.finish,
    engineFinish: answer.engineFinish,
    notTrainable: notTrainable(call, logprobs),
    sampling: call.sampling,
    generationPromptLength: call.template.generationPromptLength,
    endTokenId: call.template.endTokenId,
    ...policyVersions(call),
    replica: call.replica,
    retryCount: call.retryCount,
    sideRule: call.sideRule,
    agentId: call.agentId,
    startedAtMs: call.startedAtMs,
    finishedAtMs: call.finishedAtMs,
    firstTokenAtMs: call.firstTokenAtMs,
    request: call.engineBody,
    response: chatResponse(response, call.model),
    originalRequest: call.originalRequest,
    originalLike: null,
    losses: call.losses,
    rulesApplied: call.rulesApplied,
  }
}

/** The engine's own word stands above ours. Where it tells only the last version, ours tells whether that has changed meanwhile. */
function policyVersions({
  answer: { weightVersion, weightSpans },
  gateVersions: { start, end },
}: CapturedCall): Pick<CompletionRecord, 'policyVersionStart' | 'policyVersionEnd' | 'policySpans'> {
  const first = weightSpans?.[0]?.version
  return {
    policyVersionStart: first ?? (weightVersion !== null && start === end ? weightVersion : start),
    policyVersionEnd: weightSpans?.at(-1)?.version ?? weightVersion ?? end,
    ...(weightSpans && weightSpans.length > 0 && { policySpans: weightSpans }),
  }
}

/** Usage as the engine told it; where it told none, the lengths of its ids. */
export const usageOfAnswer = (answer: UpstreamAnswer): Usage =>
  answer.usage ?? {
    promptTokens: answer.promptIds?.length ?? 0,
    completionTokens: answer.sampledIds?.length ?? 0,
    cachedTokens: 0,
  }

/** First reason that holds, or null. */
function notTrainable(call: CapturedCall, logprobs: Float32Array | null): string | null {
  const { promptIds, sampledIds, usage } = call.answer
  if (!call.capturesIds || promptIds === null || sampledIds === null) return 'no_token_ids'
  if (usage !== null && sampledIds.length !== usage.completionTokens) return 'sampled_length_mismatch'
  if (usage !== null && promptIds.length !== usage.promptTokens) return 'prompt_length_mismatch'
  if (call.answer.logprobs === null) return 'logprobs_missing'
  if (logprobs === null) return 'logprobs_length_mismatch'
  if (logprobs.some(logprob => !(logprob > UNKNOWN_LOGPROB && logprob <= MAX_LOGPROB))) return 'logprob_unknown'
  if (!isSamplingKnown(call.sampling)) return 'sampling_unknown'
  if (call.isConstrained) return 'constrained_sampling'
  if (!call.isModelTrainable) return 'model_not_trainable'
  return call.obstacle
}

/** Rounding can lift the logprob of a sure token a hair over 0. */
const MAX_LOGPROB = 1e-3

/** The answer in Chat form, ids left out. */
function chatResponse(response: CanonicalResponse, model: string): JsonObject {
  const { usage, toolCalls, reasoning } = response
  return {
    id: response.id,
    object: 'chat.completion',
    created: response.createdAt,
    model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: response.content,
          ...(reasoning !== undefined && { reasoning_content: reasoning }),
          ...(toolCalls.length > 0 && {
            tool_calls: toolCalls.map(call => ({
              id: call.id,
              type: 'function',
              function: { name: call.name, arguments: call.arguments },
            })),
          }),
        },
        finish_reason: response.finish,
      },
    ],
    usage: {
      prompt_tokens: usage.promptTokens,
      completion_tokens: usage.completionTokens,
      total_tokens: usage.promptTokens + usage.completionTokens,
      prompt_tokens_details: { cached_tokens: usage.cachedTokens },
    },
  }
}

// Decoded request -> what is sent to the engine: recorded turns restored, the model mapped, sampling and window settled. All that
// changed on the way is named, for the record.

import type { Dialect, HttpRequestHead } from '../../src/dialects/base.js'
import type { SamplingInForce } from '../../src/domain/completion.js'
import type { CanonicalRequest, Loss } from '../../src/domain/conversation.js'
import { RolloutError } from '../../src/domain/errors.js'
import type { UpstreamRequest } from '../../src/upstreams/base.js'
import { replicaOrder } from '../../src/upstreams/routing.js'
import { outputBudget, smaller } from './limits.js'
import { type ResolvedModel, resolveModel } from './models.js'
import { restored } from './restore.js'
import { resolveSampling } from './sampling.js'
import type { ProxyServices } from './services.js'
import type { SessionEntry } from './sessions.js'
import { agentIdOf, sideRuleOf } from './side-calls.js'

export interface PreparedCall {
  /** As decoded, with recorded turns restored. */
  readonly request: CanonicalRequest
  readonly model: ResolvedModel
  readonly sampling: SamplingInForce
  readonly engine: UpstreamRequest
  /** Replicas in the session's order. */
  readonly urls: readonly string[]
  readonly retryCount: number
  readonly sideRule: string | null
  readonly agentId: string | null
  readonly losses: readonly Loss[]
  readonly rulesApplied: readonly string[]
  /** The engine samples under a grammar, and the config does not say that its logprobs are of what is then drawn from. */
  readonly isConstrained: boolean
}

/** The SDK's own mark of a retry: 0 = first attempt. */
export function retryCountOf(headers: HttpRequestHead['headers']): number {
  const count = Number(headers['x-stainless-retry-count'])
  return Number.isSafeInteger(count) && count > 0 ? count : 0
}

/**
 * Throws RolloutError UPSTREAM_CONTEXT_LENGTH, in the dialect's own words, when the prompt is known to be over the window.
 * May ask the engine's tokenizer; otherwise does no I/O.
 */
export async function prepareCall(
  services: ProxyServices,
  entry: SessionEntry,
  dialect: Dialect,
  head: HttpRequestHead,
  decoded: CanonicalRequest,
): Promise<PreparedCall> {
  const { session } = entry
  const model = resolveModel(services.plan, services.targets, session.models, decoded.model)
  const memory = await restored(services, entry, model.upstream, model.model, decoded)
  const request: CanonicalRequest = { ...decoded, messages: memory.messages }
  const sideRule = sideRuleOf(request, head.headers, session.sideCalls, entry.mainHasTools)
  if (sideRule === null && request.tools.length > 0) entry.mainHasTools = true
  const { plan, profile } = model.upstream
  const resolved = resolveSampling(request, session.sampling, session.samplingSeed, plan.sampling)
  const asked = smaller(resolved.asked.maxTokens, outputBudget(entry))
  const left = await tokensLeft(services, entry, dialect, request, model, asked)
  const maxTokens = services.rulesOff.has('max_tokens_clamped') ? asked : left
  const rules = [
    ...(decoded.rules ?? []),
    ...memory.rules,
    ...(maxTokens !== resolved.asked.maxTokens && maxTokens !== null ? ['max_tokens_clamped'] : []),
  ]
  const engine = profile.buildRequest(request, {
    model: model.model,
    sampling: { ...resolved.asked, maxTokens },
    stop: request.sampling.stop ?? [],
    affinityKey: session.sessionId,
  })
  return {
    request,
    model,
    sampling: { ...resolved.inForce, maxTokens },
    engine,
    urls: replicaOrder(plan.urls, session.sessionId),
    retryCount: retryCountOf(head.headers),
    sideRule,
    agentId: agentIdOf(request, head.headers, session.sideCalls),
    losses: [...decoded.losses, ...engine.losses],
    rulesApplied: rules,
    isConstrained: profile.grammar(request) !== null && plan.trainConstrained !== true,
  }
}

/** Tokens of the template around and between messages; generous. */
const TEMPLATE_BYTES = 2_048

/** `asked` clamped to what the window has left. The prompt is counted only when its bytes do not already show that all fits. */
async function tokensLeft(
  services: ProxyServices,
  entry: SessionEntry,
  dialect: Dialect,
  request: CanonicalRequest,
  model: ResolvedModel,
  asked: number | null,
): Promise<number | null> {
  const known = model.upstream.plan.contextWindow
  const engineWindow = known ?? (await services.facts.template(model.upstream, request, model.model)).window
  const window = smaller(entry.session.limits.context_window, engineWindow)
  if (window === null) return asked
  // Without a number the engine itself goes up to its window.
  if (asked === null && window === engineWindow) return null
  const hasImages = request.messages.some(
    ({ content }) => Array.isArray(content) && content.some(part => part.type === 'image'),
  )
  // No tokenizer makes more tokens than there are bytes.
  const bytes = Buffer.byteLength(JSON.stringify([request.messages, request.tools])) + TEMPLATE_BYTES
  if (!hasImages && asked !== null && bytes + asked <= window) return asked
  const promptTokens = await services.facts.count(model.upstream, request, model.model)
  if (promptTokens === null) return asked
  if (promptTokens >= window) {
    throw new RolloutError('UPSTREAM_CONTEXT_LENGTH', dialect.contextLengthMessage(promptTokens, window))
  }
  return smaller(asked, window - promptTokens)
}

// Paths -> traces: ids, masks, logprobs, messages, spans (design: trajectory.md, section 4). A trace over `maxTokens` keeps
// its prompt and a causal prefix of the response; what is cut off is counted.

import type { JsonObject } from '../domain/json.js'
import type { BreakReason, SetAsideReason, Trace, TraceCall } from '../domain/trajectory.js'
import { answerOf, isLikeAnswer, viewOf } from './chat.js'
import type { Links, Path } from './forest.js'
import { findInvalidToolCall } from './invalid-tool-call.js'
import type { Call } from './screen.js'
import { copyIds, idsOf } from './token-tree.js'

export interface TraceInput {
  readonly path: Path
  readonly links: Links
  readonly breaks: ReadonlyMap<Call, BreakReason>
  /** Why calls of the path are trained nowhere (`per_request` keeps them with mask 0). */
  readonly untrained: ReadonlyMap<Call, SetAsideReason>
  /** Longest prompt + response, in tokens; null = no limit. */
  readonly maxTokens: number | null
}

export interface BuiltTrace {
  /** null = nothing trainable is left within `maxTokens`. */
  readonly trace: Trace | null
  readonly trainedTokens: number
  /** Tokens of the path's own trained calls that `maxTokens` cut off. */
  readonly overLength: number
}

/** Builds one trace. O(its length). */
export function buildTrace({ path, links, breaks, untrained, maxTokens }: TraceInput): BuiltTrace {
  const [first] = path.calls
  if (!first) return { trace: null, trainedTokens: 0, overLength: 0 }
  const length = responseLength(path, links)
  const limit = maxTokens === null ? length : Math.max(0, Math.min(length, maxTokens - first.prompt.length))
  const responseIds = new Int32Array(length)
  const lossMask = new Uint8Array(length)
  const responseLogprobs = new Float32Array(length)
  const calls: TraceCall[] = []
  const messages: JsonObject[] = []
  let at = 0
  let used = 0
  let trainedTokens = 0
  let overLength = 0
  let last = first
  for (const call of path.calls) {
    const link = links.get(call)
    const from = call === first || !link ? call.prompt.length : link.end
    const start = at + call.prompt.length - from
    const trained = path.own.has(call) && !untrained.has(call)
    const fits = Math.max(0, Math.min(call.sampled.length, limit - start))
    if (trained) {
      trainedTokens += fits
      overLength += call.sampled.length - fits
    }
    at = start + call.sampled.length
    if (start >= limit) continue
    if (link && call !== first) {
      copyIds(call.prompt, from, call.prompt.length, responseIds, start + from - call.prompt.length)
      messages.push(...messagesBetween(last, call))
    }
    responseIds.set(call.sampled, start)
    if (trained) {
      lossMask.fill(1, start, at)
      responseLogprobs.set(call.logprobs, start)
    }
    const answer = answerOf(call.record)
    const messageIndex = answer === null ? null : messages.push(answer) - 1
    used = Math.min(at, limit)
    calls.push({
      ...callFacts(call),
      join: link && call !== first ? link.join : null,
      start,
      end: used,
      trained,
      setAside: untrained.get(call) ?? null,
      messageIndex,
    })
    last = call
  }
  if (calls.length === 0 || (trainedTokens === 0 && overLength > 0)) return { trace: null, trainedTokens, overLength }
  const leaf = path.calls.at(-1) ?? first
  const clipped = used < length
  const finishReason = clipped ? 'length' : last.record.finish
  const invalid = findInvalidToolCall(finishReason, messages)
  const trace: Trace = {
    promptIds: idsOf(first.prompt),
    responseIds: clipped ? responseIds.slice(0, used) : responseIds,
    lossMask: clipped ? lossMask.slice(0, used) : lossMask,
    responseLogprobs: clipped ? responseLogprobs.slice(0, used) : responseLogprobs,
    promptMessages: first.messages.from(0),
    responseMessages: messages,
    tools: first.tools,
    finishReason,
    reward: null,
    agent: leaf.side ? 'side' : leaf.record.agentId === null ? 'main' : 'sub',
    agentId: leaf.record.agentId,
    breakReason: breaks.get(first) ?? null,
    calls,
    metadata: {
      ...versionsOf(path.calls),
      ...(clipped && { clipped: { max_tokens: maxTokens, cut_tokens: length - used } }),
      ...(invalid !== null && {
        training_filter: {
          masked: false,
          trainable: true,
          reason: 'parser_invalid_tool_call',
          detail: invalid,
          original_reward: null,
        },
      }),
    },
  }
  return { trace, trainedTokens, overLength }
}

function responseLength(path: Path, links: Links): number {
  return path.calls.reduce((sum, call, i) => {
    const link = i > 0 ? links.get(call) : undefined
    return sum + (link ? call.prompt.length - link.end : 0) + call.sampled.length
  }, 0)
}

type CallFacts = Omit<TraceCall, 'join' | 'start' | 'end' | 'trained' | 'setAside' | 'messageIndex'>

const callFacts = ({ record }: Call): CallFacts => ({
  completionId: record.completionId,
  policyVersionStart: record.policyVersionStart,
  policyVersionEnd: record.policyVersionEnd,
  ...(record.policySpans && { policySpans: record.policySpans }),
  startedAtMs: record.startedAtMs,
  finishedAtMs: record.finishedAtMs,
  finish: record.finish,
  replica: record.replica,
  promptTokens: record.promptTokens,
  cachedTokens: record.cachedTokens,
  firstTokenAtMs: record.firstTokenAtMs,
  agentId: record.agentId,
  sideRule: record.sideRule,
})

/** Messages of `call`'s request that follow the answer of `parent`: after the assistant message that replays it. */
export function messagesBetween(parent: Call, call: Call): readonly JsonObject[] {
  const beyond = call.messages.from(parent.messages.count)
  if (beyond[0]?.['role'] === 'assistant') return beyond.slice(1)
  const answer = answerOf(parent.record)
  if (answer) {
    const view = viewOf(answer)
    const messages = call.messages.from(0)
    const at = messages.findLastIndex(message => message['role'] === 'assistant' && isLikeAnswer(view, viewOf(message)))
    if (at >= 0) return messages.slice(at + 1)
  }
  return beyond
}

/** Policy versions of the calls; differing ones are flagged, never hidden. */
function versionsOf(calls: readonly Call[]): JsonObject {
  const versions = new Set(
    calls.flatMap(({ record }) => [
      record.policyVersionStart,
      ...(record.policySpans ?? []).map(({ version }) => version),
      record.policyVersionEnd,
    ]),
  )
  const known = [...versions].filter(version => version !== null).sort()
  if (known.length === 0) return {}
  return { policy_versions: known, mixed_policy_versions: versions.size > 1 }
}

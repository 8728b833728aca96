// SessionResult -> the wire JSON of the contract (3.6 to 3.9). Written as text, since the token arrays are large: they are
// joined once and never become arrays of numbers. Keys are the contract's; what is ours lies under `metadata`.

import type { Json, JsonObject } from '../domain/json.js'
import { type SessionResult, type SessionTiming, TIMING_KEYS } from '../domain/session.js'
import type { LedgerCounts, Trace, TraceCall, Trajectory } from '../domain/trajectory.js'
import { float32sJson, integersJson } from './numbers.js'

export const SCHEMA_VERSION = 1

/** How the large parts of a trace are written, each as JSON text; all else is the same in every form of a result. Called in the order of the fields. */
export interface PartWriter {
  prompt(ids: Int32Array): string
  response(ids: Int32Array): string
  mask(values: Uint8Array): string
  logprobs(values: Float32Array): string
  promptMessages(messages: readonly JsonObject[]): string
  responseMessages(messages: readonly JsonObject[]): string
  tools(tools: readonly JsonObject[] | null): string
}

/** As the contract has them: in place. */
export const JSON_PARTS: PartWriter = {
  prompt: integersJson,
  response: integersJson,
  mask: integersJson,
  logprobs: float32sJson,
  promptMessages: text,
  responseMessages: text,
  tools: text,
}

/** One SessionResult as JSON text. Throws INTERNAL_BUG when a trained logprob is not finite. */
export const sessionResultJson = (result: SessionResult): string => sessionResultText(result, JSON_PARTS)

/** The same without its traces, with `ref` as `result_ref`, which says where the whole is. */
export const sessionReferenceJson = (result: SessionResult, ref: JsonObject): string =>
  objectText({ ...resultFields(result, null), result_ref: text(ref) })

export const sessionResultText = (result: SessionResult, parts: PartWriter): string =>
  objectText(resultFields(result, parts))

/** `parts` null = `traces` is empty. */
function resultFields(result: SessionResult, parts: PartWriter | null): Record<string, string> {
  const { task_metadata: taskMetadata } = result.trajectory.metadata
  return {
    session_id: text(result.sessionId),
    task_id: text(result.taskId),
    status: text(result.status),
    trajectory: trajectoryJson(result, parts),
    timing: text(timingJson(result.timing)),
    node_id: text(result.nodeId),
    error: text(result.error),
    metadata: text({
      ...(isPlain(taskMetadata) && taskMetadata),
      ...result.metadata,
      schema_version: SCHEMA_VERSION,
      sample_index: result.sampleIndex,
      failure_class: result.failureClass,
      truncated: result.truncated,
      ...(isFullyMasked(result.trajectory) && { fully_masked: true }),
    }),
  }
}

/** All timing keys of the contract, and only those; what was not measured is 0. */
export function timingJson(timing: SessionTiming): JsonObject {
  return Object.fromEntries(TIMING_KEYS.map(key => [key, milliseconds(timing[key] ?? 0)]))
}

export function ledgerJson(ledger: LedgerCounts): JsonObject {
  const { tokens, alternatives, reference } = ledger
  return {
    calls: ledger.calls,
    failed_calls: ledger.failedCalls,
    traces: ledger.traces,
    tokens: { sampled: tokens.sampled, trained: tokens.trained, set_aside: tokens.setAside },
    trained_fraction: tokens.sampled === 0 ? 0 : tokens.trained / tokens.sampled,
    not_trainable: ledger.notTrainable,
    joins: ledger.joins,
    breaks: ledger.breaks,
    rules: ledger.rules,
    side_calls: ledger.sideCalls,
    alternatives: Object.fromEntries(
      Object.entries(alternatives).map(([setting, figures]) => [
        setting,
        {
          traces: figures.traces,
          trainer_tokens: figures.trainerTokens,
          trained_tokens: figures.trainedTokens,
          context_ids_differing: figures.contextIdsDiffering,
        },
      ]),
    ),
    per_request: { traces: ledger.perRequest.traces, trainer_tokens: ledger.perRequest.trainerTokens },
    reference: {
      traces: reference.traces,
      kept_tokens: reference.keptTokens,
      lost_tokens: reference.lostTokens,
      misplaced_tokens: reference.misplacedTokens,
    },
  }
}

function trajectoryJson(result: SessionResult, parts: PartWriter | null): string {
  const { trajectory } = result
  const components = result.evaluation?.outcomeRewardComponents ?? {}
  return objectText({
    status: text(trajectory.status),
    metadata: text({
      ...trajectory.metadata,
      builder: trajectory.builder,
      session_id: result.sessionId,
      task_id: result.taskId,
      record_count: trajectory.recordCount,
      trace_count: trajectory.traces.length,
      ledger: ledgerJson(trajectory.ledger),
      agent_result: agentResultJson(result),
      evaluation: evaluationJson(result),
      reconstruction_stats: reconstructionStats(trajectory),
    }),
    traces:
      parts === null ? '[]' : `[${trajectory.traces.map(trace => traceJson(trace, components, parts)).join(',')}]`,
    error: text(trajectory.error),
  })
}

function traceJson(trace: Trace, components: Readonly<Record<string, number>>, parts: PartWriter): string {
  return objectText({
    prompt_ids: parts.prompt(trace.promptIds),
    response_ids: parts.response(trace.responseIds),
    loss_mask: parts.mask(trace.lossMask),
    response_logprobs: parts.logprobs(trace.responseLogprobs),
    prompt_messages: parts.promptMessages(trace.promptMessages),
    response_messages: parts.responseMessages(trace.responseMessages),
    tools: parts.tools(trace.tools),
    finish_reason: text(trace.finishReason),
    reward: text(trace.reward),
    reward_components: text(trace.metadata['training_filter'] || trace.reward === null ? {} : components),
    metadata: objectText({
      ...mapText(trace.metadata),
      agent: text(trace.agent),
      agent_id: text(trace.agentId),
      break_reason: text(trace.breakReason),
      completion_metadata: text(trace.calls.map(callJson)),
      ...(trace.discardedLossMask && { discarded_loss_mask: parts.mask(trace.discardedLossMask) }),
    }),
  })
}

function callJson(call: TraceCall): JsonObject {
  return {
    completion_id: call.completionId,
    join: call.join,
    start: call.start,
    end: call.end,
    trained: call.trained,
    set_aside: call.setAside,
    finish_reason: call.finish,
    policy_version_start: call.policyVersionStart,
    policy_version_end: call.policyVersionEnd,
    ...(call.policySpans && {
      policy_version_spans: call.policySpans.map(({ version, start, end }) => ({ version, start, end })),
    }),
    replica: call.replica,
    prompt_tokens: call.promptTokens,
    cached_tokens: call.cachedTokens,
    agent_id: call.agentId,
    side_rule: call.sideRule,
    message_index: call.messageIndex,
    started_at_ms: milliseconds(call.startedAtMs),
    finished_at_ms: milliseconds(call.finishedAtMs),
    first_token_ms: call.firstTokenAtMs === null ? null : milliseconds(call.firstTokenAtMs - call.startedAtMs),
    inference_timings: { e2e_ms: milliseconds(Math.max(0, call.finishedAtMs - call.startedAtMs)) },
  }
}

function agentResultJson({ agentResult }: SessionResult): JsonObject | null {
  if (!agentResult) return null
  return {
    ...agentResult.metadata,
    status: agentResult.status,
    return_code: agentResult.returnCode,
    error: agentResult.error,
    timeout_source: agentResult.timeoutSource,
    timeout_stage: agentResult.timeoutStage,
    harness_version: agentResult.harnessVersion,
  }
}

function evaluationJson({ evaluation, trajectory }: SessionResult): JsonObject | null {
  const timedOut = trajectory.metadata['verifier_timeout'] === true
  if (!evaluation) return timedOut ? { verifier_timeout: true } : null
  return {
    ...evaluation.metadata,
    strategy: evaluation.strategy,
    outcome_reward: evaluation.outcomeReward,
    trace_rewards: evaluation.traceRewards,
    outcome_reward_components: evaluation.outcomeRewardComponents,
    ...(timedOut && { verifier_timeout: true }),
  }
}

/** The reference's own words for how much was put together. */
function reconstructionStats({ traces, ledger }: Trajectory): JsonObject {
  const truncated = traces.filter(trace => trace.metadata['clipped'] !== undefined).length
  return {
    chains_total: traces.length,
    chains_reconstructed_full: traces.length - truncated,
    chains_reconstructed_truncated: truncated,
    completions_total: ledger.calls,
    completions_merged: new Set(traces.flatMap(trace => trace.calls.map(call => call.completionId))).size,
  }
}

/** Traces there are, but not one trained token. */
const isFullyMasked = ({ traces }: Trajectory): boolean =>
  traces.length > 0 && traces.every(trace => trace.lossMask.every(one => one === 0))

const milliseconds = (value: number): number => (Number.isFinite(value) ? Math.round(value * 1000) / 1000 : 0)

const isPlain = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function text(value: Json | readonly JsonObject[]): string {
  return JSON.stringify(value)
}

export const mapText = (object: JsonObject): Record<string, string> =>
  Object.fromEntries(
    Object.entries(object).flatMap(([key, value]) => (value === undefined ? [] : [[key, text(value)] as const])),
  )

/** An object whose values are JSON text already. */
export const objectText = (fields: Readonly<Record<string, string>>): string =>
  `{${Object.entries(fields)
    .map(([key, value]) => `${JSON.stringify(key)}:${value}`)
    .join(',')}}`

// Saved results as lines for a trainer: one JSON object a trace, as token ids or as messages. Traces of which nothing may be trained are
// left out unless asked for, so that nobody has to know how a session is masked. Pure.

import { float32sJson, integersJson } from '../api/numbers.js'
import type { Json, JsonObject } from '../domain/json.js'
import type { SavedSession, SavedTrace } from './saved-result.js'

export type TrainingView = 'tokens' | 'messages'

export interface TrainingSettings {
  readonly view: TrainingView
  /** Traces with a lower reward, or none, are left out; null = all stay. */
  readonly minReward: number | null
  /** Traces without a trained token stay. */
  readonly includeMasked: boolean
}

/** Lines without their line feeds, in the order of the traces. Throws INTERNAL_BUG on a logprob that is not finite. */
export function trainingLines(session: SavedSession, settings: TrainingSettings): string[] {
  const { view, minReward, includeMasked } = settings
  const kept = session.traces
    .map((trace, index) => ({ trace, index }))
    .filter(({ trace }) => includeMasked || (trace.lossMask.includes(1) && trace.promptIds.length > 0))
    .filter(({ trace: { reward } }) => minReward === null || (reward !== null && reward >= minReward))
  // All traces of a session weigh as much as the one trace of another (case trajectory-16).
  const weight = kept.length === 0 ? 0 : 1 / kept.length
  return kept.map(({ trace, index }) => {
    const facts = factsOf(session, trace, index, weight)
    return view === 'tokens' ? tokenLine(trace, facts) : JSON.stringify({ ...facts, ...messagesOf(trace) })
  })
}

function factsOf(
  { taskId, sessionId, status, metadata, trajectory }: SavedSession,
  trace: SavedTrace,
  index: number,
  weight: number,
) {
  const told = (key: string): Json => trace.metadata[key] ?? trajectory[key] ?? metadata[key] ?? null
  return {
    schema_version: 1,
    task_id: taskId,
    session_id: sessionId,
    trace_index: index,
    sample_index: metadata['sample_index'] ?? null,
    group_id: told('group_id'),
    status,
    agent: told('agent'),
    reward: trace.reward,
    weight,
    finish_reason: trace.finishReason,
    policy_version: told('policy_version'),
    policy_versions: told('policy_versions'),
  } satisfies JsonObject
}

function tokenLine(trace: SavedTrace, facts: JsonObject): string {
  const { promptIds, responseIds, lossMask, logprobs, metadata } = trace
  const calls = Array.isArray(metadata['completion_metadata']) ? metadata['completion_metadata'] : []
  const rest = JSON.stringify({ ...facts, calls: (calls as readonly JsonObject[]).map(callFacts) })
  return (
    `${rest.slice(0, -1)},"prompt_ids":${integersJson(promptIds)},"response_ids":${integersJson(responseIds)},` +
    `"loss_mask":${integersJson(lossMask)},"response_logprobs":${logprobs === null ? 'null' : float32sJson(logprobs)}}`
  )
}

/** What staleness is computed from, token by token. */
const callFacts = (call: JsonObject): JsonObject => ({
  completion_id: call['completion_id'] ?? null,
  start: call['start'] ?? null,
  end: call['end'] ?? null,
  policy_version_start: call['policy_version_start'] ?? null,
  policy_version_end: call['policy_version_end'] ?? null,
  ...(call['policy_version_spans'] !== undefined && { policy_version_spans: call['policy_version_spans'] }),
})

/** `trained`: which of the messages hold trained answers; null where the result does not say. */
function messagesOf({ promptMessages, responseMessages, tools, metadata }: SavedTrace): JsonObject {
  const calls = metadata['completion_metadata']
  const trained = Array.isArray(calls)
    ? (calls as readonly JsonObject[]).flatMap(call => {
        const index = call['message_index']
        return call['trained'] === true && typeof index === 'number' ? [promptMessages.length + index] : []
      })
    : null
  return { messages: [...promptMessages, ...responseMessages], trained, tools }
}

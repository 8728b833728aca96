// The faithful traces of an audited session as a SessionResult: status, rewards and metadata of the capture's own result where it has
// one, masks by the contract's table. Pure.

import type { SessionId, TaskId } from '../domain/ids.js'
import { isObject, type JsonObject } from '../domain/json.js'
import {
  type AgentResult,
  type EvaluationResult,
  type SessionResult,
  type SessionTiming,
  type TerminalStatus,
  TIMING_KEYS,
} from '../domain/session.js'
import type { Trajectory } from '../domain/trajectory.js'
import { applyOutcome } from '../ledger/masking.js'
import type { SavedSession } from './saved-result.js'

/** Rewards given trace by trace do not fit other traces: the outcome's reward goes to all, else the last trace's. */
export function repairedResult(
  { taskId, sessionId }: { readonly taskId: string; readonly sessionId: string },
  faithful: Trajectory,
  saved: SavedSession | null,
): SessionResult {
  const told = saved?.trajectory ?? {}
  const agentResult = agentResultOf(told['agent_result'])
  const evaluation = saved && evaluationOf(saved)
  const status: TerminalStatus = saved?.status === 'ERROR' || saved?.status === 'TIMEOUT' ? saved.status : 'COMPLETED'
  const filter = isObject(told['training_filter']) ? told['training_filter'] : {}
  const truncated = saved?.metadata['truncated']
  const trajectory = applyOutcome({
    trajectory: faithful,
    status,
    agentResult,
    evaluation,
    evaluationTimedOut: isObject(told['evaluation']) && told['evaluation']['verifier_timeout'] === true,
    truncated: typeof truncated === 'string' ? truncated : null,
    containmentProven: filter['reason'] !== 'runtime_containment_unproven',
  })
  const index = saved?.metadata['sample_index']
  return {
    sessionId: sessionId as SessionId, // of the capture
    taskId: taskId as TaskId, // of the capture
    sampleIndex: typeof index === 'number' ? index : 0,
    status,
    trajectory: { ...trajectory, metadata: { ...trajectory.metadata, repaired_from: repairedFrom(saved) } },
    agentResult,
    evaluation,
    timing: timingOf(saved?.timing ?? {}),
    nodeId: saved?.nodeId ?? '',
    error: saved?.error ?? null,
    failureClass: null,
    truncated: typeof truncated === 'string' ? truncated : null,
    metadata: saved?.metadata ?? {},
  }
}

const repairedFrom = (saved: SavedSession | null): JsonObject => ({
  builder: saved?.trajectory['builder'] ?? null,
  traces: saved?.traces.length ?? null,
})

function agentResultOf(value: unknown): AgentResult | null {
  if (!isObject(value)) return null
  const text = (key: string): string | null => (typeof value[key] === 'string' ? value[key] : null)
  return {
    status: (text('status') ?? 'completed') as AgentResult['status'], // the contract's words
    returnCode: typeof value['return_code'] === 'number' ? value['return_code'] : null,
    error: text('error'),
    timeoutSource: text('timeout_source') as AgentResult['timeoutSource'],
    timeoutStage: text('timeout_stage') as AgentResult['timeoutStage'],
    harnessVersion: text('harness_version'),
    metadata: {},
  }
}

function evaluationOf({ traces, trajectory }: SavedSession): EvaluationResult | null {
  const told = isObject(trajectory['evaluation']) ? (trajectory['evaluation'] as JsonObject) : null // decoded JSON
  const { strategy, outcome_reward: outcome, trace_rewards: _, ...rest } = told ?? {}
  const reward = typeof outcome === 'number' ? outcome : rewardOf(traces.at(-1))
  if (told === null && reward === null) return null
  return {
    strategy: typeof strategy === 'string' ? strategy : 'unknown',
    outcomeReward: reward,
    traceRewards: null,
    outcomeRewardComponents: {},
    metadata: rest,
  }
}

/** Before a filter set it to 0. */
function rewardOf(trace: SavedSession['traces'][number] | undefined): number | null {
  const filter = trace?.metadata['training_filter']
  const original = isObject(filter) ? filter['original_reward'] : undefined
  return typeof original === 'number' ? original : (trace?.reward ?? null)
}

const timingOf = (timing: JsonObject): SessionTiming =>
  Object.fromEntries(TIMING_KEYS.flatMap(key => (typeof timing[key] === 'number' ? [[key, timing[key]]] : [])))

// Rewards and masks: the table of the contract (5.2) applied to a built trajectory. A masked session keeps what it discarded
// and its tokens move to the reason, so that sampled = trained + set aside still holds. Rewards are null unless an evaluator ran.

import type { JsonObject } from '../domain/json.js'
import type { AgentResult, EvaluationResult, TerminalStatus } from '../domain/session.js'
import type { SetAsideReason, Trace, Trajectory } from '../domain/trajectory.js'

export interface OutcomeInput {
  readonly trajectory: Trajectory
  readonly status: TerminalStatus
  readonly agentResult: AgentResult | null
  /** null = none ran, or it failed. */
  readonly evaluation: EvaluationResult | null
  readonly evaluationTimedOut: boolean
  /** Name of the limit that ended the session; such a session is no time-out and stays trainable. */
  readonly truncated: string | null
  /** false = a process of the session may still be alive. */
  readonly containmentProven: boolean
}

interface Verdict {
  readonly masked: boolean
  /** Wire word of `training_filter.reason`. */
  readonly reason: string
  /** Where the tokens go when masked. */
  readonly setAside: SetAsideReason
  readonly detail: string | null
}

/**
 * The trajectory with rewards, masks and `training_filter` objects. Its status is ERROR, whatever `status` says, when the
 * evaluation does not fit it (number of trace rewards, a reward that is no finite number). Idempotent for masked traces.
 */
export function applyOutcome(input: OutcomeInput): Trajectory {
  const { trajectory, evaluation, evaluationTimedOut, truncated } = input
  const misfit = evaluation && misfitOf(evaluation, trajectory.traces.length)
  const status = misfit ? 'ERROR' : statusOf(input)
  const error = misfit ?? trajectory.error
  const verdict = verdictOf({ ...input, status }, error)
  const judged = evaluation !== null || evaluationTimedOut
  const rewards = trajectory.traces.map((_, i) => (evaluation && !misfit ? rewardFor(evaluation, i) : null))
  const traces = trajectory.traces.map((trace, i) => settle(trace, rewards[i] ?? null, verdict, judged))
  const outcome = evaluation && !misfit ? evaluation.outcomeReward : null
  return {
    ...trajectory,
    status,
    error,
    traces,
    ledger: verdict?.masked ? withoutTrained(trajectory, verdict.setAside) : trajectory.ledger,
    metadata: {
      ...trajectory.metadata,
      ...(verdict && { training_filter: filterOf(verdict, outcome) }),
      ...(evaluationTimedOut && { verifier_timeout: true }),
      ...(truncated !== null && { truncated }),
    },
  }
}

const statusOf = ({ trajectory, status, evaluationTimedOut }: OutcomeInput): TerminalStatus => {
  if (status !== 'COMPLETED') return status
  if (trajectory.status !== 'COMPLETED') return trajectory.status
  return evaluationTimedOut ? 'TIMEOUT' : 'COMPLETED'
}

function misfitOf(
  { traceRewards, outcomeReward, outcomeRewardComponents }: EvaluationResult,
  traces: number,
): string | null {
  if (traceRewards !== null && traceRewards.length !== traces)
    return `trace_rewards has ${traceRewards.length} entries, wanted one for each of ${traces} traces`
  const bad = [outcomeReward, ...(traceRewards ?? []), ...Object.values(outcomeRewardComponents)].find(
    value => value !== null && !Number.isFinite(value),
  )
  return bad === undefined ? null : `the evaluator gave ${bad} as a reward, wanted a finite number`
}

const rewardFor = ({ traceRewards, outcomeReward }: EvaluationResult, index: number): number | null =>
  traceRewards === null ? outcomeReward : (traceRewards[index] ?? null)

/** What happens to the whole session; null = it stands as it is. */
function verdictOf(input: OutcomeInput, error: string | null): Verdict | null {
  const { trajectory, status, agentResult, evaluationTimedOut, containmentProven } = input
  if (!containmentProven)
    return { masked: true, reason: 'runtime_containment_unproven', setAside: 'containment_unproven', detail: null }
  if (status === 'ERROR') return { masked: true, reason: 'session_error', setAside: 'session_error', detail: error }
  if (status === 'COMPLETED') return null
  const byAgent =
    agentResult?.status === 'timeout' && agentResult.timeoutSource === 'agent' && agentResult.timeoutStage === 'exec'
  if (evaluationTimedOut || !byAgent) {
    const detail = evaluationTimedOut ? 'verifier time-out' : (agentResult?.timeoutStage ?? null)
    return { masked: true, reason: 'session_timeout', setAside: 'session_timeout', detail }
  }
  const aligned = trajectory.traces.every(isAligned)
  const reason = aligned ? 'agent_timeout' : 'agent_timeout_unaligned'
  return { masked: !aligned, reason, setAside: 'agent_timeout_unaligned', detail: null }
}

/** One finite logprob for each trained token. */
const isAligned = ({ lossMask, responseIds, responseLogprobs }: Trace): boolean =>
  lossMask.length === responseIds.length &&
  responseLogprobs.length === responseIds.length &&
  responseLogprobs.every((value, i) => lossMask[i] === 0 || Number.isFinite(value))

function settle(trace: Trace, reward: number | null, verdict: Verdict | null, judged: boolean): Trace {
  const zero = judged ? 0 : null
  if (verdict?.masked)
    return {
      ...trace,
      lossMask: new Uint8Array(trace.lossMask.length),
      discardedLossMask: trace.discardedLossMask ?? trace.lossMask,
      reward: zero,
      calls: trace.calls.map(call => (call.trained ? { ...call, trained: false, setAside: verdict.setAside } : call)),
      metadata: { ...trace.metadata, training_filter: filterOf(verdict, reward) },
    }
  if (verdict)
    return { ...trace, reward: zero, metadata: { ...trace.metadata, training_filter: filterOf(verdict, reward) } }
  const filter = trace.metadata['training_filter'] as JsonObject | undefined // written by traces.ts, an object
  if (!filter) return { ...trace, reward }
  return {
    ...trace,
    reward: zero,
    metadata: { ...trace.metadata, training_filter: { ...filter, original_reward: reward } },
  }
}

const filterOf = ({ masked, reason, detail }: Verdict, reward: number | null): JsonObject => ({
  masked,
  trainable: !masked,
  reason,
  detail,
  original_reward: reward,
})

function withoutTrained({ ledger }: Trajectory, reason: SetAsideReason): Trajectory['ledger'] {
  const { sampled, trained, setAside } = ledger.tokens
  if (trained === 0) return ledger
  return {
    ...ledger,
    tokens: { sampled, trained: 0, setAside: { ...setAside, [reason]: (setAside[reason] ?? 0) + trained } },
  }
}

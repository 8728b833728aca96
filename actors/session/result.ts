// From the last state of a session to its result. Pure. Whatever path led here, sampled = trained + set aside holds, and
// a session that ended badly after its traces were built is masked here once more: a cancel wins ties against evaluation.

import type { ErrorData } from '../../src/domain/errors.js'
import type { JsonObject } from '../../src/domain/json.js'
import {
  type FailureClass,
  type SessionResult,
  type SessionTiming,
  type TerminalStatus,
  TIMING_KEYS,
} from '../../src/domain/session.js'
import type { LedgerCounts, SetAsideReason, TraceCall, Trajectory } from '../../src/domain/trajectory.js'
import { emptyCounts } from '../../src/ledger/counts.js'
import type { TeardownReport } from '../../src/runtimes/base.js'
import type { PostrunCrash, PostrunOutcome } from '../protocol/outcomes.js'
import type { SessionState } from './state.js'
import { failureClassOf } from './verdict.js'

interface Ending {
  readonly status: TerminalStatus
  readonly error: string | null
  readonly failureClass: FailureClass | null
  /** Why every token is set aside; null = the traces stand as POSTRUN left them. */
  readonly mask: SetAsideReason | null
}

/** POSTRUN came to its end. */
export function finalResult(state: SessionState, outcome: PostrunOutcome): SessionResult {
  // Of a runtime that was torn down under an earlier POSTRUN the outcome says nothing.
  const teardown = outcome.teardown ?? state.teardown
  const ending = endingOf(state, { ...outcome, teardown })
  const evaluation = state.cancelled ? null : outcome.evaluation
  const details = outcome.evaluationError === null ? {} : { evaluation_error: errorJson(outcome.evaluationError) }
  return assemble({ ...state, teardown }, ending, {
    trajectory: masked(outcome.trajectory, ending, state.cancelled),
    evaluation,
    timing: outcome.timing,
    details: { ...details, ...(outcome.evaluationTimedOut && { verifier_timeout: true }) },
  })
}

/** The POSTRUN task died and is not run again: the ledger went with it, only the counts are known. */
export function crashedResult(state: SessionState, { error, teardown }: PostrunCrash): SessionResult {
  const lost = state.lost ?? { calls: state.calls, sampledTokens: state.sampledTokens }
  const text = `post-run failed: ${error.message}`
  const ending: Ending = state.cancelled
    ? cancelledEnding
    : { status: 'ERROR', error: text, failureClass: 'infrastructure', mask: 'session_error' }
  return assemble({ ...state, lost, teardown }, ending, {
    trajectory: emptyTrajectory(state, text, ending.mask ?? 'session_error'),
    evaluation: null,
    timing: {},
    details: {},
  })
}

/** Nothing was made that needs tearing down. */
export function resultWithoutPostrun(state: SessionState): SessionResult {
  const ending = endingOf(state, null)
  return assemble(state, ending, {
    trajectory: emptyTrajectory(state, ending.error, ending.mask ?? 'session_error'),
    evaluation: null,
    timing: {},
    details: {},
  })
}

const cancelledEnding: Ending = {
  status: 'ERROR',
  error: 'session cancelled',
  failureClass: null,
  mask: 'session_error',
}

function endingOf(state: SessionState, outcome: PostrunOutcome | null): Ending {
  const { verdict } = state
  const failureClass = failureClassOf(state)
  if (state.cancelled) return cancelledEnding
  if (outcome?.teardown?.proven === false && outcome.teardown.method === 'proc-scan') {
    const error = 'runtime not proven dead'
    return { status: 'ERROR', error, failureClass: 'infrastructure', mask: 'containment_unproven' }
  }
  if (verdict?.kind === 'error') return { status: 'ERROR', error: verdict.error, failureClass, mask: 'session_error' }
  if (outcome?.buildError) {
    const error = `build failed: ${outcome.buildError.message}`
    return { status: 'ERROR', error, failureClass: 'infrastructure', mask: 'session_error' }
  }
  if (outcome?.evaluationError && !outcome.evaluationTimedOut) {
    const { code, message } = outcome.evaluationError
    const error = `evaluator failed: ${message}`
    // Tried twice by then: the trainer leaves the session out.
    const isHosts = code === 'RUNTIME_FAILED'
    return { status: 'ERROR', error, failureClass: isHosts ? 'infrastructure' : 'grader', mask: 'session_error' }
  }
  if (outcome?.evaluationTimedOut) {
    return { status: 'TIMEOUT', error: 'evaluator time limit reached', failureClass: 'grader', mask: 'session_timeout' }
  }
  if (verdict?.kind === 'timeout') {
    const error = `${verdict.source} execution timeout`
    // The agent's own budget, ended in exec: the traces stay trainable where POSTRUN found them aligned (contract 5.2).
    const mask = verdict.source === 'agent' && verdict.stage === 'exec' ? null : 'session_timeout'
    return { status: 'TIMEOUT', error, failureClass, mask }
  }
  if (outcome?.trajectory.status === 'ERROR') {
    const error = outcome.trajectory.error ?? 'no trajectory'
    return { status: 'ERROR', error, failureClass: failureClass ?? 'harness', mask: 'session_error' }
  }
  return { status: 'COMPLETED', error: null, failureClass, mask: null }
}

interface Parts {
  readonly trajectory: Trajectory
  readonly evaluation: SessionResult['evaluation']
  readonly timing: Readonly<Record<string, number>>
  readonly details: JsonObject
}

function assemble(state: SessionState, ending: Ending, parts: Parts): SessionResult {
  const { spec, nodeId } = state.setup
  const { lost, upstream, teardown, cancelReason } = state
  return {
    sessionId: spec.sessionId,
    taskId: spec.taskId,
    sampleIndex: spec.sampleIndex,
    status: ending.status,
    trajectory: parts.trajectory,
    agentResult: state.agentResult,
    evaluation: parts.evaluation,
    timing: timingOf(state, parts.timing),
    nodeId,
    error: ending.error,
    failureClass: ending.failureClass,
    truncated: state.truncated,
    metadata: {
      ...(cancelReason !== null && { cancel_reason: cancelReason }),
      ...(lost !== null && { lost: { calls: lost.calls, sampled_tokens: lost.sampledTokens } }),
      ...(upstream !== null && {
        upstream_failures: {
          count: upstream.count,
          by_status: upstream.byStatus,
          last_error: upstream.lastError,
          ended_on_failure: upstream.endedOnFailure,
        },
      }),
      ...(teardown !== null && { teardown: teardownJson(teardown) }),
      ...parts.details,
    },
  }
}

/** What POSTRUN masked as a whole, though a cancel has replaced its verdict. */
const REPLACED_BY_CANCEL: readonly SetAsideReason[] = ['session_timeout', 'agent_timeout_unaligned']

/** Masks what POSTRUN did not: the end was decided after the traces were built. Calls that were set aside by themselves keep their reason. */
function masked(trajectory: Trajectory, { mask, status, error }: Ending, isCancelled: boolean): Trajectory {
  if (mask === null) return trajectory
  const { tokens } = trajectory.ledger
  if (tokens.trained === 0 && !isCancelled) return trajectory
  const replaced = isCancelled ? REPLACED_BY_CANCEL : []
  const moves = (call: TraceCall) => call.trained || (call.setAside !== null && replaced.includes(call.setAside))
  const setAside: Partial<Record<SetAsideReason, number>> = { ...tokens.setAside }
  let moved = tokens.trained
  for (const reason of replaced) {
    moved += setAside[reason] ?? 0
    delete setAside[reason]
  }
  if (moved > 0) setAside[mask] = (setAside[mask] ?? 0) + moved
  return {
    ...trajectory,
    status,
    error: error ?? trajectory.error,
    traces: trajectory.traces.map(trace => ({
      ...trace,
      lossMask: new Uint8Array(trace.lossMask.length),
      discardedLossMask: trace.discardedLossMask ?? trace.lossMask,
      reward: isCancelled ? null : trace.reward,
      calls: trace.calls.map(call => (moves(call) ? { ...call, trained: false, setAside: mask } : call)),
      metadata: {
        ...trace.metadata,
        training_filter: { masked: true, trainable: false, reason: mask, original_reward: trace.reward },
      },
    })),
    ledger: { ...trajectory.ledger, tokens: { sampled: tokens.sampled, trained: 0, setAside } },
  }
}

function emptyTrajectory(state: SessionState, error: string | null, reason: SetAsideReason): Trajectory {
  const { calls, sampledTokens, setup } = state
  const ledger: LedgerCounts = {
    ...emptyCounts(),
    calls,
    failedCalls: state.upstream?.count ?? 0,
    tokens: { sampled: sampledTokens, trained: 0, setAside: sampledTokens === 0 ? {} : { [reason]: sampledTokens } },
  }
  const status = state.verdict?.kind === 'timeout' && !state.cancelled ? 'TIMEOUT' : 'ERROR'
  const builder = setup.spec.builder.strategy
  return { status, error, builder, traces: [], ledger, recordCount: 0, metadata: {} }
}

/** Only the contract's keys: its readers refuse others. */
function timingOf(state: SessionState, postrun: Readonly<Record<string, number>>): SessionTiming {
  const { initStarted, initFinished, runStarted, runFinished, postrunStarted, latest } = state.times
  const spans: Record<string, number | null> = {
    ...state.taskTiming,
    ...postrun,
    register_to_init_queue_ms: span(state.setup.createdAtMs, initStarted),
    init_ms: span(initStarted, initFinished),
    ready_queue_ms: span(initFinished, runStarted),
    run_ms: span(runStarted, runFinished),
    postrun_queue_ms: span(runFinished ?? initFinished, postrunStarted),
    postrun_ms: span(postrunStarted, latest),
    e2e_ms: span(state.setup.createdAtMs, latest),
  }
  const timing: SessionTiming = {}
  for (const key of TIMING_KEYS) {
    const value = spans[key]
    if (value !== undefined && value !== null) timing[key] = value
  }
  return timing
}

const span = (from: number | null, to: number | null): number | null =>
  from === null || to === null ? null : Math.max(0, to - from)

const teardownJson = ({ proven, killed, method }: TeardownReport): JsonObject => ({ proven, killed, method })
const errorJson = ({ code, message }: ErrorData): JsonObject => ({ code, message })

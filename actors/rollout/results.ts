// Results as rollout hands them on: its own three timings stamped, sessions that gave none given one, early-stopped ones emptied.

import type { SessionId, TaskId } from '../../src/domain/ids.js'
import type { SessionResult, SessionSpec, TerminalStatus } from '../../src/domain/session.js'
import type { Trajectory } from '../../src/domain/trajectory.js'
import { emptyCounts } from '../../src/ledger/counts.js'
import type { Substitute } from './state.js'

type SpecPart = Pick<SessionSpec, 'sessionId' | 'taskId' | 'sampleIndex' | 'metadata' | 'builder'>

/** Counts towards early stop: COMPLETED, and some trace has a prompt, a response and a trained token with its logprob (contract 4.9, A-29). */
export const isUsable = (result: SessionResult): boolean =>
  result.status === 'COMPLETED' &&
  result.trajectory.traces.some(
    trace =>
      trace.promptIds.length > 0 &&
      trace.responseIds.length > 0 &&
      trace.responseLogprobs.length === trace.responseIds.length &&
      trace.lossMask.some(bit => bit !== 0),
  )

/** Calls and sampled tokens of a result; null = its ledger has none. */
export const countsOf = ({
  trajectory: { ledger },
}: SessionResult): { readonly calls: number; readonly sampledTokens: number } | null =>
  ledger.calls > 0 ? { calls: ledger.calls, sampledTokens: ledger.tokens.sampled } : null

export interface Marks {
  readonly nodeId: string
  readonly createdAtMs: number
  readonly dispatchedAtMs: number | null
  readonly nowMs: number
}

/** The result to publish. `result` null = the session gave none, then `substitute` says why. */
export function finalResult(
  spec: SpecPart,
  result: SessionResult | null,
  substitute: Substitute | null,
  marks: Marks,
): SessionResult {
  const base = result ?? unstarted(spec, substitute, marks.nodeId)
  const cut = substitute?.kind === 'early-stop' ? earlyStopped(base, substitute, marks) : base
  const dispatched = marks.dispatchedAtMs ?? marks.nowMs
  return {
    ...cut,
    timing: {
      ...cut.timing,
      rollout_dispatch_ms: Math.max(0, dispatched - marks.createdAtMs),
      rollout_result_wait_ms: Math.max(0, marks.nowMs - dispatched),
      rollout_pipeline_e2e_ms: Math.max(0, marks.nowMs - marks.createdAtMs),
    },
  }
}

function unstarted(spec: SpecPart, substitute: Substitute | null, nodeId: string): SessionResult {
  const error = errorOf(substitute)
  return {
    sessionId: spec.sessionId,
    taskId: spec.taskId,
    sampleIndex: spec.sampleIndex,
    status: 'ERROR',
    trajectory: emptyTrajectory(spec.builder.strategy, error),
    agentResult: null,
    evaluation: null,
    timing: {},
    nodeId,
    error,
    failureClass: substitute?.kind === 'crashed' ? 'infrastructure' : null,
    truncated: null,
    metadata: spec.metadata,
  }
}

/** In place of a result whose file is not there any more. */
export function goneResult(of: {
  readonly taskId: string
  readonly sessionId: string
  readonly index: number
  readonly status: TerminalStatus
  readonly nodeId: string
}): SessionResult {
  const error = 'the result is not on disk any more'
  return {
    sessionId: of.sessionId as SessionId,
    taskId: of.taskId as TaskId,
    sampleIndex: of.index,
    status: of.status,
    trajectory: emptyTrajectory('', error),
    agentResult: null,
    evaluation: null,
    timing: {},
    nodeId: of.nodeId,
    error,
    failureClass: 'infrastructure',
    truncated: null,
    metadata: { result_gone: true },
  }
}

const errorOf = (substitute: Substitute | null): string =>
  substitute?.kind === 'crashed' ? substitute.error : 'session cancelled'

/** The group had enough: no traces, status ERROR, and the reason in both metadata. What was sampled stays in the ledger, set aside. */
function earlyStopped(
  result: SessionResult,
  { minimum, usable }: Extract<Substitute, { kind: 'early-stop' }>,
  { createdAtMs, nowMs }: Marks,
): SessionResult {
  const flags = {
    early_stop_cancelled: true,
    fully_masked: true,
    reason: 'minimum_usable_sessions_reached',
    early_stop_min_usable_sessions: minimum,
    usable_sessions: usable,
    elapsed_ms: Math.max(0, nowMs - createdAtMs),
  }
  const { trajectory } = result
  const { tokens } = trajectory.ledger
  const setAside = { ...tokens.setAside }
  if (tokens.trained > 0) setAside.session_error = (setAside.session_error ?? 0) + tokens.trained
  return {
    ...result,
    status: 'ERROR',
    error: 'session cancelled',
    failureClass: null,
    trajectory: {
      ...trajectory,
      status: 'ERROR',
      error: 'session cancelled',
      traces: [],
      ledger: { ...trajectory.ledger, traces: 0, tokens: { sampled: tokens.sampled, trained: 0, setAside } },
      metadata: { ...trajectory.metadata, ...flags },
    },
    metadata: { ...result.metadata, ...flags },
  }
}

const emptyTrajectory = (builder: string, error: string): Trajectory => ({
  status: 'ERROR',
  error,
  builder,
  traces: [],
  ledger: emptyCounts(),
  recordCount: 0,
  metadata: {},
})

// Whose fault it was: from what a stage reported to a verdict and a failure class. Pure.
//
// failure_class: INIT failed or timed out -> environment (infrastructure when our own thread, queue or the package registry
// failed); harness exit other than 0 -> harness; the last event was a failure of the inference server -> infrastructure;
// a pool thread, proxy or merge died, a task hung, teardown not proven -> infrastructure; agent or session budget ended in
// setup -> harness, later -> policy; a limit of the task -> policy; evaluator exception or time-out -> grader; no model
// call at all -> harness; cancelled or fine -> null.

import type { SessionLedger } from '../../src/domain/completion.js'
import type { ErrorData } from '../../src/domain/errors.js'
import type { SessionId } from '../../src/domain/ids.js'
import type { AgentResult, FailureClass } from '../../src/domain/session.js'
import type { SessionState, UpstreamFailures, Verdict } from './state.js'

/** At most this many characters of a failed call's text go into a result. */
const ERROR_CHARACTERS = 2000

export const emptyLedger = (sessionId: SessionId): SessionLedger => ({ sessionId, calls: [], failed: [] })

/** Verdict of a run that ended by itself; null = fine. */
export function runVerdict(result: AgentResult): Verdict | null {
  if (result.status === 'completed') return null
  if (result.status === 'timeout') {
    return { kind: 'timeout', source: result.timeoutSource ?? 'session', stage: result.timeoutStage ?? 'exec' }
  }
  const error = result.error ?? `agent exited with code ${result.returnCode ?? 'unknown'}`
  return { kind: 'error', error, failureClass: 'harness' }
}

/** Verdict of a stage that broke. */
export const stageFailure = (what: string, error: ErrorData): Verdict => ({
  kind: 'error',
  error: `${what}: ${error.message}`,
  failureClass: isOurs(error.code) ? 'infrastructure' : 'environment',
})

const isOurs = (code: string): boolean => /^(ACTOR_|INTERNAL_|WIRE_|UPSTREAM_|TASK_QUEUE|HARNESS_INSTALL)/.test(code)

/** True where the agent had its chance, so that a reward means something. */
export const deservesReward = (verdict: Verdict | null): boolean =>
  verdict === null ||
  (verdict.kind === 'timeout' && verdict.stage !== 'init') ||
  (verdict.kind === 'error' && verdict.failureClass === 'harness')

/** Agent result of a run that a budget of the session machine stopped. */
export const timeoutAgentResult = (
  result: AgentResult,
  verdict: Extract<Verdict, { kind: 'timeout' }>,
): AgentResult => ({
  ...result,
  status: 'timeout',
  returnCode: -1,
  error: `${verdict.source} execution timeout`,
  timeoutSource: verdict.source,
  timeoutStage: result.timeoutStage ?? verdict.stage,
})

/** Agent result of a session whose run gave none. */
export function withoutAgent({ verdict, cancelled }: Pick<SessionState, 'verdict' | 'cancelled'>): AgentResult {
  const timeout = verdict?.kind === 'timeout' ? verdict : null
  const error = verdict?.kind === 'error' ? verdict.error : timeout && `${timeout.source} execution timeout`
  return {
    status: timeout && !cancelled ? 'timeout' : 'failed',
    returnCode: null,
    error: cancelled ? 'session cancelled' : error,
    timeoutSource: cancelled ? null : (timeout?.source ?? null),
    timeoutStage: cancelled ? null : (timeout?.stage ?? null),
    harnessVersion: null,
    metadata: {},
  }
}

/** Counts failed calls; a prompt over the window (4xx) is not a failure of the server. */
export function upstreamFailures(ledger: SessionLedger): UpstreamFailures {
  const byStatus: Record<string, number> = {}
  for (const call of ledger.failed) byStatus[call.status] = (byStatus[call.status] ?? 0) + 1
  const last = ledger.failed.reduce<(typeof ledger.failed)[number] | null>(
    (newest, call) => (newest === null || call.finishedAtMs >= newest.finishedAtMs ? call : newest),
    null,
  )
  const lastAnswerMs = ledger.calls.reduce((newest, { record }) => Math.max(newest, record.finishedAtMs), -1)
  return {
    count: ledger.failed.length,
    byStatus,
    lastError: last === null ? null : last.error.slice(0, ERROR_CHARACTERS),
    endedOnFailure: last !== null && last.finishedAtMs > lastAnswerMs && (last.status >= 500 || last.status === 429),
  }
}

/** Class of a session that its verdict ended; null = nobody's fault. */
export function failureClassOf(state: SessionState): FailureClass | null {
  const { verdict, upstream } = state
  if (state.cancelled) return null
  if (verdict?.kind === 'error') return verdict.failureClass
  if (upstream?.endedOnFailure) return 'infrastructure'
  if (verdict?.kind === 'timeout') {
    if (verdict.stage === 'init') return 'environment'
    return verdict.stage === 'setup' ? 'harness' : 'policy'
  }
  return state.truncated === null ? null : 'policy'
}

export const notStopped = (stage: string): Verdict => ({
  kind: 'error',
  error: `the ${stage} task did not stop in time`,
  failureClass: 'infrastructure',
})
export const lostRuntime: Verdict = { kind: 'error', error: 'INIT gave no runtime', failureClass: 'infrastructure' }
export const recordsLost: Verdict = {
  kind: 'error',
  error: 'captured records were lost: the merge thread ended',
  failureClass: 'infrastructure',
}
/** The service ended under the session. */
export const gatewayRestarted: Verdict = {
  kind: 'error',
  error: 'gateway_restarted',
  failureClass: 'infrastructure',
}

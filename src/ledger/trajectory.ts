// Reconstruction -> Trajectory, for both builders: traces, counts and the metadata that readers of the contract rely on.

import type { SessionLedger } from '../domain/completion.js'
import { RolloutError } from '../domain/errors.js'
import type { JsonObject } from '../domain/json.js'
import type { LedgerCounts, SetAsideReason, Trace, Trajectory, TrajectoryStatus } from '../domain/trajectory.js'
import { addTo, byKey, countBy, emptyCounts, unaccountedTokens } from './counts.js'
import { type Path, pathsOf } from './forest.js'
import type { Reconstruction } from './reconstruct.js'
import { type Call, isUnfinished } from './screen.js'
import { buildTrace } from './traces.js'

export interface TrajectoryIdentity {
  readonly builder: string
  readonly sessionId: string
  readonly taskId: string
  readonly taskMetadata: JsonObject
}

/** A trajectory without traces: no calls, or the session ended before a build. */
export function emptyTrajectory(
  identity: TrajectoryIdentity,
  status: TrajectoryStatus,
  error: string | null,
): Trajectory {
  return {
    status,
    error,
    builder: identity.builder,
    traces: [],
    ledger: emptyCounts(),
    recordCount: 0,
    metadata: identityMetadata(identity),
  }
}

/** Traces of leaves, everything set aside counted (`prefix_merging`). */
export function mergedTrajectory(
  ledger: SessionLedger,
  made: Reconstruction,
  identity: TrajectoryIdentity,
  maxTokens: number | null,
): Trajectory {
  const paths = pathsOf(made.calls, made.links)
  return assemble(ledger, made, identity, maxTokens, paths, new Map())
}

/** One trace for every call with ids; what is set aside keeps a trace with mask 0 (`per_request`). */
export function perCallTrajectory(
  ledger: SessionLedger,
  made: Reconstruction,
  identity: TrajectoryIdentity,
  maxTokens: number | null,
): Trajectory {
  const untrained = new Map<Call, SetAsideReason>()
  const calls = [...made.calls]
  for (const { seen, reason } of made.setAside) {
    const { record, prompt } = seen
    const { sampledIds } = record
    if (prompt === null || sampledIds === null || sampledIds.length === 0 || isUnfinished(record)) continue
    const call: Call = {
      ...seen,
      delivered: 'unknown',
      prompt,
      sampled: sampledIds,
      logprobs: new Float32Array(sampledIds.length),
      side: record.sideRule !== null,
      rank: calls.length,
    }
    untrained.set(call, reason)
    calls.push(call)
  }
  calls.sort(
    (left, right) =>
      left.record.startedAtMs - right.record.startedAtMs ||
      left.prompt.length - right.prompt.length ||
      (left.record.completionId < right.record.completionId ? -1 : 1),
  )
  const paths = calls.map(call => ({ calls: [call], own: new Set([call]) }))
  return assemble(ledger, { ...made, links: new Map() }, identity, maxTokens, paths, untrained)
}

function assemble(
  ledger: SessionLedger,
  made: Reconstruction,
  identity: TrajectoryIdentity,
  maxTokens: number | null,
  paths: readonly Path[],
  untrained: ReadonlyMap<Call, SetAsideReason>,
): Trajectory {
  if (ledger.calls.length === 0) {
    const empty = emptyTrajectory(identity, 'ERROR', 'no completions')
    return { ...empty, ledger: countsOf(ledger, made, [], 0, 0) }
  }
  const traces: Trace[] = []
  let trained = 0
  let overLength = 0
  for (const path of paths) {
    const built = buildTrace({ path, links: made.links, breaks: made.breaks, untrained, maxTokens })
    if (built.trace) traces.push(built.trace)
    trained += built.trainedTokens
    overLength += built.overLength
  }
  const counts = countsOf(ledger, made, traces, trained, overLength)
  const lost = counts.tokens.setAside.no_token_ids ?? 0
  return {
    status: 'COMPLETED',
    error: null,
    builder: identity.builder,
    traces,
    ledger: counts,
    recordCount: ledger.calls.length,
    metadata: {
      ...identityMetadata(identity),
      ...callMetadata(ledger),
      ...(lost > 0 && { incomplete: { reason: 'no_token_ids', tokens: lost } }),
    },
  }
}

function countsOf(
  ledger: SessionLedger,
  made: Reconstruction,
  traces: readonly Trace[],
  trained: number,
  overLength: number,
): LedgerCounts {
  const setAside: Partial<Record<SetAsideReason, number>> = {}
  for (const { reason, tokens } of made.setAside) addTo(setAside, reason, tokens)
  for (const failed of ledger.failed) addTo(setAside, 'aborted', failed.abortedTokens)
  addTo(setAside, 'over_length', overLength)
  const notTrainable: Partial<Record<string, number>> = {}
  for (const { seen, reason, tokens } of made.setAside)
    if (reason === 'filtered') addTo(notTrainable, seen.record.notTrainable ?? 'logprob_unknown', tokens)
  const counts: LedgerCounts = {
    calls: ledger.calls.length,
    failedCalls: ledger.failed.length,
    traces: traces.length,
    tokens: { sampled: made.sampledTokens, trained, setAside: byKey(setAside) },
    notTrainable: byKey(notTrainable),
    joins: byKey(countBy(made.classes.values())),
    breaks: byKey(countBy(made.breaks.values())),
    rules: byKey(countBy(ledger.calls.flatMap(({ record }) => [...new Set(record.rulesApplied)]))),
    sideCalls: byKey(countBy(ledger.calls.flatMap(({ record }) => record.sideRule ?? []))),
    alternatives: made.alternatives,
    perRequest: {
      traces: made.calls.length,
      trainerTokens: made.calls.reduce((sum, call) => sum + call.prompt.length + call.sampled.length, 0),
    },
    reference: made.reference,
  }
  const unaccounted = unaccountedTokens(counts)
  if (unaccounted !== 0)
    throw new RolloutError('INTERNAL_BUG', `the ledger of ${ledger.sessionId} does not add up`, {
      details: { unaccounted, ...counts.tokens },
    })
  return counts
}

const PROMOTED = ['group_id', 'policy_version', 'rollout_step']

function identityMetadata({ builder, sessionId, taskId, taskMetadata }: TrajectoryIdentity): JsonObject {
  const promoted = PROMOTED.filter(key => taskMetadata[key] !== undefined).map(key => [key, taskMetadata[key]])
  return {
    builder,
    session_id: sessionId,
    task_id: taskId,
    task_metadata: taskMetadata,
    ...Object.fromEntries(promoted),
  }
}

/** First non-empty value over the calls in order of the requests; and how the session's last call went. */
function callMetadata(ledger: SessionLedger): JsonObject {
  const records = ledger.calls.map(call => call.record).sort((left, right) => left.startedAtMs - right.startedAtMs)
  const lastGood = records.reduce((latest, record) => Math.max(latest, record.finishedAtMs), 0)
  return {
    api_type: records.find(record => record.dialect)?.dialect ?? null,
    model_requested: records.find(record => record.modelRequested)?.modelRequested ?? null,
    model_used: records.find(record => record.modelUsed)?.modelUsed ?? null,
    last_call_failed: ledger.failed.some(failed => failed.finishedAtMs >= lastGood),
  }
}

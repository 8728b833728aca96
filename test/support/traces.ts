// Built trajectories and results for tests: small ones, with what a test cares about replaced.

import { prefixMerging } from '../../src/builders/prefix-merging.js'
import type { CapturedCall } from '../../src/domain/completion.js'
import type { SessionId, TaskId } from '../../src/domain/ids.js'
import type { JsonObject } from '../../src/domain/json.js'
import type { AgentResult, EvaluationResult, SessionResult } from '../../src/domain/session.js'
import type { Trajectory } from '../../src/domain/trajectory.js'
import { decoderOf, ledgerOf, recordOf, SESSION } from './ledger-fixtures.js'

/** Two traces: a chain of two calls (7 sampled tokens) and a sub-agent's single call (2 sampled tokens). */
export const twoTraces = (config: JsonObject = {}, extra: readonly CapturedCall[] = []): Promise<Trajectory> => {
  const calls: CapturedCall[] = [
    recordOf({ id: 'c1', prompt: [1, 2, 3], sampled: [10, 11, 99], startedAtMs: 1 }),
    recordOf({ id: 'c2', prompt: [1, 2, 3, 10, 11, 99, 50], sampled: [20, 21, 22, 99], startedAtMs: 2 }),
    recordOf({ id: 's1', prompt: [4, 5], sampled: [40, 99], startedAtMs: 3, over: { agentId: 'explore' } }),
  ].map(record => ({ record, delivered: 'yes' }))
  return prefixMerging.build(ledgerOf([...calls, ...extra]), config, {
    decode: decoderOf(),
    sessionId: SESSION,
    taskId: 'task-1',
    taskMetadata: { group_id: 'g-1', policy_version: 12, note: 'x' },
  })
}

export const agentResult = (changes: Partial<AgentResult> = {}): AgentResult => ({
  status: 'completed',
  returnCode: 0,
  error: null,
  timeoutSource: null,
  timeoutStage: null,
  harnessVersion: '1.0.0',
  metadata: {},
  ...changes,
})

export const evaluation = (changes: Partial<EvaluationResult> = {}): EvaluationResult => ({
  strategy: 'test_on_output',
  outcomeReward: 1,
  traceRewards: null,
  outcomeRewardComponents: {},
  metadata: {},
  ...changes,
})

export const sessionResult = (trajectory: Trajectory, changes: Partial<SessionResult> = {}): SessionResult => ({
  sessionId: SESSION as SessionId,
  taskId: 'task-1' as TaskId,
  sampleIndex: 0,
  status: 'COMPLETED',
  trajectory,
  agentResult: agentResult(),
  evaluation: evaluation(),
  timing: { run_ms: 1234.5678 },
  nodeId: 'node-a',
  error: null,
  failureClass: null,
  truncated: null,
  metadata: {},
  ...changes,
})

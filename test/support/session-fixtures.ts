// Specs, setups and outcomes of sessions for tests: whole, valid, small.

import type { PostrunOutcome } from '../../actors/protocol/outcomes.js'
import type { SessionSetup } from '../../actors/session/state.js'
import type { ActorRef } from '../../actors/system/ref.js'
import type { SessionId, TaskId } from '../../src/domain/ids.js'
import type { AgentResult, SessionSpec } from '../../src/domain/session.js'
import type { RuntimeSpec } from '../../src/domain/task.js'
import type { Trajectory } from '../../src/domain/trajectory.js'
import { emptyCounts } from '../../src/ledger/counts.js'
import type { RuntimeHandle } from '../../src/runtimes/base.js'

export const sessionId = (name: string): SessionId => name as SessionId

/** A ref that keeps what it is told. */
export function recordingRef<M>(path: string): ActorRef<M> & { readonly told: M[] } {
  const told: M[] = []
  return { address: { system: 'test', path }, tell: message => void told.push(message), told }
}

export const localRuntime: RuntimeSpec = {
  backend: 'local',
  image: null,
  prepare: [],
  eval_prepare: null,
  env: {},
  network: 'host',
  workdir: null,
  direct_exec_init_command: null,
  cpus: null,
  memory_mb: null,
  storage_mb: null,
  gpus: 0,
  allow_internet: true,
  internet_volumes: [],
  import_path: null,
  kwargs: {},
}

export function sessionSpec(over: Partial<SessionSpec> = {}): SessionSpec {
  return {
    sessionId: sessionId('s-1'),
    taskId: 'task-1' as TaskId,
    sampleIndex: 0,
    instruction: 'fix the test',
    priority: 0,
    timeoutSeconds: 60,
    agentTimeoutSeconds: null,
    runtime: localRuntime,
    agent: {
      harness: 'shell',
      import_path: null,
      model_name: null,
      settings: {},
      env: {},
      mcp_servers: [],
      skills_path: null,
      custom_shell: { command: 'true' },
    },
    builder: { strategy: 'prefix_merging', config: {} },
    evaluator: { strategy: 'session_completed', config: {}, env: {}, refresh_runtime: null },
    sampling: {},
    samplingSeed: null,
    limits: {
      max_turns: null,
      max_input_tokens: null,
      max_output_tokens: null,
      max_total_tokens: null,
      context_window: null,
    },
    models: {},
    metadata: {},
    ...over,
  }
}

export function sessionSetup(over: Partial<SessionSetup> = {}): SessionSetup {
  return {
    spec: sessionSpec(),
    sessionDir: '/state/sessions/s-1',
    nodeId: 'node-1',
    createdAtMs: 0,
    budgets: { buildMs: 60, evaluateMs: 100, teardownMs: 20 },
    stopMs: 10,
    isOrphan: false,
    ...over,
  }
}

export const runtimeHandle: RuntimeHandle = {
  backend: 'local',
  sessionId: 's-1',
  role: 'agent',
  sessionDir: '/state/sessions/s-1',
  workspaceDir: '/state/sessions/s-1/workspace',
  homeDir: '/state/sessions/s-1/home',
}

export const agentResult = (over: Partial<AgentResult> = {}): AgentResult => ({
  status: 'completed',
  returnCode: 0,
  error: null,
  timeoutSource: null,
  timeoutStage: null,
  harnessVersion: null,
  metadata: {},
  ...over,
})

/** One trace of three sampled tokens, all trained. */
export function trajectory(over: Partial<Trajectory> = {}): Trajectory {
  return {
    status: 'COMPLETED',
    error: null,
    builder: 'prefix_merging',
    traces: [
      {
        promptIds: Int32Array.of(1, 2),
        responseIds: Int32Array.of(3, 4, 5),
        lossMask: Uint8Array.of(1, 1, 1),
        responseLogprobs: Float32Array.of(-0.5, -0.25, -1),
        promptMessages: [],
        responseMessages: [],
        tools: null,
        finishReason: 'stop',
        reward: 1,
        agent: 'main',
        agentId: null,
        breakReason: null,
        calls: [],
        metadata: {},
      },
    ],
    ledger: {
      ...emptyCounts(),
      calls: 1,
      traces: 1,
      tokens: { sampled: 3, trained: 3, setAside: {} },
    },
    recordCount: 1,
    metadata: {},
    ...over,
  }
}

export const postrunOutcome = (over: Partial<PostrunOutcome> = {}): PostrunOutcome => ({
  trajectory: trajectory(),
  evaluation: {
    strategy: 'session_completed',
    outcomeReward: 1,
    traceRewards: null,
    outcomeRewardComponents: {},
    metadata: {},
  },
  evaluationError: null,
  evaluationTimedOut: false,
  buildError: null,
  teardown: { proven: true, killed: 0, method: 'proc-scan' },
  timing: { build_ms: 3 },
  ...over,
})

// Results of an agent and of a build with nothing in them, for tests of what comes after.
import type { AgentResult } from '../../src/domain/session.js'
import type { Trajectory } from '../../src/domain/trajectory.js'

export const agentResult = (fields: Partial<AgentResult> = {}): AgentResult => ({
  status: 'completed',
  returnCode: 0,
  error: null,
  timeoutSource: null,
  timeoutStage: null,
  harnessVersion: null,
  metadata: {},
  ...fields,
})

const NOTHING = { traces: 0, trainerTokens: 0, trainedTokens: 0, contextIdsDiffering: 0 }

export const emptyTrajectory = (fields: Partial<Trajectory> = {}): Trajectory => ({
  status: 'COMPLETED',
  error: null,
  builder: 'prefix_merging',
  traces: [],
  ledger: {
    calls: 0,
    failedCalls: 0,
    traces: 0,
    tokens: { sampled: 0, trained: 0, setAside: {} },
    joins: {},
    breaks: {},
    rules: {},
    sideCalls: {},
    notTrainable: {},
    alternatives: { faithful: NOTHING, lenient: NOTHING, prompt_prefix: NOTHING },
    perRequest: { traces: 0, trainerTokens: 0 },
    reference: { traces: 0, keptTokens: 0, lostTokens: 0, misplacedTokens: 0 },
  },
  recordCount: 0,
  metadata: {},
  ...fields,
})

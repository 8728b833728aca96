// Evaluator `session_completed`: reward 1 when the session ended well, else 0. Looks at no runtime.

import { RolloutError } from '../domain/errors.js'
import type { EvaluatorPlugin } from './base.js'

export const sessionCompleted: EvaluatorPlugin = {
  id: 'session_completed',
  summary: 'Reward 1 when the agent and the build both completed, else 0.',
  gradesPatch: false,
  check: ({ config }) =>
    Object.keys(config).map(key => ({ path: key, message: 'is not a setting: session_completed takes none' })),
  async evaluate(config, { agentResult, trajectory }) {
    const [unknown] = Object.keys(config)
    if (unknown !== undefined) throw new RolloutError('EVAL_FAILED', `session_completed has no setting "${unknown}"`)
    const completed = agentResult.status === 'completed' && trajectory.status === 'COMPLETED'
    return {
      strategy: 'session_completed',
      outcomeReward: completed ? 1 : 0,
      traceRewards: null,
      outcomeRewardComponents: {},
      metadata: { agent_status: agentResult.status, trajectory_status: trajectory.status },
    }
  },
}

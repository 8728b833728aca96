// GRPO advantages of a group: A = R - mean over the group's *sessions*, set once per session, whatever number of traces it
// became. Leave-one-out is the trainer bridge's variant, not ours.

export interface GroupMember {
  readonly sessionId: string
  /** Outcome reward; null = not graded, which leaves the session out of the mean. */
  readonly reward: number | null
  readonly traces: number
}

export interface SessionAdvantage {
  readonly sessionId: string
  /** null for a session without reward. The same for each of its traces. */
  readonly advantage: number | null
  /** Share of one trace in a sequence-mean loss: the traces of a session together weigh 1. 0 without traces. */
  readonly traceWeight: number
}

/** In the order of `group`. */
export function groupAdvantages(group: readonly GroupMember[]): SessionAdvantage[] {
  const rewards = group.map(member => member.reward).filter(reward => reward !== null)
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / Math.max(1, rewards.length)
  return group.map(({ sessionId, reward, traces }) => ({
    sessionId,
    advantage: reward === null ? null : reward - mean,
    traceWeight: traces === 0 ? 0 : 1 / traces,
  }))
}

// What an audit says of a session and of all sessions together. Counts are in tokens unless named otherwise.

/** `exported`: the traces that the capture itself holds. The others are computed from its calls. */
export const RULES = ['exported', 'reference', 'per_request', 'prompt_prefix', 'lenient', 'faithful'] as const
export type RuleName = (typeof RULES)[number]

/** null = the capture does not tell. */
export interface RuleFigures {
  readonly traces: number
  /** Prompt and response of every trace. */
  readonly trainerTokens: number | null
  /** Sampled tokens trained at least once. */
  readonly trained: number
  /** Trained nowhere, under a named reason. */
  readonly setAside: number
  /** Trained nowhere, without a reason. */
  readonly lost: number | null
  /** Of `trained`: behind a context that the model did not see. */
  readonly unseen: number | null
  /** Of `trained`: behind the same text in other token ids (re-tokenised history). */
  readonly otherIds: number
  /** Trainings beyond the first. */
  readonly twice: number
  /** Trained, though no known call sampled them. */
  readonly foreign: number
}

export interface SessionAudit {
  readonly taskId: string
  readonly sessionId: string
  readonly status: string | null
  /** Where the calls come from: completion files, the traces of a per_request result, or nowhere (`result`). */
  readonly source: 'completions' | 'traces' | 'result'
  readonly builder: string | null
  readonly calls: number | null
  readonly sampled: number | null
  readonly rules: Partial<Record<RuleName, RuleFigures>>
  /** Of the faithful rule: reason -> tokens. */
  readonly setAside: Readonly<Record<string, number>>
  readonly joins: Readonly<Record<string, number>>
  readonly breaks: Readonly<Record<string, number>>
  readonly notes: readonly string[]
}

export interface CaptureAudit {
  readonly sessions: readonly SessionAudit[]
  readonly total: Omit<SessionAudit, 'taskId' | 'sessionId' | 'status' | 'source' | 'builder' | 'notes'> & {
    readonly sessions: number
    /** Sessions that a rule's sums are over. */
    readonly ruleSessions: Readonly<Record<RuleName, number>>
  }
  readonly unreadable: readonly { readonly path: string; readonly reason: string }[]
  /** Files that are no part of a capture. */
  readonly ignoredFiles: number
}

/** Sums over the sessions; a figure that one of them does not tell is null. */
export function totalOf(sessions: readonly SessionAudit[]): CaptureAudit['total'] {
  const rules: Partial<Record<RuleName, RuleFigures>> = {}
  const ruleSessions = Object.fromEntries(RULES.map(rule => [rule, 0])) as Record<RuleName, number>
  for (const rule of RULES) {
    const told = sessions.flatMap(session => session.rules[rule] ?? [])
    ruleSessions[rule] = told.length
    if (told.length > 0) rules[rule] = told.reduce(plus)
  }
  return {
    sessions: sessions.length,
    calls: sessions.map(session => session.calls).reduce(plusKnown, 0),
    sampled: sessions.map(session => session.sampled).reduce(plusKnown, 0),
    rules,
    ruleSessions,
    setAside: sumsOf(sessions.map(session => session.setAside)),
    joins: sumsOf(sessions.map(session => session.joins)),
    breaks: sumsOf(sessions.map(session => session.breaks)),
  }
}

const plus = (left: RuleFigures, right: RuleFigures): RuleFigures => ({
  traces: left.traces + right.traces,
  trainerTokens: plusKnown(left.trainerTokens, right.trainerTokens),
  trained: left.trained + right.trained,
  setAside: left.setAside + right.setAside,
  lost: plusKnown(left.lost, right.lost),
  unseen: plusKnown(left.unseen, right.unseen),
  otherIds: left.otherIds + right.otherIds,
  twice: left.twice + right.twice,
  foreign: left.foreign + right.foreign,
})

function plusKnown(left: number | null, right: number | null): number | null {
  return left === null || right === null ? null : left + right
}

function sumsOf(counts: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const one of counts) for (const [key, value] of Object.entries(one)) sums[key] = (sums[key] ?? 0) + value
  return Object.fromEntries(Object.entries(sums).sort(([left], [right]) => (left < right ? -1 : 1)))
}

/**
 * Tokens are lost, trained twice, or trained behind a context the model did not see: in the capture's own traces where it has some, else
 * in what the reference's rule makes of its calls.
 */
export function hasFaults({ rules }: Pick<SessionAudit, 'rules'>): boolean {
  const judged = rules.exported ?? rules.reference
  if (!judged) return false
  return (judged.lost ?? 0) > 0 || (judged.unseen ?? 0) > 0 || judged.twice > 0 || judged.foreign > 0
}

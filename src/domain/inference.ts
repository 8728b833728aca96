// Whether model calls may go to the engines, and under which name their weights go. Plain data: main decides, every proxy follows.

/** `wait`: running calls end first. `keep`: they go on over the update (the engine freezes them), and may then have two policies. */
export type PauseMode = 'wait' | 'keep'

/** What a proxy follows. */
export interface GateState {
  /** New calls wait. */
  readonly isClosed: boolean
  /** Name of the weights that the engines serve; null = nobody has told one. */
  readonly policyVersion: string | null
}

export interface Pause {
  /** Whoever asked; only the same name (or force) ends it. */
  readonly owner: string
  readonly mode: PauseMode
  /** Milliseconds since the epoch. */
  readonly sinceMs: number
  /** The pause ends by itself then: its owner may have died. */
  readonly leaseUntilMs: number
}

/** What outlives a restart of the service. */
export interface InferenceRecord {
  readonly pause: Pause | null
  readonly policyVersion: string | null
  /** Pauses that ended: each may have been an update of the weights. */
  readonly updates: number
}

export interface InferenceStatus {
  readonly pause: Pause | null
  readonly policyVersion: string | null
  /** Calls at the engines, over all proxies. */
  readonly inflight: number
  /** Calls that wait for the end of the pause. */
  readonly waiting: number
  /** Every proxy has answered: `inflight` is the whole number. */
  readonly isComplete: boolean
}

export const OPEN: GateState = { isClosed: false, policyVersion: null }
export const NO_PAUSE: InferenceRecord = { pause: null, policyVersion: null, updates: 0 }

export const gateOf = ({ pause, policyVersion }: InferenceRecord): GateState => ({
  isClosed: pause !== null,
  policyVersion,
})

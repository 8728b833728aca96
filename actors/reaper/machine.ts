// When to sweep, as data: at the start, then by timer, and when asked; never two sweeps at once. Pure.

import type { ErrorData } from '../../src/domain/errors.js'
import type { SessionId } from '../../src/domain/ids.js'
import { unreachable } from '../../src/domain/unreachable.js'
import type { ReaperMessage, SweepReport } from '../protocol/reaper.js'
import type { SessionMessage } from '../protocol/session.js'
import type { Machine, Step } from '../system/machine.js'
import type { ActorRef, Address } from '../system/ref.js'

export type ReaperSelf =
  | { readonly type: 'sweep-done'; readonly report: SweepReport }
  | { readonly type: 'sweep-failed'; readonly error: ErrorData }
  | { readonly type: 'sweep-due' }
  | { readonly type: 'session-terminated'; readonly address: Address }

export type ReaperInput = ReaperMessage | ReaperSelf

export type ReaperEffect =
  | { readonly type: 'sweep' }
  | { readonly type: 'arm-timer'; readonly afterMs: number }
  | { readonly type: 'keep'; readonly sessionId: SessionId; readonly session: ActorRef<SessionMessage> }
  | { readonly type: 'forget'; readonly address: Address }
  | { readonly type: 'reply'; readonly replyTo: ActorRef<SweepReport>; readonly report: SweepReport }

export interface ReaperState {
  readonly everyMs: number
  readonly sweeping: boolean
  /** Wait for the sweep that runs. */
  readonly current: readonly ActorRef<SweepReport>[]
  /** Wait for the one after it. */
  readonly next: readonly ActorRef<SweepReport>[]
  readonly totals: {
    readonly sweeps: number
    readonly failures: number
    readonly processes: number
    readonly folders: number
    readonly expired: number
  }
}

type ReaperStep = Step<ReaperState, ReaperEffect>

/** `everyMs`: from the end of one sweep to the start of the next, milliseconds. */
export function reaperMachine(everyMs: number): Machine<ReaperState, ReaperInput, ReaperEffect> {
  const totals = { sweeps: 0, failures: 0, processes: 0, folders: 0, expired: 0 }
  const state: ReaperState = { everyMs, sweeping: true, current: [], next: [], totals }
  return {
    initial: { state, effects: [{ type: 'sweep' }] },
    step,
    // A sweep lasts as long as its scope, and so does the timer.
    scope: ({ sweeping, totals }) => `${sweeping ? 'sweep' : 'pause'}#${totals.sweeps + totals.failures}`,
  }
}

function step(state: ReaperState, message: ReaperInput): ReaperStep {
  switch (message.type) {
    case 'session-lives':
      return { state, effects: [{ type: 'keep', sessionId: message.sessionId, session: message.session }] }
    case 'session-terminated':
      return { state, effects: [{ type: 'forget', address: message.address }] }
    case 'sweep-requested': {
      const asked = { ...state, next: [...state.next, message.replyTo] }
      return state.sweeping ? { state: asked, effects: [] } : begin(asked)
    }
    case 'sweep-due':
      return state.sweeping ? { state, effects: [] } : begin(state)
    case 'sweep-done': {
      if (!state.sweeping) return { state, effects: [] }
      const { report } = message
      const { sweeps, failures, processes, folders, expired } = state.totals
      return end(state, report, {
        sweeps: sweeps + 1,
        failures,
        processes: processes + report.processes,
        folders: folders + report.folders,
        expired: expired + report.expired,
      })
    }
    case 'sweep-failed':
      if (!state.sweeping) return { state, effects: [] }
      return end(state, nothingSwept, { ...state.totals, failures: state.totals.failures + 1 })
    default:
      return unreachable(message)
  }
}

const nothingSwept: SweepReport = { type: 'sweep-report', processes: 0, proven: false, folders: 0, expired: 0 }

const begin = (state: ReaperState): ReaperStep => ({
  state: { ...state, sweeping: true, current: state.next, next: [] },
  effects: [{ type: 'sweep' }],
})

function end(before: ReaperState, report: SweepReport, totals: ReaperState['totals']): ReaperStep {
  const replies = before.current.map((replyTo): ReaperEffect => ({ type: 'reply', replyTo, report }))
  const state = { ...before, totals, sweeping: false, current: [] }
  if (state.next.length === 0) return { state, effects: [...replies, { type: 'arm-timer', afterMs: state.everyMs }] }
  const begun = begin(state)
  return { state: begun.state, effects: [...replies, ...begun.effects] }
}

// The prefix-merge actor's machine: the ledgers of the pair's sessions. Inserting is idempotent by completion id, so that a frame
// sent twice counts once. A frame of a session that is unknown or sealed is refused and counted, never stored. Pure but for this: the
// log of a session and its open calls grow in place, since a copy for each frame would cost the square of the session. So a state is
// stepped once.

import type { FailedCall } from '../../src/domain/completion.js'
import type { SessionId } from '../../src/domain/ids.js'
import { unreachable } from '../../src/domain/unreachable.js'
import type { LogEntry } from '../../src/ledger/log-entry.js'
import {
  insertCall,
  insertDelivered,
  insertFailed,
  type SessionLog,
  sealLog,
  sessionLog,
} from '../../src/ledger/session-log.js'
import { type CallStartedFrame, type CaptureFrame, sessionOf } from '../../src/wire/frames.js'
import type { LedgerSealReply, MergeDescription, MergeMessage } from '../protocol/merge.js'
import type { SessionMessage } from '../protocol/session.js'
import type { Machine, Step } from '../system/machine.js'
import type { ActorRef } from '../system/ref.js'

/** From the port to the proxy. `link` numbers the links of a merge thread's life: a restarted proxy brings a fresh one. */
export type MergeSelf =
  | { readonly type: 'frame-received'; readonly link: number; readonly frame: CaptureFrame }
  /** The proxy at its other end is gone, and with it the calls that it had begun. */
  | { readonly type: 'link-ended'; readonly link: number; readonly atMs: number }
  | { readonly type: 'effect-failed'; readonly error: string }

export type MergeInput = MergeMessage | MergeSelf

export type MergeEffect =
  | { readonly type: 'receive-frames' }
  | { readonly type: 'acknowledge'; readonly link: number; readonly frameId: number }
  | {
      readonly type: 'refuse'
      readonly link: number
      readonly frameId: number
      readonly sessionId: string
      readonly reason: 'unknown-session' | 'sealed'
    }
  | { readonly type: 'tell-started'; readonly session: ActorRef<SessionMessage>; readonly sequence: number }
  | {
      readonly type: 'tell-recorded'
      readonly session: ActorRef<SessionMessage>
      readonly calls: number
      readonly turns: number
      readonly promptTokens: number
      readonly sampledTokens: number
    }
  | { readonly type: 'reply-sealed'; readonly replyTo: ActorRef<LedgerSealReply>; readonly reply: LedgerSealReply }
  | {
      readonly type: 'reply-description'
      readonly replyTo: ActorRef<MergeDescription>
      readonly description: MergeDescription
    }

/** An attempt at an engine of which neither record nor failure has come. */
interface OpenCall {
  readonly link: number
  readonly sequence: number
  readonly attempt: number
  readonly startedAtMs: number
}

interface Ledger {
  session: ActorRef<SessionMessage>
  readonly log: SessionLog
  /** In order of their start; bounded by the proxy's calls in flight. */
  readonly open: OpenCall[]
}

export interface MergeState {
  readonly ledgers: ReadonlyMap<string, Ledger>
  /** Sessions whose ledger was handed over and not yet dropped. */
  readonly sealed: ReadonlySet<string>
  readonly isPaused: boolean
  /** Acknowledgements held back while paused; bounded by the sender's credit. */
  readonly held: readonly MergeEffect[]
  readonly refused: number
}

type MergeStep = Step<MergeState, MergeEffect>

export const mergeMachine: Machine<MergeState, MergeInput, MergeEffect> = {
  initial: {
    state: { ledgers: new Map(), sealed: new Set(), isPaused: false, held: [], refused: 0 },
    effects: [{ type: 'receive-frames' }],
  },
  scope: () => 'life',
  step(state, message) {
    switch (message.type) {
      case 'open-ledger': {
        const { sessionId, session } = message
        const known = state.ledgers.get(sessionId)
        if (known) {
          // After a restart of its actor's thread the session's ref may be another.
          known.session = session
          return { state, effects: [] }
        }
        const ledger: Ledger = { session, log: sessionLog(sessionId), open: [] }
        return { state: { ...state, ledgers: new Map(state.ledgers).set(sessionId, ledger) }, effects: [] }
      }
      case 'frame-received':
        return receive(state, message.link, message.frame)
      case 'link-ended':
        return linkEnded(state, message.link, message.atMs)
      case 'ledger-seal-requested':
        return seal(state, message)
      case 'drop-ledger': {
        const ledgers = without(state.ledgers, message.sessionId)
        const sealed = new Set(state.sealed)
        sealed.delete(message.sessionId)
        return { state: { ...state, ledgers, sealed }, effects: [] }
      }
      case 'pause-acknowledgements':
        return { state: { ...state, isPaused: true }, effects: [] }
      case 'resume-acknowledgements':
        return { state: { ...state, isPaused: false, held: [] }, effects: state.held }
      case 'merge-described': {
        const ledgers = [...state.ledgers.values()]
        const description: MergeDescription = {
          type: 'merge-description',
          sessions: ledgers.length,
          calls: ledgers.reduce((sum, { log }) => sum + log.calls.length, 0),
          tokens: ledgers.reduce((sum, { log }) => sum + log.sums.sampledTokens, 0),
        }
        return { state, effects: [{ type: 'reply-description', replyTo: message.replyTo, description }] }
      }
      case 'effect-failed':
        throw new Error(`an effect of the merge actor failed: ${message.error}`)
      default:
        return unreachable(message)
    }
  },
}

function receive(state: MergeState, link: number, frame: CaptureFrame): MergeStep {
  const sessionId = sessionOf(frame)
  const { frameId } = frame
  const ledger = state.ledgers.get(sessionId)
  if (frame.kind === 'call-started') {
    // Not acknowledged. Of a session without a ledger only the count is kept: the call's own frame is refused by name.
    if (ledger === undefined) return { state: { ...state, refused: state.refused + 1 }, effects: [] }
    const { sequence, attempt, startedAtMs } = frame
    ledger.open.push({ link, sequence, attempt, startedAtMs })
    return { state, effects: [{ type: 'tell-started', session: ledger.session, sequence }] }
  }
  if (ledger === undefined) {
    const reason = state.sealed.has(sessionId) ? 'sealed' : 'unknown-session'
    return {
      state: { ...state, refused: state.refused + 1 },
      effects: [{ type: 'refuse', link, frameId, sessionId, reason }],
    }
  }
  const entry = insert(ledger, link, frame)
  const acknowledge: MergeEffect = { type: 'acknowledge', link, frameId }
  const told: readonly MergeEffect[] =
    entry?.kind === 'call'
      ? [{ type: 'tell-recorded', session: ledger.session, calls: ledger.log.calls.length, ...ledger.log.sums }]
      : []
  if (state.isPaused) return { state: { ...state, held: [...state.held, acknowledge] }, effects: told }
  return { state, effects: [...told, acknowledge] }
}

/** Calls that the dead proxy had begun end here, as failures of the infrastructure. */
function linkEnded(state: MergeState, link: number, atMs: number): MergeStep {
  for (const { log, open } of state.ledgers.values()) {
    for (const call of open) if (call.link === link) insertFailed(log, lostCall(log.sessionId, call, PROXY_DIED, atMs))
    open.splice(0, open.length, ...open.filter(call => call.link !== link))
  }
  return { state, effects: [] }
}

const PROXY_DIED = "the proxy's thread ended before the answer"
const NEVER_ENDED = 'the call had neither answer nor failure when its session was sealed'

const lostCall = (
  sessionId: SessionId,
  { sequence, attempt, startedAtMs }: OpenCall,
  error: string,
  finishedAtMs: number,
): FailedCall => ({ sessionId, sequence, attempt, status: 503, error, abortedTokens: 0, startedAtMs, finishedAtMs })

/** Takes the first attempt of that call out of `open`. */
function end(open: OpenCall[], link: number, sequence: number): void {
  const index = open.findIndex(call => call.link === link && call.sequence === sequence)
  if (index >= 0) open.splice(index, 1)
}

/** What is fresh in the frame; null = nothing. */
function insert({ log, open }: Ledger, link: number, frame: Exclude<CaptureFrame, CallStartedFrame>): LogEntry | null {
  switch (frame.kind) {
    case 'completion-captured': {
      const entry = insertCall(log, frame.record)
      if (entry !== null) end(open, link, frame.record.sequence)
      return entry
    }
    case 'call-failed':
      end(open, link, frame.failed.sequence)
      return insertFailed(log, frame.failed)
    case 'delivery-known':
      return insertDelivered(log, frame.completionId, frame.delivered)
    default:
      return unreachable(frame)
  }
}

type SealRequest = Extract<MergeMessage, { readonly type: 'ledger-seal-requested' }>

function seal(state: MergeState, { sessionId, atMs, replyTo }: SealRequest): MergeStep {
  const ledger = state.ledgers.get(sessionId)
  if (ledger === undefined) {
    return { state, effects: [{ type: 'reply-sealed', replyTo, reply: { type: 'ledger-unknown' } }] }
  }
  // A proxy that died may be reported by its link only after this, or it would not let go of a call.
  for (const call of ledger.open) insertFailed(ledger.log, lostCall(sessionId, call, NEVER_ENDED, atMs))
  return {
    state: { ...state, ledgers: without(state.ledgers, sessionId), sealed: new Set(state.sealed).add(sessionId) },
    effects: [{ type: 'reply-sealed', replyTo, reply: { type: 'ledger-sealed', ledger: sealLog(ledger.log) } }],
  }
}

function without<V>(map: ReadonlyMap<string, V>, key: string): ReadonlyMap<string, V> {
  const rest = new Map(map)
  rest.delete(key)
  return rest
}

// The prefix-merge actor's machine: the ledgers of the pair's sessions. Inserting is idempotent by completion id, so that a frame
// sent twice counts once. A frame of a session that is unknown or sealed is refused and counted, never stored. Pure.

import type { CompletionRecord, Delivered, FailedCall, SessionLedger } from '../../src/domain/completion.js'
import type { SessionId } from '../../src/domain/ids.js'
import { unreachable } from '../../src/domain/unreachable.js'
import { differenceFrom, type WholeBody } from '../../src/ledger/original-request.js'
import { type CallStartedFrame, type CaptureFrame, sessionOf } from '../../src/wire/frames.js'
import type { LedgerSealReply, MergeDescription, MergeMessage } from '../protocol/merge.js'
import type { SessionMessage } from '../protocol/session.js'
import type { Machine, Step } from '../system/machine.js'
import type { ActorRef } from '../system/ref.js'
import { shareWithEarlier } from './share.js'

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
  readonly session: ActorRef<SessionMessage>
  readonly records: ReadonlyMap<string, CompletionRecord>
  readonly delivered: ReadonlyMap<string, Delivered>
  /** Whole bodies of the last calls, for the next ones to differ from. */
  readonly bodies: readonly WholeBody[]
  readonly failed: readonly FailedCall[]
  /** In order of their start; bounded by the proxy's calls in flight. */
  readonly open: readonly OpenCall[]
  /** Sums over the records. `turns`: those that are no side calls. */
  readonly turns: number
  readonly promptTokens: number
  readonly sampledTokens: number
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
        const known = state.ledgers.get(message.sessionId)
        // After a restart of its actor's thread the session's ref may be another.
        const ledger = known ? { ...known, session: message.session } : emptyLedger(message.session)
        return { state: { ...state, ledgers: set(state.ledgers, message.sessionId, ledger) }, effects: [] }
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
          calls: ledgers.reduce((sum, ledger) => sum + ledger.records.size, 0),
          tokens: ledgers.reduce((sum, ledger) => sum + ledger.sampledTokens, 0),
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
    const begun = { ...ledger, open: [...ledger.open, { link, sequence, attempt, startedAtMs }] }
    return {
      state: { ...state, ledgers: set(state.ledgers, sessionId, begun) },
      effects: [{ type: 'tell-started', session: ledger.session, sequence }],
    }
  }
  if (ledger === undefined) {
    const reason = state.sealed.has(sessionId) ? 'sealed' : 'unknown-session'
    return {
      state: { ...state, refused: state.refused + 1 },
      effects: [{ type: 'refuse', link, frameId, sessionId, reason }],
    }
  }
  const next = insert(ledger, link, frame)
  const acknowledge: MergeEffect = { type: 'acknowledge', link, frameId }
  const told: readonly MergeEffect[] =
    next.records.size === ledger.records.size
      ? []
      : [
          {
            type: 'tell-recorded',
            session: ledger.session,
            calls: next.records.size,
            turns: next.turns,
            promptTokens: next.promptTokens,
            sampledTokens: next.sampledTokens,
          },
        ]
  return {
    state: {
      ...state,
      ledgers: set(state.ledgers, sessionId, next),
      held: state.isPaused ? [...state.held, acknowledge] : state.held,
    },
    effects: state.isPaused ? told : [...told, acknowledge],
  }
}

/** Calls that the dead proxy had begun end here, as failures of the infrastructure. */
function linkEnded(state: MergeState, link: number, atMs: number): MergeStep {
  const ledgers = new Map<string, Ledger>()
  for (const [sessionId, ledger] of state.ledgers) {
    const cut = ledger.open.filter(call => call.link === link)
    const next: Ledger = {
      ...ledger,
      open: ledger.open.filter(call => call.link !== link),
      failed: [...ledger.failed, ...cut.map(call => lostCall(sessionId as SessionId, call, PROXY_DIED, atMs))],
    }
    ledgers.set(sessionId, cut.length === 0 ? ledger : next)
  }
  return { state: { ...state, ledgers }, effects: [] }
}

const PROXY_DIED = "the proxy's thread ended before the answer"
const NEVER_ENDED = 'the call had neither answer nor failure when its session was sealed'

const lostCall = (
  sessionId: SessionId,
  { sequence, attempt, startedAtMs }: OpenCall,
  error: string,
  finishedAtMs: number,
): FailedCall => ({ sessionId, sequence, attempt, status: 503, error, abortedTokens: 0, startedAtMs, finishedAtMs })

/** `open` without the first attempt of that call. */
function ended(open: readonly OpenCall[], link: number, sequence: number): readonly OpenCall[] {
  const index = open.findIndex(call => call.link === link && call.sequence === sequence)
  return index === -1 ? open : open.filter((_, at) => at !== index)
}

function insert(ledger: Ledger, link: number, frame: Exclude<CaptureFrame, CallStartedFrame>): Ledger {
  switch (frame.kind) {
    case 'completion-captured': {
      const { record } = frame
      const { completionId } = record
      if (ledger.records.has(completionId)) return ledger
      return {
        ...ledger,
        open: ended(ledger.open, link, record.sequence),
        records: set(ledger.records, completionId, {
          ...shareWithEarlier(record, [...ledger.records.values()]),
          ...differenceFrom(record.originalRequest, ledger.bodies),
        }),
        bodies: [...ledger.bodies.slice(1 - KEPT_BODIES), { completionId, text: record.originalRequest }],
        turns: ledger.turns + (record.sideRule === null ? 1 : 0),
        promptTokens: ledger.promptTokens + record.promptTokens,
        sampledTokens: ledger.sampledTokens + record.completionTokens,
      }
    }
    case 'call-failed':
      return {
        ...ledger,
        open: ended(ledger.open, link, frame.failed.sequence),
        failed: [...ledger.failed, frame.failed],
      }
    case 'delivery-known':
      return { ...ledger, delivered: set(ledger.delivered, frame.completionId, frame.delivered) }
    default:
      return unreachable(frame)
  }
}

/** A main agent and a sub-agent or side call beside it. More would cost memory for each session, fewer for each turn. */
const KEPT_BODIES = 2

type SealRequest = Extract<MergeMessage, { readonly type: 'ledger-seal-requested' }>

function seal(state: MergeState, { sessionId, atMs, replyTo }: SealRequest): MergeStep {
  const ledger = state.ledgers.get(sessionId)
  if (ledger === undefined) {
    return { state, effects: [{ type: 'reply-sealed', replyTo, reply: { type: 'ledger-unknown' } }] }
  }
  const sealedLedger: SessionLedger = {
    sessionId,
    calls: [...ledger.records.values()].map(record => ({
      record,
      delivered: ledger.delivered.get(record.completionId) ?? 'unknown',
    })),
    // A proxy that died may be reported by its link only after this, or it would not let go of a call.
    failed: [...ledger.failed, ...ledger.open.map(call => lostCall(sessionId, call, NEVER_ENDED, atMs))],
  }
  return {
    state: { ...state, ledgers: without(state.ledgers, sessionId), sealed: new Set(state.sealed).add(sessionId) },
    effects: [{ type: 'reply-sealed', replyTo, reply: { type: 'ledger-sealed', ledger: sealedLedger } }],
  }
}

const emptyLedger = (session: ActorRef<SessionMessage>): Ledger => ({
  session,
  records: new Map(),
  delivered: new Map(),
  bodies: [],
  failed: [],
  open: [],
  turns: 0,
  promptTokens: 0,
  sampledTokens: 0,
})

const set = <K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> => new Map(map).set(key, value)

function without<V>(map: ReadonlyMap<string, V>, key: string): ReadonlyMap<string, V> {
  const rest = new Map(map)
  rest.delete(key)
  return rest
}

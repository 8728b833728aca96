// The prefix-merge actor's machine: the ledgers of the pair's sessions. Inserting is idempotent by completion id, so that a frame
// sent twice counts once. A frame of a session that is unknown or sealed is refused and counted, never stored. Pure but for this: the
// log of a session and its open calls grow in place, since a copy for each frame would cost the square of the session. So a state is
// stepped once.

import type { FailedCall } from '../../src/domain/completion.js'
import type { ErrorData } from '../../src/domain/errors.js'
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
  /** What the store knows of the session; null = nothing, or nothing that can be read. */
  | { readonly type: 'ledger-loaded'; readonly sessionId: SessionId; readonly log: SessionLog | null }
  /** What the frame told is on disk. */
  | { readonly type: 'entry-stored'; readonly link: number; readonly frameId: number }
  /** Why the store takes nothing; null = it takes again. */
  | { readonly type: 'intake-changed'; readonly error: ErrorData | null }
  | { readonly type: 'effect-failed'; readonly error: string }

export type MergeInput = MergeMessage | MergeSelf

export type MergeEffect =
  | { readonly type: 'receive-frames' }
  | { readonly type: 'watch-intake' }
  | { readonly type: 'tell-intake'; readonly error: ErrorData | null }
  | { readonly type: 'load-ledger'; readonly sessionId: SessionId }
  /** `frame`: told of when it is on disk; null = nobody waits. `entry` null = nothing fresh: when all before it is. */
  | {
      readonly type: 'store-entry'
      readonly sessionId: SessionId
      readonly entry: LogEntry | null
      readonly frame: { readonly link: number; readonly frameId: number } | null
    }
  | { readonly type: 'finish-session'; readonly sessionId: SessionId }
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
  /** null = read back for its seal alone. */
  session: ActorRef<SessionMessage> | null
  readonly log: SessionLog
  /** In order of their start; bounded by the proxy's calls in flight. */
  readonly open: OpenCall[]
}

export interface MergeState {
  readonly ledgers: ReadonlyMap<string, Ledger>
  /** Sessions whose ledger was handed over and not yet dropped. */
  readonly sealed: ReadonlySet<string>
  /** Sessions that are being read from the store, with what came for them meanwhile. Read at once: this holds a turn or two. */
  readonly loading: ReadonlyMap<string, Loading>
  readonly isPaused: boolean
  /** Acknowledgements held back while paused; bounded by the sender's credit. */
  readonly held: readonly MergeEffect[]
  readonly refused: number
}

interface Loading {
  /** null = nobody has opened it, its seal was asked for. */
  readonly session: ActorRef<SessionMessage> | null
  readonly waiting: readonly OfSession[]
}

/** Messages about one session. */
type OfSession = Extract<
  MergeInput,
  { readonly type: 'open-ledger' | 'frame-received' | 'ledger-seal-requested' | 'drop-ledger' }
>

type MergeStep = Step<MergeState, MergeEffect>

export const mergeMachine: Machine<MergeState, MergeInput, MergeEffect> = {
  initial: {
    state: { ledgers: new Map(), sealed: new Set(), loading: new Map(), isPaused: false, held: [], refused: 0 },
    effects: [{ type: 'receive-frames' }, { type: 'watch-intake' }],
  },
  scope: () => 'life',
  step(state, message) {
    switch (message.type) {
      case 'open-ledger':
      case 'frame-received':
      case 'ledger-seal-requested':
      case 'drop-ledger':
        return ofSession(state, message)
      case 'result-stored':
        return { state, effects: [{ type: 'finish-session', sessionId: message.sessionId }] }
      case 'ledger-loaded':
        return loaded(state, message)
      case 'entry-stored':
        return stored(state, message)
      case 'intake-changed':
        return { state, effects: [{ type: 'tell-intake', error: message.error }] }
      case 'link-ended':
        return linkEnded(state, message.link, message.atMs)
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

function ofSession(state: MergeState, message: OfSession): MergeStep {
  const sessionId = message.type === 'frame-received' ? sessionOf(message.frame) : message.sessionId
  const loading = state.loading.get(sessionId)
  if (loading !== undefined) {
    const session = message.type === 'open-ledger' ? message.session : loading.session
    const waiting = [...loading.waiting, message]
    return { state: { ...state, loading: new Map(state.loading).set(sessionId, { session, waiting }) }, effects: [] }
  }
  switch (message.type) {
    case 'open-ledger':
      return open(state, message)
    case 'frame-received':
      return receive(state, message.link, message.frame)
    case 'ledger-seal-requested':
      return seal(state, message)
    case 'drop-ledger': {
      const ledgers = without(state.ledgers, message.sessionId)
      const sealed = new Set(state.sealed)
      sealed.delete(message.sessionId)
      return { state: { ...state, ledgers, sealed }, effects: [] }
    }
  }
}

/** A session that this life of the thread does not know may be in the store: the former life died. */
function open(state: MergeState, message: Extract<MergeInput, { readonly type: 'open-ledger' }>): MergeStep {
  const { sessionId, session } = message
  const known = state.ledgers.get(sessionId)
  if (known === undefined) return load(state, sessionId, { session, waiting: [] })
  // After a restart of its actor's thread the session's ref may be another.
  known.session = session
  return { state, effects: [] }
}

const load = (state: MergeState, sessionId: SessionId, loading: Loading): MergeStep => ({
  state: { ...state, loading: new Map(state.loading).set(sessionId, loading) },
  effects: [{ type: 'load-ledger', sessionId }],
})

function loaded(
  before: MergeState,
  { sessionId, log }: Extract<MergeInput, { readonly type: 'ledger-loaded' }>,
): MergeStep {
  const { session, waiting } = before.loading.get(sessionId) ?? { session: null, waiting: [] }
  const known = { ...before, loading: without(before.loading, sessionId) }
  const ledger: Ledger = { session, log: log ?? sessionLog(sessionId), open: [] }
  const isThere = log !== null || session !== null
  const state = isThere ? { ...known, ledgers: new Map(known.ledgers).set(sessionId, ledger) } : known
  return waiting.reduce<MergeStep>(
    (last, message) => {
      const next =
        message.type === 'ledger-seal-requested' ? handOver(last.state, message) : ofSession(last.state, message)
      return { state: next.state, effects: [...last.effects, ...next.effects] }
    },
    { state, effects: [] },
  )
}

/** What the harness may have now waits no more, unless a test holds it back. */
function stored(state: MergeState, { link, frameId }: { link: number; frameId: number }): MergeStep {
  const acknowledge: MergeEffect = { type: 'acknowledge', link, frameId }
  return state.isPaused
    ? { state: { ...state, held: [...state.held, acknowledge] }, effects: [] }
    : { state, effects: [acknowledge] }
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
    const { session } = ledger
    return { state, effects: session === null ? [] : [{ type: 'tell-started', session, sequence }] }
  }
  if (ledger === undefined) {
    const reason = state.sealed.has(sessionId) ? 'sealed' : 'unknown-session'
    return {
      state: { ...state, refused: state.refused + 1 },
      effects: [{ type: 'refuse', link, frameId, sessionId, reason }],
    }
  }
  const entry = insert(ledger, link, frame)
  const { session, log } = ledger
  const told: readonly MergeEffect[] =
    entry?.kind === 'call' && session !== null
      ? [{ type: 'tell-recorded', session, calls: log.calls.length, ...log.sums }]
      : []
  // Whether an answer was delivered holds nobody up: not known counts as delivered.
  if (frame.kind === 'delivery-known') {
    const keep: MergeEffect = { type: 'store-entry', sessionId: log.sessionId, entry, frame: null }
    const { state: next, effects } = stored(state, { link, frameId })
    return { state: next, effects: entry === null ? effects : [keep, ...effects] }
  }
  return {
    state,
    effects: [...told, { type: 'store-entry', sessionId: log.sessionId, entry, frame: { link, frameId } }],
  }
}

/** Calls that the dead proxy had begun end here, as failures of the infrastructure. */
function linkEnded(state: MergeState, link: number, atMs: number): MergeStep {
  const effects: MergeEffect[] = []
  for (const { log, open } of state.ledgers.values()) {
    const cut = open.filter(call => call.link === link)
    effects.push(...fail(log, cut, PROXY_DIED, atMs))
    open.splice(0, open.length, ...open.filter(call => call.link !== link))
  }
  return { state, effects }
}

/** Each of `calls` as a failure, and what the store is to keep of it. */
function fail(log: SessionLog, calls: readonly OpenCall[], error: string, atMs: number): readonly MergeEffect[] {
  const { sessionId } = log
  return calls.flatMap(call => {
    const entry = insertFailed(log, lostCall(sessionId, call, error, atMs))
    return entry === null ? [] : [{ type: 'store-entry', sessionId, entry, frame: null } as const]
  })
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

function seal(state: MergeState, message: SealRequest): MergeStep {
  const { sessionId } = message
  const wasHandedOver = state.sealed.has(sessionId) && !message.isAgain
  if (state.ledgers.has(sessionId) || wasHandedOver) return handOver(state, message)
  return load(state, sessionId, { session: null, waiting: [message] })
}

function handOver(state: MergeState, { sessionId, atMs, replyTo }: SealRequest): MergeStep {
  const ledger = state.ledgers.get(sessionId)
  if (ledger === undefined) {
    return { state, effects: [{ type: 'reply-sealed', replyTo, reply: { type: 'ledger-unknown' } }] }
  }
  // A proxy that died may be reported by its link only after this, or it would not let go of a call.
  const lost = fail(ledger.log, ledger.open, NEVER_ENDED, atMs)
  return {
    state: { ...state, ledgers: without(state.ledgers, sessionId), sealed: new Set(state.sealed).add(sessionId) },
    effects: [
      ...lost,
      { type: 'reply-sealed', replyTo, reply: { type: 'ledger-sealed', ledger: sealLog(ledger.log) } },
    ],
  }
}

function without<V>(map: ReadonlyMap<string, V>, key: string): ReadonlyMap<string, V> {
  const rest = new Map(map)
  rest.delete(key)
  return rest
}

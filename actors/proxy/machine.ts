// The proxy actor's machine: the server is starting or listens; sessions that are closing, with who waits for it. What happens
// inside an HTTP exchange is no message; sessions themselves live in the gateway, which the effects speak to.

import type { SessionId } from '../../src/domain/ids.js'
import type { GateState } from '../../src/domain/inference.js'
import { unreachable } from '../../src/domain/unreachable.js'
import type { UpstreamObstacle } from '../protocol/prober.js'
import type {
  GateDescription,
  ProxyDescription,
  ProxyMessage,
  ProxySession,
  SessionClosed,
  SessionPutReply,
} from '../protocol/proxy.js'
import type { Machine, Step } from '../system/machine.js'
import type { ActorRef } from '../system/ref.js'

/** Effect results; nobody else sends them. */
export type ProxySelf =
  | { readonly type: 'gateway-listening'; readonly port: number; readonly url: string }
  | {
      readonly type: 'session-drained'
      readonly sessionId: SessionId
      readonly calls: number
      readonly aborted: number
    }
  /** The port cannot be had, or an effect failed: a crash, for the supervisor. */
  | { readonly type: 'gateway-failed'; readonly error: string }

export type ProxyInput = ProxyMessage | ProxySelf

export type ProxyEffect =
  | { readonly type: 'open-gateway' }
  | {
      readonly type: 'put-session'
      readonly session: ProxySession
      readonly replyTo: ActorRef<SessionPutReply>
      readonly url: string
    }
  | { readonly type: 'close-session'; readonly sessionId: SessionId }
  | {
      readonly type: 'reply-closed'
      readonly replyTo: readonly ActorRef<SessionClosed>[]
      readonly calls: number
      readonly aborted: number
    }
  | { readonly type: 'forget-session'; readonly sessionId: SessionId }
  | {
      readonly type: 'set-gate'
      readonly gate: GateState
      readonly awaitDrain: boolean
      readonly replyTo: ActorRef<GateDescription>
    }
  | { readonly type: 'describe-gate'; readonly replyTo: ActorRef<GateDescription> }
  | {
      readonly type: 'set-standing'
      readonly upstream: string
      readonly obstacle: UpstreamObstacle | null
    }
  | { readonly type: 'describe'; readonly replyTo: ActorRef<ProxyDescription> }

/** Messages that need the gateway while it is not open yet. Bounded by the mailbox's capacity: they came through it at start. */
type Stashed = Exclude<ProxyInput, { type: 'gateway-listening' | 'gateway-failed' | 'session-drained' }>

export type ProxyState =
  | { readonly phase: 'starting'; readonly stash: readonly Stashed[] }
  | {
      readonly phase: 'listening'
      readonly port: number
      readonly url: string
      readonly closing: ReadonlyMap<SessionId, readonly ActorRef<SessionClosed>[]>
    }

type ProxyStep = Step<ProxyState, ProxyEffect>
type Listening = Extract<ProxyState, { phase: 'listening' }>

export const proxyMachine: Machine<ProxyState, ProxyInput, ProxyEffect> = {
  initial: { state: { phase: 'starting', stash: [] }, effects: [{ type: 'open-gateway' }] },
  // One scope for the whole life: a session's closing must not be cancelled by another's message.
  scope: () => 'life',
  step(state, message) {
    if (message.type === 'gateway-failed') throw new Error(`the gateway cannot run: ${message.error}`)
    if (state.phase === 'starting') {
      if (message.type === 'session-drained') return { state, effects: [] }
      if (message.type !== 'gateway-listening') {
        return { state: { ...state, stash: [...state.stash, message] }, effects: [] }
      }
      const { port, url } = message
      const open: ProxyStep = { state: { phase: 'listening', port, url, closing: new Map() }, effects: [] }
      return state.stash.reduce((last, stashed) => {
        const next = listening(last.state as Listening, stashed)
        return { state: next.state, effects: [...last.effects, ...next.effects] }
      }, open)
    }
    return listening(state, message)
  },
}

function listening(state: Listening, message: Exclude<ProxyInput, { type: 'gateway-failed' }>): ProxyStep {
  switch (message.type) {
    case 'session-put': {
      const { session, replyTo } = message
      return { state, effects: [{ type: 'put-session', session, replyTo, url: state.url }] }
    }
    case 'session-close-requested': {
      const { sessionId, replyTo } = message
      const waiting = state.closing.get(sessionId)
      const closing = new Map(state.closing).set(sessionId, [...(waiting ?? []), replyTo])
      return { state: { ...state, closing }, effects: waiting ? [] : [{ type: 'close-session', sessionId }] }
    }
    case 'session-drained': {
      const { sessionId, calls, aborted } = message
      const closing = new Map(state.closing)
      closing.delete(sessionId)
      const replyTo = state.closing.get(sessionId) ?? []
      return { state: { ...state, closing }, effects: [{ type: 'reply-closed', replyTo, calls, aborted }] }
    }
    case 'forget-session':
      return { state, effects: [{ type: 'forget-session', sessionId: message.sessionId }] }
    case 'gate-set-requested': {
      const { gate, awaitDrain, replyTo } = message
      return { state, effects: [{ type: 'set-gate', gate, awaitDrain, replyTo }] }
    }
    case 'gate-described':
      return { state, effects: [{ type: 'describe-gate', replyTo: message.replyTo }] }
    case 'upstream-standing': {
      const { upstream, obstacle } = message
      return { state, effects: [{ type: 'set-standing', upstream, obstacle }] }
    }
    case 'proxy-described':
      return { state, effects: [{ type: 'describe', replyTo: message.replyTo }] }
    case 'gateway-listening':
      return { state: { ...state, port: message.port, url: message.url }, effects: [] }
    default:
      return unreachable(message)
  }
}

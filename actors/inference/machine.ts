// Pausing of all proxies together: one pause at a time, with an owner and a lease, and the name of the weights in use. Pure.

import type { ErrorData } from '../../src/domain/errors.js'
import { type GateState, gateOf, type InferenceRecord, type Pause } from '../../src/domain/inference.js'
import { unreachable } from '../../src/domain/unreachable.js'
import type { InferenceMessage, InferenceReply } from '../protocol/inference.js'
import type { Machine, Step } from '../system/machine.js'
import type { ActorRef } from '../system/ref.js'

export interface InferenceState {
  readonly record: InferenceRecord
  /** Numbers each lease, so that the timer of one that was renewed or ended means nothing. */
  readonly lease: number
  /** Pauses that their lease ended. */
  readonly expired: number
}

export type InferenceInput =
  | InferenceMessage
  | { readonly type: 'lease-passed'; readonly lease: number }
  | { readonly type: 'effect-failed'; readonly effect: string; readonly error: ErrorData }

export type InferenceEffect =
  /** Kept for restarts of threads and of the service, before any proxy is told. */
  | { readonly type: 'keep'; readonly record: InferenceRecord }
  /** Tells every proxy; `answer` null = nobody waits for it. */
  | {
      readonly type: 'set-gates'
      readonly gate: GateState
      readonly answer: {
        readonly record: InferenceRecord
        readonly awaitDrain: boolean
        readonly timeoutMs: number
        readonly replyTo: ActorRef<InferenceReply>
      } | null
    }
  | { readonly type: 'arm-lease'; readonly lease: number; readonly untilMs: number }
  | { readonly type: 'describe'; readonly record: InferenceRecord; readonly replyTo: ActorRef<InferenceReply> }
  | { readonly type: 'refuse'; readonly owner: string; readonly replyTo: ActorRef<InferenceReply> }
  | { readonly type: 'log-expiry'; readonly owner: string }

type InferenceStep = Step<InferenceState, InferenceEffect>
type Input<T extends InferenceInput['type']> = Extract<InferenceInput, { readonly type: T }>

/** `record`: as the life before left it. */
export const inferenceMachine = (
  record: InferenceRecord,
): Machine<InferenceState, InferenceInput, InferenceEffect> => ({
  initial: {
    state: { record, lease: 0, expired: 0 },
    effects: [
      { type: 'set-gates', gate: gateOf(record), answer: null },
      ...(record.pause === null ? [] : [leaseOf(0, record.pause)]),
    ],
  },
  // One scope for the whole life: who waits for a drain is answered whatever comes after.
  scope: () => 'life',
  step(state, message) {
    switch (message.type) {
      case 'pause-requested':
        return pause(state, message)
      case 'resume-requested':
        return resume(state, message)
      case 'inference-described':
        return { state, effects: [{ type: 'describe', record: state.record, replyTo: message.replyTo }] }
      case 'lease-passed': {
        const { pause: held } = state.record
        if (held === null || message.lease !== state.lease) return { state, effects: [] }
        const next = opened(state, null)
        return {
          state: { ...next, expired: state.expired + 1 },
          effects: [
            { type: 'log-expiry', owner: held.owner },
            { type: 'keep', record: next.record },
            { type: 'set-gates', gate: gateOf(next.record), answer: null },
          ],
        }
      }
      case 'effect-failed':
        throw new Error(`${message.effect}: ${message.error.message}`)
      default:
        return unreachable(message)
    }
  },
})

function pause(state: InferenceState, message: Input<'pause-requested'>): InferenceStep {
  const { owner, mode, leaseMs, timeoutMs, atMs, replyTo } = message
  const held = state.record.pause
  if (held !== null && held.owner !== owner) {
    return { state, effects: [{ type: 'refuse', owner: held.owner, replyTo }] }
  }
  const next: Pause = { owner, mode, sinceMs: held?.sinceMs ?? atMs, leaseUntilMs: atMs + leaseMs }
  const record = { ...state.record, pause: next }
  const lease = state.lease + 1
  return {
    state: { ...state, record, lease },
    effects: [
      { type: 'keep', record },
      leaseOf(lease, next),
      {
        type: 'set-gates',
        gate: gateOf(record),
        answer: { record, awaitDrain: mode === 'wait', timeoutMs, replyTo },
      },
    ],
  }
}

function resume(state: InferenceState, message: Input<'resume-requested'>): InferenceStep {
  const { owner, force, policyVersion, replyTo } = message
  const held = state.record.pause
  if (held !== null && held.owner !== owner && !force) {
    return { state, effects: [{ type: 'refuse', owner: held.owner, replyTo }] }
  }
  if (held === null && policyVersion === null) {
    return { state, effects: [{ type: 'describe', record: state.record, replyTo }] }
  }
  const next = opened(state, policyVersion)
  const { record } = next
  return {
    state: next,
    effects: [
      { type: 'keep', record },
      {
        type: 'set-gates',
        gate: gateOf(record),
        answer: { record, awaitDrain: false, timeoutMs: RESUME_MS, replyTo },
      },
    ],
  }
}

/** A proxy that does not answer for so long is restarting, and comes back with its gate open. */
const RESUME_MS = 5_000

/** Who paused may have changed the weights: without a name of theirs, one of ours tells them from those before. */
function opened(state: InferenceState, policyVersion: string | null): InferenceState {
  const updates = state.record.updates + 1
  return {
    ...state,
    lease: state.lease + 1,
    record: { pause: null, updates, policyVersion: policyVersion ?? `update-${updates}` },
  }
}

const leaseOf = (lease: number, { leaseUntilMs }: Pause): InferenceEffect => ({
  type: 'arm-lease',
  lease,
  untilMs: leaseUntilMs,
})

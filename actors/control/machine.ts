// Whether the control port listens, and who waits to hear of it. Pure.

import type { ErrorData } from '../../src/domain/errors.js'
import { unreachable } from '../../src/domain/unreachable.js'
import type { ControlMessage, ControlReply, PublicEvent } from '../protocol/control.js'
import type { Machine } from '../system/machine.js'
import type { ActorRef } from '../system/ref.js'

export interface ControlState {
  readonly listening: { readonly url: string; readonly port: number } | null
  readonly failed: ErrorData | null
  readonly published: number
  readonly waiting: readonly ActorRef<ControlReply>[]
}

export type ControlInput =
  | ControlMessage
  | { readonly type: 'listening'; readonly url: string; readonly port: number }
  | { readonly type: 'listen-failed'; readonly error: ErrorData }
  | { readonly type: 'effect-failed'; readonly effect: string; readonly error: ErrorData }

export type ControlEffect =
  | { readonly type: 'listen' }
  | { readonly type: 'publish'; readonly event: PublicEvent }
  /** The interpreter fills in the number of subscribers. */
  | { readonly type: 'reply'; readonly replyTo: ActorRef<ControlReply>; readonly reply: ControlReply }

export const controlMachine = (): Machine<ControlState, ControlInput, ControlEffect> => ({
  initial: { state: { listening: null, failed: null, published: 0, waiting: [] }, effects: [{ type: 'listen' }] },
  step(state, message) {
    switch (message.type) {
      case 'publish-event':
        return {
          state: { ...state, published: state.published + 1 },
          effects: [{ type: 'publish', event: message.event }],
        }
      case 'listening': {
        const { url, port } = message
        return answered({ ...state, listening: { url, port }, failed: null })
      }
      case 'listen-failed':
        return answered({ ...state, failed: message.error })
      case 'control-described':
        return answered({ ...state, waiting: [...state.waiting, message.replyTo] })
      case 'effect-failed':
        throw new Error(`${message.effect}: ${message.error.message}`)
      default:
        return unreachable(message)
    }
  },
  scope: () => 'open',
})

/** Answers those who wait, once there is something to say. */
function answered(state: ControlState): ReturnType<ReturnType<typeof controlMachine>['step']> {
  const { listening, failed, waiting } = state
  const reply: ControlReply | null =
    listening !== null
      ? { type: 'control-listens', ...listening, subscribers: 0 }
      : failed !== null
        ? { type: 'control-failed', error: failed }
        : null
  if (reply === null) return { state, effects: [] }
  return { state: { ...state, waiting: [] }, effects: waiting.map(replyTo => ({ type: 'reply', replyTo, reply })) }
}

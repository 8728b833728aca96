// What may be said to the inference actor, which pauses and resumes the model calls of all proxies together.

import type { InferenceStatus, PauseMode } from '../../src/domain/inference.js'
import type { ActorRef } from '../system/ref.js'

export type InferenceMessage =
  /** Closes every gate. Answered when all have drained (`keep`: when all are closed), or `timeoutMs` has passed; paused either way. */
  | {
      readonly type: 'pause-requested'
      readonly owner: string
      readonly mode: PauseMode
      /** The pause ends by itself after this; asking again as the same owner renews it. */
      readonly leaseMs: number
      readonly timeoutMs: number
      readonly atMs: number
      readonly replyTo: ActorRef<InferenceReply>
    }
  | {
      readonly type: 'resume-requested'
      readonly owner: string
      /** Also ends a pause of another owner. */
      readonly force: boolean
      /** Name of the weights from now on; null = the service makes one, since they may have changed. */
      readonly policyVersion: string | null
      readonly replyTo: ActorRef<InferenceReply>
    }
  | { readonly type: 'inference-described'; readonly replyTo: ActorRef<InferenceReply> }

export type InferenceReply =
  | ({ readonly type: 'inference-description' } & InferenceStatus)
  /** Another owner holds the pause. */
  | { readonly type: 'inference-refused'; readonly owner: string }

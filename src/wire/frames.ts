// What proxy-k and merge-k say to each other over their own MessagePort, as MessagePack (src/wire/codec.ts).
// Versioned and checked once, here, at the thread boundary; inside a thread the types are trusted.

import type { CompletionRecord, Delivered, FailedCall } from '../domain/completion.js'

export const FRAME_VERSION = 1

/** proxy -> merge. The first three need an acknowledgement and count against the credit window. */
export type CaptureFrame =
  | { readonly v: 1; readonly kind: 'completion-captured'; readonly frameId: number; readonly record: CompletionRecord }
  | { readonly v: 1; readonly kind: 'call-failed'; readonly frameId: number; readonly failed: FailedCall }
  | {
      readonly v: 1
      readonly kind: 'delivery-known'
      readonly frameId: number
      readonly sessionId: string
      readonly completionId: string
      readonly delivered: Delivered
    }

/** merge -> proxy. */
export type AckFrame =
  | { readonly v: 1; readonly kind: 'frame-acknowledged'; readonly frameId: number }
  /** The session is unknown or sealed: the frame was counted, not stored. */
  | {
      readonly v: 1
      readonly kind: 'frame-refused'
      readonly frameId: number
      readonly reason: 'unknown-session' | 'sealed' | 'malformed'
    }

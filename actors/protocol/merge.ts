// What may be said to the prefix-merge actor of a pair. Captures reach it as frames over its own port, not as messages.

import type { SessionLedger } from '../../src/domain/completion.js'
import type { SessionId } from '../../src/domain/ids.js'
import type { ActorRef } from '../system/ref.js'
import type { SessionMessage } from './session.js'

export type MergeMessage =
  /** `session` is told `call-started` and `completion-recorded`. Opening twice is the same as once. */
  | { readonly type: 'open-ledger'; readonly sessionId: SessionId; readonly session: ActorRef<SessionMessage> }
  /** Refuses further frames of the session and hands its ledger over. */
  | {
      readonly type: 'ledger-seal-requested'
      readonly sessionId: SessionId
      /** When it was asked, milliseconds since the epoch: the end of calls whose end nobody told. */
      readonly atMs: number
      /** The ledger may have been handed over before, and is read from the store then. Absent = no. */
      readonly isAgain?: boolean
      readonly replyTo: ActorRef<LedgerSealReply>
    }
  /** The session is over: nothing of it is kept in memory. Its records stay as they are. */
  | { readonly type: 'drop-ledger'; readonly sessionId: SessionId }
  /** The session's result is on disk: from here on its records may go when their room is wanted. Unknown = nothing. */
  | { readonly type: 'result-stored'; readonly sessionId: SessionId }
  /** Stops acknowledging frames (tests of back-pressure). */
  | { readonly type: 'pause-acknowledgements' }
  | { readonly type: 'resume-acknowledgements' }
  | { readonly type: 'merge-described'; readonly replyTo: ActorRef<MergeDescription> }

export type LedgerSealReply =
  | { readonly type: 'ledger-sealed'; readonly ledger: SessionLedger }
  | { readonly type: 'ledger-unknown' }

export interface MergeDescription {
  readonly type: 'merge-description'
  readonly sessions: number
  readonly calls: number
  readonly tokens: number
}

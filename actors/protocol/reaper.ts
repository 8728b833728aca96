// What may be said to the reaper, which removes what dead sessions left: processes, folders, expired artifacts.

import type { SessionId } from '../../src/domain/ids.js'
import type { ActorRef } from '../system/ref.js'
import type { SessionMessage } from './session.js'

export type ReaperMessage =
  /** Said before the session makes anything. It counts as live until its actor ends. */
  | { readonly type: 'session-lives'; readonly sessionId: SessionId; readonly session: ActorRef<SessionMessage> }
  /** A sweep that begins after this message is answered; others run by timer. */
  | { readonly type: 'sweep-requested'; readonly replyTo: ActorRef<SweepReport> }

export interface SweepReport {
  readonly type: 'sweep-report'
  /** Processes of dead sessions that were killed. */
  readonly processes: number
  /** False = some would not die; null = this system has no /proc, so none were looked for. */
  readonly proven: boolean | null
  /** Session folders whose workspace, home or other work was removed. */
  readonly folders: number
  /** Session folders that were removed whole: their artifacts had expired. */
  readonly expired: number
}

// What one call tells the merge thread: its record or its failures, then whether the harness got the answer. Refused and unanswered
// frames are counted and logged here; nothing is dropped in silence.

import type { CompletionRecord, Delivered } from '../../src/domain/completion.js'
import { errorData } from '../../src/domain/errors.js'
import { EVENTS } from '../../src/observability/events.js'
import type { CaptureBody } from '../threads/port-link.js'
import type { Refusal } from './reply.js'
import type { ProxyServices } from './services.js'
import type { SessionEntry } from './sessions.js'

const MAX_ERROR_CHARACTERS = 2_000

export interface FrameReport {
  /** Before each attempt at an engine: should this thread die, the call is still counted. One `captured` or `failed` follows. */
  started(): void
  /** Waits until the record is safe; else says how the harness is refused: it must not act on what is not recorded. */
  captured(record: CompletionRecord): Promise<Refusal | null>
  /** True once the record is safe: from then on the call has not failed, whatever else goes wrong. */
  readonly isCaptured: boolean
  /** `where`: fields of the log line; the harness is told no address. */
  failed(status: number, error: string, abortedTokens: number, where?: Readonly<Record<string, string>>): void
  /** `isDelivered` settles when the harness has the answer or is gone. */
  delivered(completionId: string, isDelivered: Promise<boolean>): void
  /** Settles when every frame is answered. Never rejects. */
  settled(): Promise<void>
}

export function frameReport(
  services: ProxyServices,
  entry: SessionEntry,
  call: { readonly sequence: number; readonly startedAtMs: number },
): FrameReport {
  const { sessionId, attempt } = entry.session
  const open: Promise<unknown>[] = []
  let isCaptured = false
  let failures = 0

  /** null = acknowledged, else why not. */
  async function send(body: CaptureBody): Promise<string | null> {
    try {
      const ack = await services.sender.send(body)
      if (ack.kind === 'frame-acknowledged') return null
      services.log.warn(EVENTS.frameRefuse, { sessionId, kind: body.kind, reason: ack.reason })
      return ack.reason
    } catch (cause) {
      services.log.warn(EVENTS.frameLose, { sessionId, kind: body.kind, reason: errorData(cause).code })
      return 'unreachable'
    }
  }

  return {
    started() {
      services.sender.announce({ sessionId, sequence: call.sequence, attempt, startedAtMs: call.startedAtMs })
    },
    async captured(record) {
      const sending = send({ kind: 'completion-captured', record })
      open.push(sending)
      const refused = await sending
      if (refused === null) {
        isCaptured = true
        entry.calls += 1
        entry.promptTokens += record.promptTokens
        entry.sampledTokens += record.completionTokens
        return null
      }
      return refused === 'unknown-session' || refused === 'sealed'
        ? { status: 403, message: 'the session has ended', code: 'inactive_session_credential' }
        : { status: 503, message: 'the answer could not be recorded', headers: { 'retry-after': '2' } }
    },
    get isCaptured() {
      return isCaptured
    },
    failed(status, error, abortedTokens, where) {
      if (isCaptured) return
      const level = status >= 500 ? 'warn' : 'debug'
      services.log[level](EVENTS.callFail, { sessionId, sequence: call.sequence, status, ...where })
      entry.aborted += status === 499 ? 1 : 0
      const failed = {
        sessionId,
        sequence: call.sequence,
        attempt,
        ordinal: failures,
        status,
        error: error.slice(0, MAX_ERROR_CHARACTERS),
        abortedTokens,
        startedAtMs: call.startedAtMs,
        finishedAtMs: services.clock.now(),
      }
      failures += 1
      open.push(send({ kind: 'call-failed', failed }))
    },
    delivered(completionId, isDelivered) {
      const tell = async () => {
        const delivered: Delivered = (await isDelivered) ? 'yes' : 'no'
        await send({ kind: 'delivery-known', sessionId, completionId, delivered })
      }
      open.push(tell())
    },
    async settled() {
      await Promise.all(open)
    },
  }
}

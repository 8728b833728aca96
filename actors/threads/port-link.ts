// Capture frames from proxy-k to merge-k over their own MessagePort, with a credit window: so many records and bytes in flight for
// the port, so many records for one session, so that one session stalls no other. MessagePort has no back-pressure of its own: a
// sender without credit waits. A frame that was posted is settled once: acknowledged, refused, or ACTOR_DEAD when the port closes.

import type { MessagePort } from 'node:worker_threads'
import { type ErrorCode, type ErrorData, RolloutError } from '../../src/domain/errors.js'
import { failpoint } from '../../src/observability/failpoints.js'
import { decode, encode } from '../../src/wire/codec.js'
import {
  type AckFrame,
  type CallStartedFrame,
  type CaptureFrame,
  type IntakeFrame,
  parseAckFrame,
  parseCaptureFrame,
  sessionOf,
} from '../../src/wire/frames.js'

/** A frame before it has a number. */
export type CaptureBody =
  Exclude<CaptureFrame, CallStartedFrame> extends infer F
    ? F extends CaptureFrame
      ? Omit<F, 'v' | 'frameId'>
      : never
    : never

export type CallStarted = Omit<CallStartedFrame, 'v' | 'kind' | 'frameId'>

export interface CreditLimits {
  /** Frames in flight over the port. */
  readonly creditRecords: number
  /** Bytes in flight over the port. A larger frame goes alone. */
  readonly creditBytes: number
  /** Frames in flight for one session. */
  readonly sessionCredit: number
}

export interface CaptureSender {
  /** Posts at once, without credit or acknowledgement. Nothing when the link is closed: the call's own frame will tell. */
  announce(started: CallStarted): void
  /**
   * Sends once there is credit, in order per session; resolves with the acknowledgement or the refusal.
   * Rejects with the reason of `signal` while still waiting for credit (nothing was sent then), and with ACTOR_DEAD when the port
   * closes first. An abort after sending changes nothing.
   */
  send(body: CaptureBody, signal?: AbortSignal): Promise<AckFrame>
  /** Why no record can be stored: no call should be begun. null = it can. */
  readonly intake: ErrorCode | null
  /** Frames that wait for credit or for their acknowledgement. */
  readonly unacknowledged: number
  /** Answers that could not be understood. */
  readonly malformed: number
  /** Settles all that waits with ACTOR_DEAD. Idempotent. */
  close(): void
}

interface Waiting {
  readonly frameId: number
  readonly sessionId: string
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly isRecord: boolean
  readonly resolve: (ack: AckFrame) => void
  readonly reject: (cause: unknown) => void
}

export function captureSender(port: MessagePort, limits: CreditLimits): CaptureSender {
  const waiting: Waiting[] = []
  const inFlight = new Map<number, Omit<Waiting, 'bytes'> & { readonly size: number }>()
  const perSession = new Map<string, number>()
  let bytesInFlight = 0
  let nextFrameId = 0
  let malformed = 0
  let closed = false
  let intake: ErrorCode | null = null

  /** Posts what there is credit for. A frame that the port has no room for keeps its place; a full session is passed over. */
  function pump(): void {
    for (let index = 0; index < waiting.length; ) {
      const next = waiting[index]
      if (next === undefined) return
      const size = next.bytes.byteLength
      const isPortFull =
        inFlight.size >= limits.creditRecords || (bytesInFlight > 0 && bytesInFlight + size > limits.creditBytes)
      if (isPortFull) return
      const ofSession = perSession.get(next.sessionId) ?? 0
      if (ofSession >= limits.sessionCredit) {
        index += 1
        continue
      }
      waiting.splice(index, 1)
      const { frameId, sessionId, bytes, isRecord, resolve, reject } = next
      inFlight.set(frameId, { frameId, sessionId, isRecord, resolve, reject, size })
      perSession.set(sessionId, ofSession + 1)
      bytesInFlight += size
      port.postMessage(bytes, [bytes.buffer])
      if (isRecord) failpoint('proxy.frame-posted')
    }
  }

  function settle(ack: AckFrame | IntakeFrame): void {
    if (ack.kind === 'intake-set') {
      intake = ack.code
      return
    }
    const frame = inFlight.get(ack.frameId)
    if (frame === undefined) {
      malformed += 1
      return
    }
    inFlight.delete(ack.frameId)
    const left = (perSession.get(frame.sessionId) ?? 1) - 1
    if (left === 0) perSession.delete(frame.sessionId)
    else perSession.set(frame.sessionId, left)
    bytesInFlight -= frame.size
    if (frame.isRecord) failpoint('proxy.ack-received')
    frame.resolve(ack)
    pump()
  }

  function close(): void {
    if (closed) return
    closed = true
    const dead = new RolloutError('ACTOR_DEAD', 'the merge thread has ended before it acknowledged the capture')
    for (const frame of [...inFlight.values(), ...waiting.splice(0)]) frame.reject(dead)
    inFlight.clear()
    port.close()
  }

  port.on('message', (data: unknown) => {
    try {
      settle(parseAckFrame(data instanceof Uint8Array ? decode(data) : data))
    } catch {
      malformed += 1
    }
  })
  port.on('close', close)

  return {
    announce(started) {
      if (closed) return
      const frame: CallStartedFrame = { v: 1, kind: 'call-started', frameId: nextFrameId, ...started }
      nextFrameId += 1
      const bytes = encode(frame)
      port.postMessage(bytes, [bytes.buffer])
    },
    send(body, signal) {
      if (closed) return Promise.reject(new RolloutError('ACTOR_DEAD', 'the link to the merge thread is closed'))
      if (signal?.aborted) return Promise.reject(signal.reason)
      const frame = { v: 1, frameId: nextFrameId, ...body } as CaptureFrame
      nextFrameId += 1
      const sessionId = sessionOf(frame)
      return new Promise<AckFrame>((resolve, reject) => {
        const entry: Waiting = {
          frameId: frame.frameId,
          sessionId,
          bytes: encode(frame),
          isRecord: frame.kind === 'completion-captured',
          resolve(ack) {
            signal?.removeEventListener('abort', onAbort)
            resolve(ack)
          },
          reject,
        }
        function onAbort(): void {
          const index = waiting.indexOf(entry)
          if (index === -1) return
          waiting.splice(index, 1)
          reject(signal?.reason)
        }
        signal?.addEventListener('abort', onAbort, { once: true })
        if (entry.isRecord) failpoint('proxy.record-framed')
        waiting.push(entry)
        pump()
      })
    },
    get intake() {
      return intake
    },
    get unacknowledged() {
      return waiting.length + inFlight.size
    },
    get malformed() {
      return malformed
    },
    close,
  }
}

/** A sender over ports that come and go: each `attach` ends the link before, whose waiting frames are settled with ACTOR_DEAD. */
export interface ReplaceableSender extends CaptureSender {
  attach(port: MessagePort): void
}

export function replaceableSender(limits: CreditLimits): ReplaceableSender {
  let current: CaptureSender | null = null
  return {
    attach(port) {
      current?.close()
      current = captureSender(port, limits)
    },
    announce: started => current?.announce(started),
    send(body, signal) {
      if (current !== null) return current.send(body, signal)
      return Promise.reject(new RolloutError('ACTOR_DEAD', 'there is no link to a merge thread'))
    },
    get intake() {
      return current?.intake ?? null
    },
    get unacknowledged() {
      return current?.unacknowledged ?? 0
    },
    get malformed() {
      return current?.malformed ?? 0
    },
    close: () => current?.close(),
  }
}

export interface CaptureReceiver {
  acknowledge(frameId: number): void
  refuse(frameId: number, reason: 'unknown-session' | 'sealed'): void
  tellIntake(error: ErrorData | null): void
  close(): void
}

/**
 * The other end. `onFrame` gets checked frames; whoever owns the ledger answers each with `acknowledge` or `refuse`.
 * What cannot be decoded goes to `onMalformed` and is refused by its number where that can be told.
 */
export function captureReceiver(
  port: MessagePort,
  on: {
    readonly frame: (frame: CaptureFrame) => void
    readonly malformed: (cause: RolloutError) => void
    /** The proxy's end is gone: frames it had not sent are lost with it, those it had sent are settled by nobody. */
    readonly closed: () => void
  },
): CaptureReceiver {
  const answer = (frame: AckFrame | IntakeFrame): void => port.postMessage(frame)
  port.on('message', (data: unknown) => {
    let frame: CaptureFrame
    try {
      if (!(data instanceof Uint8Array)) {
        throw new RolloutError('WIRE_MALFORMED', 'malformed frame: no bytes', { details: { frameId: null } })
      }
      frame = parseCaptureFrame(decode(data))
    } catch (cause) {
      if (!(cause instanceof RolloutError)) throw cause
      on.malformed(cause)
      const frameId = cause.details['frameId']
      if (typeof frameId === 'number') answer({ v: 1, kind: 'frame-refused', frameId, reason: 'malformed' })
      return
    }
    if (frame.kind === 'completion-captured') failpoint('merge.frame-decoded')
    on.frame(frame)
  })
  port.on('close', on.closed)
  return {
    acknowledge: frameId => answer({ v: 1, kind: 'frame-acknowledged', frameId }),
    refuse: (frameId, reason) => answer({ v: 1, kind: 'frame-refused', frameId, reason }),
    tellIntake: error => answer({ v: 1, kind: 'intake-set', frameId: 0, code: error?.code ?? null }),
    close: () => port.close(),
  }
}

// A streamed answer to a harness: frames of the dialect's encoder, live until the first that a harness can act on. That one and all
// after it are held until the record of the call is acknowledged (trajectory.md, section 1). Keep-alives go out while it waits.

import type { Dialect, RouteMatch, SseFrame, StreamEncoder } from '../../src/dialects/base.js'
import { framing } from '../../src/dialects/framing.js'
import type { Clock } from '../../src/domain/clock.js'
import type { CanonicalEvent } from '../../src/domain/conversation.js'
import type { AnswerWriter } from '../../src/http/answer.js'

/** A third of the shortest silence that a harness was seen to bear (30 s is common in SDKs). */
const KEEP_ALIVE_MS = 10_000

export interface HeldStream {
  /** Writes the events' frames at once; resolves when the client takes more. */
  push(events: readonly CanonicalEvent[]): Promise<void>
  /** The record is safe: writes what was held; what is pushed from here on goes straight out. */
  release(): Promise<void>
  end(): void
  /** The dialect's in-stream error, in place of all that is still held. */
  fail(status: number, message: string, code?: string): Promise<void>
  /** Sends keep-alives from time to time, until `signal`. A dialect that tolerates none gets none. */
  keepAlive(clock: Clock, signal: AbortSignal): Promise<void>
}

export function heldStream(
  answer: AnswerWriter,
  dialect: Dialect,
  route: RouteMatch,
  encoder: StreamEncoder,
): HeldStream {
  const held: SseFrame[] = []
  const frames = framing(route)
  let isHolding = false
  let isReleased = false
  let isEnded = false
  let quiet = true

  /** All in one piece: a write for each frame costs more than the frames. */
  const write = async (ready: readonly SseFrame[]): Promise<void> => {
    if (isEnded || ready.length === 0) return
    start()
    quiet = false
    await answer.write(ready.map(frame => frames.write(frame)).join(''))
  }

  function start(): void {
    if (answer.started) return
    const headers = {
      'content-type': frames.contentType,
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    }
    answer.start(200, headers, false)
  }

  function end(): void {
    if (isEnded) return
    start()
    isEnded = true
    answer.end(frames.end())
  }

  return {
    async push(events) {
      const ready: SseFrame[] = []
      for (const event of events) {
        for (const { frame, hold } of encoder.push(event)) {
          isHolding ||= hold
          if (isHolding && !isReleased) held.push(frame)
          else ready.push(frame)
        }
      }
      await write(ready)
    },
    async release() {
      isReleased = true
      await write(held.splice(0))
    },
    end,
    async fail(status, message, code) {
      held.length = 0
      await write(encoder.fail(status, message, code))
      end()
    },
    async keepAlive(clock, signal) {
      if (dialect.keepAlive === null || !frames.takesKeepAlive) return
      while (!signal.aborted) {
        quiet = true
        try {
          await clock.sleep(KEEP_ALIVE_MS, signal)
        } catch {
          return
        }
        if (signal.aborted || isEnded || answer.closed) return
        if (!quiet) continue
        start()
        await answer.write(dialect.keepAlive)
      }
    },
  }
}

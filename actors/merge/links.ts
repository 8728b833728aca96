// The ends of capture links that a merge thread holds: one per life of its proxy. Frames that come while the actor restarts wait
// here; they are bounded by the senders' credit and calls in flight.

import type { MessagePort } from 'node:worker_threads'
import { Observable } from 'rxjs'
import type { ErrorData } from '../../src/domain/errors.js'
import { EVENTS } from '../../src/observability/events.js'
import type { CaptureFrame } from '../../src/wire/frames.js'
import type { Logger } from '../system/behavior.js'
import { type CaptureReceiver, captureReceiver } from '../threads/port-link.js'

export interface ReceivedFrame {
  readonly link: number
  readonly frame: CaptureFrame
}

/** The proxy's end is gone: what it had not told will be told by nobody. */
export interface EndedLink {
  readonly link: number
  readonly frame: null
}

export type LinkEvent = ReceivedFrame | EndedLink

export interface CaptureLinks {
  /** A link of a proxy. Its frames are numbered by it, since each proxy counts its frames from 0. */
  add(port: MessagePort): void
  /** Frames and ends of all links, also of later ones. One subscriber at a time. */
  readonly events$: Observable<LinkEvent>
  /** No-ops when the link is gone: nobody waits for the answer then. */
  acknowledge(link: number, frameId: number): void
  refuse(link: number, frameId: number, reason: 'unknown-session' | 'sealed'): void
  /** Why records cannot be stored, null when they can again: to each proxy that is linked or will be. */
  tellIntake(error: ErrorData | null): void
  close(): void
}

export function captureLinks(log: Logger): CaptureLinks {
  const receivers = new Map<number, CaptureReceiver>()
  const waiting: LinkEvent[] = []
  let subscriber: ((event: LinkEvent) => void) | null = null
  let nextLink = 0
  let intake: ErrorData | null = null
  const publish = (event: LinkEvent) => {
    if (subscriber === null) waiting.push(event)
    else subscriber(event)
  }
  return {
    add(port) {
      const link = nextLink
      nextLink += 1
      const receiver = captureReceiver(port, {
        frame: frame => publish({ link, frame }),
        malformed: cause => log.warn(EVENTS.frameMalformed, { link, message: cause.message }),
        closed() {
          if (!receivers.delete(link)) return
          log.info(EVENTS.captureLinkEnd, { link })
          publish({ link, frame: null })
        },
      })
      receivers.set(link, receiver)
      if (intake !== null) receiver.tellIntake(intake)
    },
    events$: new Observable(observer => {
      subscriber = event => observer.next(event)
      for (const event of waiting.splice(0)) observer.next(event)
      return () => {
        subscriber = null
      }
    }),
    acknowledge: (link, frameId) => receivers.get(link)?.acknowledge(frameId),
    refuse: (link, frameId, reason) => receivers.get(link)?.refuse(frameId, reason),
    tellIntake(error) {
      intake = error
      for (const receiver of receivers.values()) receiver.tellIntake(error)
    },
    close() {
      for (const receiver of receivers.values()) receiver.close()
      receivers.clear()
    },
  }
}

// A probe in the place of a merge actor: it is told what sessions say to it and, decoded and checked, each frame that comes by the ports
// it is given. It acknowledges nothing by itself: whoever holds it decides, and sees what waits meanwhile.

import type { MessagePort } from 'node:worker_threads'
import type { CaptureFrame } from '../../src/wire/frames.js'
import { captureLinks } from '../merge/links.js'
import type { MergeMessage } from '../protocol/merge.js'
import { type Probe, spawnProbe } from '../system/probe.js'
import type { ActorSystem } from '../system/system.js'

/** `link` counts the ports of the probe from 0. */
export interface FrameReceived {
  readonly type: 'frame-received'
  readonly link: number
  readonly frame: CaptureFrame
}

export type MergeProbeMessage =
  | MergeMessage
  | FrameReceived
  /** The other end of the port is gone: its thread has died or stopped. */
  | { readonly type: 'link-ended'; readonly link: number }

export interface MergeProbe extends Probe<MergeProbeMessage> {
  /** A proxy's capture port (`proxyAlone`). The probe's from here on; it closes with the proxy's thread. */
  attach(port: MessagePort): void
  /** The record is safe: the proxy lets its answer go. `call-started` wants no answer. */
  acknowledge(received: FrameReceived): void
  /** The proxy must not let its answer go. */
  refuse(received: FrameReceived, reason: 'unknown-session' | 'sealed'): void
}

export function spawnMergeProbe(system: ActorSystem, name: string): MergeProbe {
  const probe = spawnProbe<MergeProbeMessage>(system, name)
  const links = captureLinks(system.log)
  links.events$.subscribe(({ link, frame }) =>
    probe.ref.tell(frame === null ? { type: 'link-ended', link } : { type: 'frame-received', link, frame }),
  )
  return {
    ...probe,
    attach: port => links.add(port),
    acknowledge: ({ link, frame }) => links.acknowledge(link, frame.frameId),
    refuse: ({ link, frame }, reason) => links.refuse(link, frame.frameId, reason),
  }
}

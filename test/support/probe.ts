// Probes for tests: the library's own, plus the assertion that nothing more was told.

import { onNextTurn } from '../../actors/system/clock.js'
import type { Probe } from '../../actors/system/probe.js'
import type { AnyMessage } from '../../actors/system/ref.js'

export { type Probe, spawnProbe } from '../../actors/system/probe.js'

/** Types of everything the probe was told, after what is ready now has happened. */
export async function toldTypes<M extends AnyMessage>(probe: Probe<M>): Promise<readonly string[]> {
  await new Promise<void>(onNextTurn)
  return probe.messages().map(message => message.type)
}

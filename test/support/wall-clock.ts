// A clock of real time, for tests that run real processes: it bounds waits, nothing waits for it to pass.
import { setTimeout as wait } from 'node:timers/promises'
import type { Clock } from '../../src/domain/clock.js'

export const wallClock: Clock = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    await wait(ms, undefined, signal ? { signal } : {})
  },
}

// The real kernel in one thread with a clock that is turned by hand; dead letters and log lines are recorded. Stopped at the end
// of the test, and a stop that misses its deadline fails the test.

import type { ActorClock, Logger } from '../../actors/system/behavior.js'
import type { DeadLetter } from '../../actors/system/dead-letters.js'
import { type Probe, spawnProbe } from '../../actors/system/probe.js'
import type { AnyMessage } from '../../actors/system/ref.js'
import { type ActorSystem, createActorSystem } from '../../actors/system/system.js'
import { type VirtualClock, virtualClock } from '../../actors/system/virtual-clock.js'
import type { ErrorData } from '../../src/domain/errors.js'

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly event: string
  readonly fields: Readonly<Record<string, unknown>>
}

export interface RecordingLogger extends Logger {
  readonly lines: readonly LogLine[]
}

export function recordingLogger(): RecordingLogger {
  const lines: LogLine[] = []
  const at =
    (level: LogLine['level']) =>
    (event: string, fields: LogLine['fields'] = {}) => {
      lines.push({ level, event, fields })
    }
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

export interface TestSystem {
  readonly system: ActorSystem
  readonly clock: VirtualClock
  readonly log: RecordingLogger
  readonly deadLetters: readonly DeadLetter[]
  /** What reached the guardian. */
  readonly failures: readonly ErrorData[]
  probe<M extends AnyMessage>(name?: string): Probe<M>
}

/** What of a tap test is used. */
interface Teardown {
  teardown(run: () => unknown): unknown
}

/** Under a virtual clock a stop's deadlines must be turned too: the teardown does it. */
export function createTestSystem(t: Teardown, name = 'test'): TestSystem {
  const clock = virtualClock()
  const { system, ...rest } = recorded(name, clock)
  t.teardown(async () => {
    const stopped = system.stop(60_000)
    await clock.advance(60_000)
    await stopped
  })
  return { system, clock, ...rest }
}

/** The same on real time, for tests of what threads and sockets add. */
export function createRealTimeSystem(t: Teardown, clock: ActorClock, name = 'test'): Omit<TestSystem, 'clock'> {
  const made = recorded(name, clock)
  t.teardown(() => made.system.stop(5_000))
  return made
}

function recorded(name: string, clock: ActorClock): Omit<TestSystem, 'clock'> {
  const log = recordingLogger()
  const failures: ErrorData[] = []
  const deadLetters: DeadLetter[] = []
  const system = createActorSystem({ name, clock, log, onFailure: error => failures.push(error) })
  system.deadLetters$.subscribe(letter => deadLetters.push(letter))
  let probes = 0
  return {
    system,
    log,
    deadLetters,
    failures,
    probe: <M extends AnyMessage>(probeName = `probe-${++probes}`) => spawnProbe<M>(system, probeName),
  }
}

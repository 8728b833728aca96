// The public face for use as a library: one actor system in this thread, further ones in threads of their own or inline beside it. Spawn
// any actor by itself, put a probe in place of those it talks to, kill a thread and see what happens.

import type { Plan } from '../src/config/plan.js'
import type { ErrorData } from '../src/domain/errors.js'
import { RolloutError } from '../src/domain/errors.js'
import { createLogger, type LogLevel } from '../src/observability/logger.js'
import type { ThreadHostMessage, ThreadsStarted } from './protocol/threads.js'
import type { ActorClock, Logger } from './system/behavior.js'
import { realClock } from './system/clock.js'
import { type Probe, spawnProbe } from './system/probe.js'
import type { ActorRef, AnyMessage } from './system/ref.js'
import { type ActorSystem, createActorSystem, type StopReport } from './system/system.js'
import { type ThreadGroup, threadHost } from './threads/host.js'

export type { ActorClock, ActorContext, ActorProps, Behavior, Logger } from './system/behavior.js'
export { realClock } from './system/clock.js'
export type { Interpreter, Machine, Step } from './system/machine.js'
export type { Probe } from './system/probe.js'
export type { ActorRef, Address, AnyMessage, Question, ReplyTo } from './system/ref.js'
export { runMachine } from './system/run-machine.js'
export type { ActorSystem, StopReport } from './system/system.js'
export { transferTypedArrays } from './system/transfer.js'
export { type VirtualClock, virtualClock } from './system/virtual-clock.js'
export { defineThread, type ThreadContext } from './threads/entry.js'
export type { HostedThread, ThreadGroup } from './threads/host.js'

export interface CreateSystemOptions {
  /** Compiled config; of it this takes the deadline of a stop (`limits.drainMs`). */
  readonly plan: Pick<Plan, 'limits'>
  /** Default: real time. */
  readonly clock?: ActorClock
  /** `inline`: what would be threads run in this one, linked by ports and encoded as real ones are. */
  readonly threads: 'real' | 'inline'
  /** Default: JSON lines on stderr from `logLevel` up. */
  readonly log?: Logger
  /** Also of the threads' own loggers. Default `info`. */
  readonly logLevel?: LogLevel
  /** An actor at the top failed more often than its supervision allows; the owner should stop the system. */
  readonly onFailure?: (error: ErrorData) => void
}

export interface StartedThreads {
  readonly host: ActorRef<ThreadHostMessage>
  /** By name of the thread: what its `start` returned. */
  readonly replies: ThreadsStarted['replies']
}

export interface System extends Omit<ActorSystem, 'stop'> {
  /** A ref that records what it is told: `probe.expectMessage('session-ended', 1_000)`. Default name `probe-1`, `probe-2` ... */
  probe<M extends AnyMessage>(name?: string): Probe<M>
  /** Starts a group of threads under one host and waits for all; rejects with ACTOR_ASK_TIMEOUT or, when the host gives up, ACTOR_DEAD. */
  startThreads(name: string, group: Omit<ThreadGroup, 'system' | 'mode' | 'logLevel'>): Promise<StartedThreads>
  /** Ends that thread at once, like a crash; its host restarts it. Throws ACTOR_DEAD when no host has a thread of that name. */
  kill(thread: string): void
  /** Stops every actor and thread, in reverse order of start. Default deadline: the plan's `limits.drainMs`. */
  stop(deadlineMs?: number): Promise<StopReport>
}

export function createSystem({
  plan,
  clock = realClock(),
  threads,
  log,
  logLevel = 'info',
  onFailure,
}: CreateSystemOptions): System {
  const logger = log ?? createLogger({ level: logLevel, fields: { system: 'main' } })
  const system = createActorSystem({ name: 'main', clock, log: logger, ...(onFailure && { onFailure }) })
  const hosts = new Map<string, ActorRef<ThreadHostMessage>>()
  let probes = 0

  return {
    ...system,
    probe: <M extends AnyMessage>(name?: string) => {
      probes += 1
      return spawnProbe<M>(system, name ?? `probe-${probes}`)
    },
    async startThreads(name, group) {
      const host = system.spawn(threadHost({ ...group, system, mode: threads, logLevel }), name)
      for (const thread of group.threads) hosts.set(thread.name, host)
      system.watch(host, () => {
        for (const thread of group.threads) if (hosts.get(thread.name) === host) hosts.delete(thread.name)
      })
      const startMs = group.threads.reduce((sum, thread) => sum + thread.startMs, group.periodMs)
      const { replies } = await system.ask(host, { type: 'threads-started-requested' }, startMs)
      return { host, replies }
    },
    kill(thread) {
      const host = hosts.get(thread)
      if (host === undefined) throw new RolloutError('ACTOR_DEAD', `no thread is called ${thread}`)
      host.tell({ type: 'kill-thread', thread })
    },
    stop: (deadlineMs = plan.limits.drainMs) => system.stop(deadlineMs),
  }
}

// The public face for use as a library: one actor system in this thread, further ones in threads of their own or inline beside it. Spawn
// any actor by itself, put a probe in place of those it talks to, kill a thread and see what happens. The whole service is
// `startService` of `sextant/service`.

import { type LoadOptions, loadPlan } from '../src/config/load.js'
import type { Plan } from '../src/config/plan.js'
import type { ErrorData } from '../src/domain/errors.js'
import { RolloutError } from '../src/domain/errors.js'
import { createLogger, type LogLevel } from '../src/observability/logger.js'
import { upstreams } from '../src/upstreams/registry.js'
import type { ThreadHostMessage, ThreadsStarted } from './protocol/threads.js'
import type { ActorClock, Logger } from './system/behavior.js'
import { realClock } from './system/clock.js'
import { type Probe, spawnProbe } from './system/probe.js'
import type { ActorRef, AnyMessage } from './system/ref.js'
import { type ActorSystem, createActorSystem, type StopReport } from './system/system.js'
import { type ThreadGroup, threadHost } from './threads/host.js'
import { type MergeProbe, spawnMergeProbe } from './threads/merge-probe.js'

export type { MergeMessage } from './protocol/merge.js'
export type { ProxyMessage } from './protocol/proxy.js'
export type { ReaperMessage } from './protocol/reaper.js'
export type { SessionMessage, SessionReport } from './protocol/session.js'
export type { StagesMessage } from './protocol/stages.js'
export { sessionProps } from './session/actor.js'
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
export type { FrameReceived, MergeProbe, MergeProbeMessage } from './threads/merge-probe.js'
export { pairThreads, proxyAlone } from './threads/pair.js'
export { mergeAddress, proxyAddress } from './threads/pair-names.js'

/**
 * The plan of a config file (null = defaults), `overrides` laid over it in the file's own words. Throws CONFIG_INVALID, naming each
 * problem with its path.
 */
export const planOf = (path: string | null, overrides: LoadOptions['overrides'] = {}): Plan =>
  loadPlan({ path, profiles: Object.keys(upstreams), overrides })

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
  /** The same in the place of a merge actor: also told the frames of the proxies whose ports it is given. */
  mergeProbe(name?: string): MergeProbe
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
  const probeName = (name: string | undefined): string => {
    probes += 1
    return name ?? `probe-${probes}`
  }

  return {
    ...system,
    probe: <M extends AnyMessage>(name?: string) => spawnProbe<M>(system, probeName(name)),
    mergeProbe: name => spawnMergeProbe(system, probeName(name)),
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

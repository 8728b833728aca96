// The actor in main that keeps a group of threads alive, e.g. pair-k: merge-k, then proxy-k. Starts them in order, links their actor
// systems to main's, gives each pair of neighbours a fresh port, restarts what dies, drains in reverse order on stop.
// What to do when is decided in host-machine.ts; here it is done.

import { MessageChannel, type MessagePort, type ResourceLimits } from 'node:worker_threads'
import { defer, EMPTY, ignoreElements, map, Observable } from 'rxjs'
import { type ErrorData, errorData } from '../../src/domain/errors.js'
import { unreachable } from '../../src/domain/unreachable.js'
import { EVENTS } from '../../src/observability/events.js'
import type { LogLevel } from '../../src/observability/logger.js'
import type { ThreadDescription, ThreadHostMessage } from '../protocol/threads.js'
import { addressKey } from '../system/address.js'
import type { ActorContext, ActorProps, Behavior } from '../system/behavior.js'
import type { Interpreter } from '../system/machine.js'
import type { ActorSystem } from '../system/system.js'
import type { NamedPort, StartReply } from './control.js'
import { type HostEffect, type HostMessage, type HostState, hostMachine, type ThreadState } from './host-machine.js'
import { type RunningThread, startThread } from './spawn.js'

const ATTACH_MS = 5_000
const DESCRIBE_MS = 1_000
/** Over the drains, for the threads to end. */
const END_MS = 2_000

export interface HostedThread {
  /** Also the name of its actor system. */
  readonly name: string
  /** Compiled module that exports `thread` (entry.ts). */
  readonly entry: URL
  /** What its `start` is given. `lastReply`: what the last successful start returned (the port it had), null at first. */
  readonly data: (lastReply: StartReply | null) => unknown
  /** Deadline of its `start`, milliseconds. */
  readonly startMs: number
  /** Deadline of its drain, milliseconds. */
  readonly drainMs: number
  readonly env?: Readonly<Record<string, string>>
  readonly resourceLimits?: ResourceLimits
  /** See `ThreadEnvironment` in spawn.ts. */
  readonly endsBetweenTurns?: boolean
}

export interface ThreadGroup {
  /** In order of start. */
  readonly threads: readonly HostedThread[]
  /**
   * Direct ports: `name` is what both ends pass to `onPort`. Made anew whenever one of the two starts. An end may be `main`, the
   * system of the host itself, which gets its ports by the group's `onPort`.
   */
  readonly channels: readonly { readonly name: string; readonly between: readonly [string, string] }[]
  readonly strategy: 'one-for-one' | 'rest-for-one'
  /** Deaths allowed per `periodMs`; beyond it the host crashes, which escalates. */
  readonly intensity: number
  readonly periodMs: number
  readonly mode: 'real' | 'inline'
  readonly logLevel: LogLevel
  /** Main's: the threads are linked to it. */
  readonly system: ActorSystem
  /** Main's end of the channel of that name; the former one closes with the thread that had its other end. Must not throw. */
  readonly onPort?: (name: string, port: MessagePort) => void
  /** All threads are up again after deaths; `threads`: who was started anew, in order. Must not throw. */
  readonly onRestarted?: (threads: readonly string[], error: ErrorData) => void
}

/** `system.spawn(threadHost(group), 'pair-1')`, then ask `threads-started-requested`. */
export function threadHost(group: ThreadGroup): ActorProps<ThreadHostMessage, HostMessage, HostState, HostEffect> {
  const drainMs = group.threads.reduce((sum, thread) => sum + thread.drainMs, 0)
  return {
    behavior: () => hostBehavior(group),
    mailbox: { capacity: 256, overflow: 'refuse' },
    // A host that gives up has used its restarts already: its failure goes up at once.
    supervision: { restart: 'permanent', strategy: 'one-for-one', intensity: 0, periodMs: group.periodMs },
    shutdownMs: drainMs + END_MS,
  }
}

function hostBehavior(group: ThreadGroup): Behavior<HostState, HostMessage, HostEffect> {
  const threads = liveThreads(group)
  return {
    machine: hostMachine({ ...group, threads: group.threads.map(({ name }) => name) }),
    interpret: context => interpreter(group, threads, context),
    onEffectError: (_effect, cause) => ({ type: 'effect-failed', error: errorData(cause) }),
    async signal(signal, _state, context) {
      if (signal.type === 'pre-restart') await threads.killAll()
      else await threads.drainAll(context)
    },
    summarize: state => ({
      threads: Object.fromEntries(state.threads.map(({ name, phase, life }) => [name, { phase, life }])),
    }),
  }
}

function interpreter(
  group: ThreadGroup,
  threads: LiveThreads,
  context: ActorContext<HostMessage>,
): Interpreter<HostMessage, HostEffect> {
  return effect => {
    switch (effect.type) {
      case 'start-thread':
        return threads.start(effect, context)
      case 'end-thread':
        return defer(() => threads.kill(effect.index)).pipe(ignoreElements())
      case 'arm-back-off':
        return context.clock
          .timer$(effect.ms)
          .pipe(map(() => ({ type: 'back-off-over', round: effect.round }) as const))
      case 'announce-restart':
        return defer(() => {
          context.log.warn(EVENTS.threadRestart, { threads: effect.threads, error: effect.error })
          group.onRestarted?.(effect.threads, effect.error)
          return EMPTY
        })
      case 'tell-started':
        return defer(() => {
          effect.to.tell({ type: 'threads-started', replies: effect.replies })
          return EMPTY
        })
      case 'describe':
        return defer(async () => {
          const described = await Promise.all(effect.threads.map((thread, index) => threads.describe(thread, index)))
          effect.to.tell({ type: 'threads-description', threads: described })
        }).pipe(ignoreElements())
      default:
        return unreachable(effect)
    }
  }
}

interface LiveThreads {
  start(
    effect: Extract<HostEffect, { type: 'start-thread' }>,
    context: ActorContext<HostMessage>,
  ): Observable<HostMessage>
  kill(index: number): Promise<void>
  killAll(): Promise<void>
  drainAll(context: ActorContext<HostMessage>): Promise<void>
  describe(thread: ThreadState, index: number): Promise<ThreadDescription>
}

interface Live {
  readonly thread: RunningThread
  isUp: boolean
}

/** The threads themselves, by index. A start waits until the former thread of its place is gone: it may want the same TCP port. */
function liveThreads({ threads, channels, system, mode, logLevel, onPort }: ThreadGroup): LiveThreads {
  const live = new Map<number, Live>()
  const wanted = new Map<number, number>()
  const exits = new Map<number, Promise<unknown>>()
  let isOver = false

  /** Ports to the neighbours that are up; those that start later make their own. */
  const portsFor = async (name: string, context: ActorContext<HostMessage>): Promise<readonly NamedPort[]> => {
    const ports: NamedPort[] = []
    for (const channel of channels.filter(({ between }) => between.includes(name))) {
      const other = channel.between.find(end => end !== name)
      if (other === system.name) {
        const { port1, port2 } = new MessageChannel()
        ports.push({ name: channel.name, port: port1 })
        onPort?.(channel.name, port2)
        continue
      }
      const neighbour = live.get(threads.findIndex(thread => thread.name === other))
      if (!neighbour?.isUp) continue
      const { port1, port2 } = new MessageChannel()
      try {
        await neighbour.thread.control.attach({ name: channel.name, port: port2 }, ATTACH_MS)
        ports.push({ name: channel.name, port: port1 })
      } catch (cause) {
        // The neighbour died just now: when it starts again it makes this channel.
        port1.close()
        context.log.warn(EVENTS.threadAttachFail, { thread: other, channel: channel.name, cause })
      }
    }
    return ports
  }

  const kill = async (index: number): Promise<void> => {
    wanted.delete(index)
    await live.get(index)?.thread.control.kill()
  }
  const reversed = () => [...live.keys()].sort((a, b) => b - a)

  return {
    kill,
    async killAll() {
      isOver = true
      await Promise.all(reversed().map(kill))
    },
    async drainAll({ log }) {
      isOver = true
      for (const index of reversed()) {
        const one = live.get(index)
        const hosted = threads[index]
        if (one === undefined || hosted === undefined) continue
        try {
          const missed = one.isUp ? await one.thread.control.drain(hosted.drainMs) : []
          if (missed.length > 0) log.error(EVENTS.actorDeadlineMiss, { missed: missed.map(addressKey) })
        } catch (cause) {
          log.error(EVENTS.threadDrainFail, { thread: hosted.name, cause })
        }
        await one.thread.control.kill()
      }
    },
    start({ index, life, lastReply }, context) {
      const hosted = threads[index]
      return new Observable<HostMessage>(subscriber => {
        const gone = (error: ErrorData) => {
          subscriber.next({ type: 'thread-gone', index, life, error, atMs: context.clock.now() })
          subscriber.complete()
        }
        const run = async () => {
          wanted.set(index, life)
          await exits.get(index)
          if (hosted === undefined || isOver || wanted.get(index) !== life) {
            gone({ code: 'ACTOR_DEAD', message: `thread ${hosted?.name} was ended before it started` })
            return
          }
          const thread = startThread({ ...hosted, mode, clock: context.clock, log: system.log, logLevel })
          const link = system.connect({ port: thread.systemPort, peer: hosted.name })
          const one: Live = { thread, isUp: false }
          let startError: ErrorData | null = null
          live.set(index, one)
          const exit = thread.exited.then(({ code, error }) => {
            link.end()
            if (live.get(index) === one) live.delete(index)
            gone(
              error ?? startError ?? { code: 'ACTOR_DEAD', message: `thread ${hosted.name} ended with code ${code}` },
            )
          })
          exits.set(index, exit)
          try {
            const ports = await portsFor(hosted.name, context)
            const reply = await thread.control.start(hosted.data(lastReply), ports, hosted.startMs)
            one.isUp = true
            subscriber.next({ type: 'thread-up', index, life, reply })
          } catch (cause) {
            startError = errorData(cause)
            context.log.error(EVENTS.threadStartFail, { thread: hosted.name, cause })
            await thread.control.kill()
          }
        }
        run().catch(cause => subscriber.error(cause))
      })
    },
    async describe({ name, phase, life, lastError }, index) {
      const control = phase === 'up' ? live.get(index)?.thread.control : undefined
      const [inspection, heap] = await Promise.allSettled([control?.inspect(DESCRIBE_MS), control?.heap(DESCRIBE_MS)])
      return {
        name,
        phase,
        restarts: Math.max(0, life - 1),
        lastError,
        system: (inspection.status === 'fulfilled' && inspection.value) || null,
        heapUsedBytes: (heap.status === 'fulfilled' && heap.value?.usedBytes) || null,
        loopDelay: (heap.status === 'fulfilled' && heap.value?.loopDelay) || null,
      }
    },
  }
}

// What a thread of ours is, as its author writes it, and what runs it. A thread entry is a module `<name>.thread.ts` that does nothing
// when imported and exports one thing:
//
//   export const thread = defineThread<ProxyData, ProxyReply>({ start: async (thread, data) => { ...spawn...; return { port } } })
//
// The same module serves a real worker thread (boot.thread.ts) and `threads: 'inline'`, where it runs beside main with an actor system of
// its own, linked by ports as a real one is.

import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { MessagePort } from 'node:worker_threads'
import { type ErrorData, RolloutError } from '../../src/domain/errors.js'
import { EVENTS } from '../../src/observability/events.js'
import type { ActorClock, Logger } from '../system/behavior.js'
import { type ActorSystem, createActorSystem } from '../system/system.js'
import { exposeControl, type LoopDelay, type NamedPort, type StartReply } from './control.js'

/** What a thread's code is given. */
export interface ThreadContext {
  /** Name of the thread and of its actor system, e.g. `proxy-1`. */
  readonly name: string
  /** Linked to main, and through main to every other thread. */
  readonly system: ActorSystem
  readonly clock: ActorClock
  readonly log: Logger
  /**
   * `callback` gets the port of that name: the one given at the start, and each that replaces it when the thread at the other end was
   * restarted (the former one is closed by then). One callback a name; register in `start`, before its first await or after.
   */
  onPort(name: string, callback: (port: MessagePort) => void): void
}

/** `data` and the reply are plain data: they cross threads. */
export interface ThreadBody<D, R extends StartReply> {
  /** Once per (re)start: spawns actors, opens servers. A rejection is a failed start: the thread ends and its host tries again. */
  start(thread: ThreadContext, data: D): Promise<R>
  /** Before the actors are stopped in reverse order: stop accepting, finish what runs. Default: nothing. */
  drain?(thread: ThreadContext, deadlineMs: number): Promise<void>
}

/** Erased form: what data a thread takes is between its author and whoever starts it. */
export type AnyThreadBody = ThreadBody<unknown, StartReply>

export function defineThread<D, R extends StartReply>(body: ThreadBody<D, R>): AnyThreadBody {
  // `start` is only ever called with the data that the host's spec makes for this entry.
  return body as unknown as AnyThreadBody
}

/** Loads a thread entry. Rejects with INTERNAL_BUG when the module exports no `thread`. */
export async function loadThread(entry: URL): Promise<AnyThreadBody> {
  // A module from outside the type checker's sight: its shape is checked here.
  const { thread } = (await import(entry.href)) as { thread?: Partial<AnyThreadBody> }
  if (typeof thread?.start !== 'function') {
    throw new RolloutError('INTERNAL_BUG', `${entry.href} exports no \`thread\` made by defineThread`)
  }
  return thread as AnyThreadBody
}

export interface RunThreadOptions {
  readonly name: string
  readonly body: AnyThreadBody
  readonly systemPort: MessagePort
  readonly controlPort: MessagePort
  readonly clock: ActorClock
  readonly log: Logger
  /** The thread's actors failed beyond repair: end it. */
  readonly onFailure: (error: ErrorData) => void
}

export interface ThreadRun {
  readonly system: ActorSystem
  /** Closes the ports to other threads: the death of a real thread does so by itself. */
  cut(): void
}

/** Makes the thread's actor system and waits for control calls. */
export function runThread({ name, body, systemPort, controlPort, clock, log, onFailure }: RunThreadOptions): ThreadRun {
  const system = createActorSystem({ name, clock, log, onFailure })
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
  loop.enable()
  system.connect({ port: systemPort, peer: 'main', uplink: true })

  const ports = new Map<string, MessagePort>()
  const callbacks = new Map<string, (port: MessagePort) => void>()
  const attach = ({ name: portName, port }: NamedPort) => {
    ports.get(portName)?.close()
    ports.set(portName, port)
    callbacks.get(portName)?.(port)
  }
  const context: ThreadContext = {
    name,
    system,
    clock,
    log,
    onPort(portName, callback) {
      callbacks.set(portName, callback)
      const port = ports.get(portName)
      if (port !== undefined) callback(port)
    },
  }

  const cut = () => {
    for (const port of ports.values()) port.close()
  }
  exposeControl(controlPort, {
    async start(data, given) {
      for (const port of given) attach(port)
      return body.start(context, data)
    },
    attach,
    async drain(deadlineMs) {
      loop.disable()
      const deadlineAt = clock.now() + deadlineMs
      try {
        await body.drain?.(context, deadlineMs)
      } catch (cause) {
        log.error(EVENTS.threadDrainFail, { system: name, cause })
      }
      const { missed } = await system.stop(Math.max(0, deadlineAt - clock.now()))
      cut()
      return missed
    },
    inspect: () => system.inspect(),
    heap: () => {
      const heap = getHeapStatistics()
      return {
        usedBytes: heap.used_heap_size,
        totalBytes: heap.total_heap_size,
        limitBytes: heap.heap_size_limit,
        externalBytes: heap.external_memory,
        loopDelay: delayOf(loop),
      }
    },
  })
  return { system, cut }
}

/** Each sample is a timer: a hundred a second cost nothing that can be measured. */
const LOOP_RESOLUTION_MS = 10

function delayOf(loop: IntervalHistogram): LoopDelay {
  // The histogram counts nanoseconds between two samples, the timer's own time included; it is empty when asked twice at once.
  const ms = (nanoseconds: number) => (loop.count === 0 ? 0 : Math.max(0, nanoseconds / 1e6 - LOOP_RESOLUTION_MS))
  const delay = { p50Ms: ms(loop.percentile(50)), p99Ms: ms(loop.percentile(99)), maxMs: ms(loop.max) }
  loop.reset()
  return delay
}

// The control plane of a thread: start, attach, drain, inspect, heap, over a port of its own. The only importer of Comlink, which by
// itself leaves a call pending for ever when the thread dies and loses the code of an error: so every call here has a deadline, ends with
// ACTOR_DEAD when the thread dies, and carries errors in an envelope. Not for data: a Comlink round trip costs twice a raw message.

import type { MessagePort } from 'node:worker_threads'
import { expose, type Remote, transfer, wrap } from 'comlink'
import nodeEndpoint from 'comlink/dist/esm/node-adapter.mjs'
import { type ErrorData, errorData, errorFromData, RolloutError } from '../../src/domain/errors.js'
import type { ActorClock } from '../system/behavior.js'
import { after } from '../system/clock.js'
import type { SystemInspection } from '../system/inspect.js'
import type { Address } from '../system/ref.js'

/** What a thread tells once it is up: plain data, e.g. `{ port: 40123 }`. */
export type StartReply = Readonly<Record<string, unknown>>

/** A port to another thread and what it is for. */
export interface NamedPort {
  readonly name: string
  readonly port: MessagePort
}

/** Bytes, of the thread's own JavaScript heap, and how its event loop does. */
export interface HeapFigures {
  readonly usedBytes: number
  readonly totalBytes: number
  readonly limitBytes: number
  readonly externalBytes: number
  readonly loopDelay: LoopDelay
}

/** How late the thread's event loop was since this was last asked, milliseconds. */
export interface LoopDelay {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** What the thread does when asked; errors it throws reach the caller with their code. */
export interface ControlledThread {
  start(data: unknown, ports: readonly NamedPort[]): Promise<StartReply>
  /** Takes a port in place of the one it had under that name. */
  attach(port: NamedPort): void
  /** Resolves with the addresses of those who missed the deadline. */
  drain(deadlineMs: number): Promise<readonly Address[]>
  inspect(): SystemInspection
  heap(): HeapFigures
}

/** The same from outside. Every call rejects with ACTOR_ASK_TIMEOUT after `deadlineMs`, and with ACTOR_DEAD when the thread has died. */
export interface ThreadControl {
  /** Ports change owner. */
  start(data: unknown, ports: readonly NamedPort[], deadlineMs: number): Promise<StartReply>
  attach(port: NamedPort, deadlineMs: number): Promise<void>
  /** `deadlineMs` for the thread; it has half a second more to say so. */
  drain(deadlineMs: number): Promise<readonly Address[]>
  inspect(deadlineMs: number): Promise<SystemInspection>
  heap(deadlineMs: number): Promise<HeapFigures>
  /** Ends the thread at once, whatever it is doing (but see `endsBetweenTurns` in spawn.ts). Resolves when it is gone. */
  kill(): Promise<void>
}

type Envelope = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: ErrorData }

/** One method, so that nothing of Comlink's proxies is reachable from outside this file. */
interface Exposed {
  call(method: string, args: readonly unknown[]): Promise<Envelope>
}

export function exposeControl(port: MessagePort, thread: ControlledThread): void {
  const methods: Readonly<Record<string, (...args: never[]) => unknown>> = {
    start: thread.start,
    attach: thread.attach,
    drain: thread.drain,
    inspect: thread.inspect,
    heap: thread.heap,
  }
  const exposed: Exposed = {
    async call(method, args) {
      try {
        const run = methods[method]
        if (run === undefined) throw new RolloutError('INTERNAL_BUG', `a thread has no control call ${method}`)
        // The other end of this file names the method and makes its arguments.
        return { ok: true, value: await run(...(args as never[])) }
      } catch (cause) {
        return { ok: false, error: errorData(cause) }
      }
    },
  }
  expose(exposed, nodeEndpoint(port))
}

export interface ControlOptions {
  readonly port: MessagePort
  /** For messages of errors. */
  readonly name: string
  readonly clock: ActorClock
  /** Resolves when the thread is gone. */
  readonly exited: Promise<unknown>
  readonly kill: () => Promise<void>
}

export function controlThread({ port, name, clock, exited, kill }: ControlOptions): ThreadControl {
  // Held here for as long as the control is: Comlink closes the port of a proxy that is collected.
  const remote: Remote<Exposed> = wrap<Exposed>(nodeEndpoint(port))
  const inFlight = new Set<(error: RolloutError) => void>()
  let isDead = false
  const death = () => new RolloutError('ACTOR_DEAD', `thread ${name} has ended`)
  void exited.then(() => {
    isDead = true
    for (const reject of [...inFlight]) reject(death())
    port.close()
  })

  const call = (
    method: keyof ControlledThread,
    args: readonly unknown[],
    deadlineMs: number,
    ports: readonly NamedPort[] = [],
  ) =>
    new Promise<unknown>((resolve, reject) => {
      if (isDead) {
        reject(death())
        return
      }
      const settle = (end: () => void) => {
        if (!inFlight.delete(fail)) return
        cancel()
        end()
      }
      const fail = (error: RolloutError) => settle(() => reject(error))
      const cancel = after(clock, deadlineMs, () =>
        fail(new RolloutError('ACTOR_ASK_TIMEOUT', `thread ${name} did not answer ${method} within ${deadlineMs} ms`)),
      )
      inFlight.add(fail)
      const moved = ports.map(named => named.port)
      remote.call(method, transfer([...args], moved as never[])).then(
        answer => settle(() => (answer.ok ? resolve(answer.value) : reject(errorFromData(answer.error)))),
        cause => fail(new RolloutError('INTERNAL_BUG', `control call ${method} to thread ${name} failed`, { cause })),
      )
    })

  // The envelope's value is what ControlledThread's method of that name returned.
  return {
    start: (data, ports, deadlineMs) => call('start', [data, ports], deadlineMs, ports) as Promise<StartReply>,
    attach: (named, deadlineMs) => call('attach', [named], deadlineMs, [named]) as Promise<void>,
    drain: deadlineMs => call('drain', [deadlineMs], deadlineMs + 500) as Promise<readonly Address[]>,
    inspect: deadlineMs => call('inspect', [], deadlineMs) as Promise<SystemInspection>,
    heap: deadlineMs => call('heap', [], deadlineMs) as Promise<HeapFigures>,
    kill,
  }
}

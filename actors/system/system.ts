// One thread's actor system: spawns actors under the guardian, finds them by address, carries their messages, stops them in order.
// Several systems are linked by ports (link.ts); a ref looks the same whichever thread its actor runs in.

import type { Observable } from 'rxjs'
import { type ErrorData, errorData, RolloutError } from '../../src/domain/errors.js'
import { EVENTS } from '../../src/observability/events.js'
import { addressKey, isAskPath } from './address.js'
import { createAsks } from './ask.js'
import type { ActorClock, ActorProps, Logger } from './behavior.js'
import { type AnyProps, Cell, type Kernel } from './cell.js'
import { settledWithin } from './clock.js'
import { createDeadLetters, type DeadLetter, type DeadLetterReason } from './dead-letters.js'
import { createDispatcher } from './dispatcher.js'
import { Family } from './family.js'
import { inspectCell, type SystemInspection } from './inspect.js'
import { createLinks, type Link, type LinkOptions } from './link.js'
import type { ActorRef, Address, AnyMessage, Question, ReplyTo } from './ref.js'
import { createWatches, type WatchCallback } from './watches.js'

export interface ActorSystemOptions {
  /** Name of the thread: `main`, `proxy-1`. Unique among linked systems. */
  readonly name: string
  readonly clock: ActorClock
  readonly log: Logger
  /** A top-level actor failed more often than its intensity allows: the guardian gives up. The system is stopped by its owner. */
  readonly onFailure?: (error: ErrorData) => void
}

/** Who missed the deadline of a stop, in order. */
export interface StopReport {
  readonly missed: readonly Address[]
}

export interface ActorSystem {
  readonly name: string
  readonly clock: ActorClock
  readonly log: Logger
  /** Child of the guardian. It starts at its next turn; messages sent before wait in its mailbox. Throws INTERNAL_BUG for a name in use. */
  spawn<P extends AnyMessage, M extends AnyMessage, S, F>(props: ActorProps<P, M, S, F>, name: string): ActorRef<P>
  /** One reply or RolloutError ACTOR_ASK_TIMEOUT / ACTOR_DEAD / ACTOR_MAILBOX_FULL. `deadlineMs` in milliseconds. */
  ask<P extends AnyMessage, const Q extends Question<P> & AnyMessage>(
    ref: ActorRef<P>,
    question: Q,
    deadlineMs: number,
  ): Promise<ReplyTo<P, Q['type']>>
  /** The caller says what the actor there understands. There need not be an actor (yet). */
  refOf<M>(address: Address): ActorRef<M>
  /** `callback` once when the actor ends (a restart is no end), `unknown-address` when there is none. Returns the way to take it back. */
  watch(ref: ActorRef<never>, callback: WatchCallback): () => void
  /** Stops an actor directly under the guardian, within its own `shutdownMs`. */
  stopActor(ref: ActorRef<never>): Promise<StopReport>
  /** Links this system to that of another thread. The port is the system's from here on. */
  connect(options: LinkOptions): Link
  readonly deadLetters$: Observable<DeadLetter>
  inspect(): SystemInspection
  /** In reverse order of start; after `deadlineMs` by force. Afterwards every message is a dead letter. Idempotent. */
  stop(deadlineMs: number): Promise<StopReport>
}

export function createActorSystem({ name, clock, log, onFailure }: ActorSystemOptions): ActorSystem {
  const cells = new Map<string, Cell>()
  const deadLetters = createDeadLetters(log)
  const watches = createWatches(log)
  let stopping: Promise<StopReport> | null = null
  let stopped = false

  const refOf = <M>(address: Address): ActorRef<M> => ({
    address,
    // A ref is typed by whoever made it; in here every message is an AnyMessage.
    tell: message => deliver(address, message as AnyMessage),
  })
  const asks = createAsks(name, crypto.randomUUID().slice(0, 8), clock, refOf)

  const deliver = (address: Address, message: AnyMessage): void => {
    if (address.system !== name) links.tell(address, message)
    else if (isAskPath(address.path)) {
      if (!asks.reply(address.path, message)) undeliverable(address, message, 'late-reply')
    } else {
      const cell = cells.get(address.path)
      if (cell === undefined) undeliverable(address, message, stopped ? 'stopped' : 'unknown-address')
      else cell.deliver(message)
    }
  }

  const undeliverable = (address: Address, message: AnyMessage, reason: DeadLetterReason): void => {
    deadLetters.publish({ reason, type: message.type, address })
    const { replyTo } = message as { replyTo?: ActorRef<never> }
    // The asker is told at once: of a question that was not taken, and of a reply that cannot travel.
    if (replyTo !== undefined && isAskPath(replyTo.address.path)) {
      failAsk(replyTo.address, refusal(address, message.type, reason))
    }
    if (reason === 'unserialisable' && isAskPath(address.path)) failAsk(address, refusal(address, message.type, reason))
  }

  const failAsk = (address: Address, error: ErrorData): void => {
    if (address.system === name) asks.fail(address.path, error)
    else links.failAsk(address, error)
  }

  const watch = (target: Address, callback: WatchCallback): (() => void) => {
    const { isFirst, remove } = watches.add(target, callback)
    const isLocal = target.system === name
    if (!isLocal && isFirst) links.watch(target)
    if (isLocal && !cells.has(target.path)) queueMicrotask(() => watches.ended(target, 'unknown-address'))
    return () => {
      if (remove() && !isLocal) links.unwatch(target)
    }
  }

  const links = createLinks({
    system: name,
    log,
    refOf,
    hasActor: path => cells.has(path),
    deliver,
    failAsk: asks.fail,
    undeliverable,
    terminated(target, reason) {
      asks.targetEnded(target)
      watches.ended(target, reason)
    },
    systemEnded(system) {
      asks.systemEnded(system)
      watches.systemEnded(system, 'thread-died')
    },
  })

  const kernel: Kernel = {
    system: name,
    clock,
    log,
    dispatcher: createDispatcher(),
    refOf,
    register: cell => cells.set(cell.address.path, cell),
    ended(cell, reason) {
      if (cells.get(cell.address.path) === cell) cells.delete(cell.address.path)
      asks.targetEnded(cell.address)
      watches.ended(cell.address, reason)
      links.ended(cell.address, reason)
    },
    undeliverable,
    ask: asks.ask,
    watch,
  }

  const guardian = new Family<Cell>({
    clock,
    log,
    escalate(cause) {
      log.error(EVENTS.systemFail, { system: name, cause })
      onFailure?.(errorData(cause))
    },
  })

  const stop = async (deadlineMs: number): Promise<StopReport> => {
    const work = guardian.stopAll(clock.now() + deadlineMs)
    const inTime = await settledWithin(clock, deadlineMs, work)
    const missed = inTime ? await work : [...cells.values()].map(cell => cell.address)
    stopped = true
    asks.failAll({ code: 'ACTOR_DEAD', message: `actor system ${name} has stopped` })
    links.endAll()
    log.debug(EVENTS.systemStop, { system: name, missed: missed.map(addressKey) })
    deadLetters.complete()
    return { missed }
  }

  return {
    name,
    clock,
    log,
    spawn(props, childName) {
      if (stopping !== null)
        throw new RolloutError('ACTOR_DEAD', `actor system ${name} has stopped and starts no actors`)
      // The kernel handles every protocol alike; the types were checked at this signature.
      return new Cell(kernel, guardian, '/', props as unknown as AnyProps, childName).ref
    },
    // `asks` deals in AnyMessage; the reply's type follows from the question's by the signature.
    ask: asks.ask as unknown as ActorSystem['ask'],
    refOf,
    watch: (ref, callback) => watch(ref.address, callback),
    async stopActor({ address }) {
      const cell = guardian.children.find(child => child.address.path === address.path)
      if (cell === undefined || address.system !== name) return { missed: [] }
      return { missed: await cell.stop('stopped', Number.POSITIVE_INFINITY) }
    },
    connect: links.connect,
    deadLetters$: deadLetters.deadLetters$,
    inspect: () => ({
      name,
      actors: guardian.children.map(inspectCell),
      deadLetters: deadLetters.counts(),
      asks: asks.pending(),
      watches: watches.size(),
      links: links.peers(),
    }),
    stop(deadlineMs) {
      stopping ??= stop(deadlineMs)
      return stopping
    },
  }
}

function refusal(address: Address, type: string, reason: DeadLetterReason): ErrorData {
  const full = reason === 'mailbox-full' || reason === 'dropped-oldest'
  return {
    code: full ? 'ACTOR_MAILBOX_FULL' : 'ACTOR_DEAD',
    message: `${addressKey(address)} could not take ${type}: ${reason}`,
    details: { reason, address: { ...address } },
  }
}

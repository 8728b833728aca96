// What an actor is made of, as its author writes it: a machine, an interpreter, and numbers.

import type { Observable } from 'rxjs'
import type { Clock } from '../../src/domain/clock.js'
import type { ErrorData } from '../../src/domain/errors.js'
import type { Interpreter, Machine } from './machine.js'
import type { ActorRef, Address, AnyMessage, Question, ReplyTo } from './ref.js'

/** Time for interpreters: a bare `timer()` ignores virtual time. */
export interface ActorClock extends Clock {
  /** Emits once after `ms`, then completes. Unsubscribing disarms it. */
  timer$(ms: number): Observable<0>
}

export type Signal = { readonly type: 'pre-restart'; readonly cause: ErrorData } | { readonly type: 'post-stop' }

export type TerminatedReason = 'stopped' | 'crashed' | 'thread-died' | 'unknown-address'

export interface Logger {
  debug(event: string, fields?: Readonly<Record<string, unknown>>): void
  info(event: string, fields?: Readonly<Record<string, unknown>>): void
  warn(event: string, fields?: Readonly<Record<string, unknown>>): void
  error(event: string, fields?: Readonly<Record<string, unknown>>): void
}

/** What an interpreter may use. `M` is the actor's whole message type, private messages included. */
export interface ActorContext<in M> {
  readonly self: ActorRef<M>
  readonly clock: ActorClock
  readonly log: Logger
  /** Child under this actor, supervised by it; stopped with it, also before it is restarted. Throws INTERNAL_BUG when a live child has the name. */
  spawn<P extends AnyMessage, N extends AnyMessage, S, F>(props: ActorProps<P, N, S, F>, name: string): ActorRef<P>
  /** Stops a child, or this actor itself. Throws INTERNAL_BUG for any other. */
  stop(ref: ActorRef<never>): void
  /** One reply or RolloutError ACTOR_ASK_TIMEOUT / ACTOR_DEAD / ACTOR_MAILBOX_FULL. `deadlineMs` in milliseconds. */
  ask<P extends AnyMessage, const Q extends Question<P> & AnyMessage>(
    ref: ActorRef<P>,
    question: Q,
    deadlineMs: number,
  ): Promise<ReplyTo<P, Q['type']>>
  /** `behavior.terminated` makes the message when `ref` ends (a restart is no end). Ends with a restart of this actor. */
  watch(ref: ActorRef<never>): void
  unwatch(ref: ActorRef<never>): void
}

export interface Behavior<S, M extends AnyMessage, F> {
  readonly machine: Machine<S, M, F>
  interpret(context: ActorContext<M>): Interpreter<M, F>
  /** An effect that failed becomes this message. */
  onEffectError(effect: F, cause: unknown): M
  /** A watched actor ended. */
  terminated?(address: Address, reason: TerminatedReason): M
  /**
   * Lifecycle: what must outlive scopes (closing servers, releasing resources) happens here, after effects are cancelled and children
   * stopped. Awaited up to `shutdownMs`. A behavior gets one of the two, once: `pre-restart` before it is replaced, else `post-stop`.
   */
  signal?(signal: Signal, lastState: S, context: ActorContext<M>): void | Promise<void>
  /** What inspection may show of the state; no secrets. */
  summarize?(state: S): Readonly<Record<string, unknown>>
}

export interface ActorProps<P extends AnyMessage, M extends AnyMessage, S, F> {
  /** Made anew at each (re)start. `P` (public) is a part of `M` (public and private). */
  readonly behavior: () => Behavior<S, M, F>
  readonly mailbox: { readonly capacity: number; readonly overflow: 'refuse' | 'drop-oldest' }
  /** What the parent does when this actor fails. */
  readonly supervision: {
    /** `permanent`: always restarted; `transient`: after a crash only; `temporary`: never. */
    readonly restart: 'permanent' | 'transient' | 'temporary'
    /** `rest-for-one`: the siblings started after this one are restarted with it (those that are `temporary` are stopped). */
    readonly strategy: 'one-for-one' | 'rest-for-one'
    /** Restarts allowed per window; beyond it the failure escalates: the parent crashes, or at the top the system ends. */
    readonly intensity: number
    readonly periodMs: number
  }
  /** Deadline of a stop; then by force, and reported. */
  readonly shutdownMs: number
  /** Type-level only: keeps `P` inferable. */
  readonly protocol?: (message: P) => M
}

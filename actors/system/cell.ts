// One actor: mailbox, the running machine, its children, its life from start to stop. The only place that subscribes, and it
// subscribes guarded: an exception in an observer would be thrown again asynchronously and kill the thread with every actor in it.

import { Subject, type Subscription } from 'rxjs'
import { type ErrorData, errorData, RolloutError } from '../../src/domain/errors.js'
import { EVENTS } from '../../src/observability/events.js'
import { addressKey, childPath } from './address.js'
import type { ActorContext, ActorProps, Behavior, Logger, Signal, TerminatedReason } from './behavior.js'
import { after, settledWithin } from './clock.js'
import type { DeadLetterReason } from './dead-letters.js'
import type { Dispatcher, Runnable } from './dispatcher.js'
import { type Child, Family, type FamilyOptions } from './family.js'
import { Mailbox } from './mailbox.js'
import type { ActorRef, Address, AnyMessage } from './ref.js'
import { runMachine } from './run-machine.js'
import { type RestartBudget, restartBudget, type Supervision } from './supervision.js'
import type { WatchCallback } from './watches.js'

export type AnyProps = ActorProps<AnyMessage, AnyMessage, unknown, unknown>
export type Phase = 'starting' | 'running' | 'restarting' | 'stopping' | 'stopped'

/** What a cell needs of its system. */
export interface Kernel extends Pick<FamilyOptions, 'clock'> {
  readonly system: string
  readonly log: Logger
  readonly dispatcher: Dispatcher
  refOf(address: Address): ActorRef<AnyMessage>
  register(cell: Cell): void
  /** The cell has ended: its address is free, its watchers are told. */
  ended(cell: Cell, reason: TerminatedReason): void
  undeliverable(address: Address, message: AnyMessage, reason: DeadLetterReason): void
  ask(ref: ActorRef<AnyMessage>, question: AnyMessage, deadlineMs: number): Promise<AnyMessage>
  /** Returns the way to take the watch back. */
  watch(target: Address, callback: WatchCallback): () => void
}

/** From one start to the next restart or the stop. */
interface Life {
  readonly behavior: Behavior<unknown, AnyMessage, unknown>
  readonly context: ActorContext<AnyMessage>
  readonly inbox$: Subject<AnyMessage>
  state: unknown
  subscription: Subscription | null
}

export class Cell implements Child, Runnable {
  readonly name: string
  readonly address: Address
  readonly ref: ActorRef<AnyMessage>
  readonly supervision: Supervision
  readonly budget: RestartBudget
  readonly family: Family<Cell>
  readonly mailbox: Mailbox
  phase: Phase = 'starting'
  restarts = 0
  lastError: ErrorData | null = null

  readonly #kernel: Kernel
  readonly #props: AnyProps
  readonly #parent: Family<Cell>
  readonly #log: Logger
  readonly #watching = new Map<string, () => void>()
  #life: Life | null = null
  #suspending: Promise<void> | null = null
  #stopping: Promise<readonly Address[]> | null = null
  #endBackOff: (() => void) | null = null

  /** Made, registered and added to `parent`; it starts at its first turn. Throws INTERNAL_BUG for a name that is taken or not allowed. */
  constructor(kernel: Kernel, parent: Family<Cell>, parentPath: string, props: AnyProps, name: string) {
    this.name = name
    this.address = Object.freeze({ system: kernel.system, path: childPath(parentPath, name) })
    this.ref = kernel.refOf(this.address)
    this.supervision = props.supervision
    this.budget = restartBudget(props.supervision.intensity, props.supervision.periodMs)
    this.mailbox = new Mailbox(props.mailbox)
    this.#kernel = kernel
    this.#props = props
    this.#parent = parent
    this.#log = withActor(kernel.log, addressKey(this.address))
    this.family = new Family({
      clock: kernel.clock,
      log: kernel.log,
      escalate: cause => this.#ended('crashed', cause),
    })
    parent.add(this)
    kernel.register(this)
    kernel.dispatcher.ready(this)
  }

  deliver(message: AnyMessage): void {
    if (this.phase === 'stopping' || this.phase === 'stopped') {
      this.#kernel.undeliverable(this.address, message, 'stopped')
      return
    }
    const rejected = this.mailbox.push(message)
    if (rejected !== null) {
      this.#kernel.undeliverable(this.address, rejected, rejected === message ? 'mailbox-full' : 'dropped-oldest')
    }
    this.#kernel.dispatcher.ready(this)
  }

  runBatch(limit: number): boolean {
    if (this.phase === 'starting') this.#begin()
    for (let handled = 0; handled < limit && this.phase === 'running'; handled++) {
      const message = this.mailbox.shift()
      if (message === null) return false
      this.#life?.inbox$.next(message)
    }
    return this.phase === 'running' && this.mailbox.size > 0
  }

  async suspend(cause: ErrorData): Promise<void> {
    if (this.phase === 'stopping' || this.phase === 'stopped') return
    this.phase = 'restarting'
    const life = this.#endLife()
    if (life !== null) {
      this.#suspending = this.family
        .stopAll(Number.POSITIVE_INFINITY)
        .then(() => this.#signal(life, { type: 'pre-restart', cause }, Number.POSITIVE_INFINITY))
        .then(() => {})
    }
    await this.#suspending
  }

  resume(): void {
    if (this.phase !== 'restarting') return
    this.restarts += 1
    this.phase = 'starting'
    this.#kernel.dispatcher.ready(this)
  }

  backOff(ms: number): Promise<void> {
    if (this.phase !== 'restarting') return Promise.resolve()
    return new Promise(resolve => {
      const cancel = after(this.#kernel.clock, ms, resolve)
      this.#endBackOff = () => {
        cancel()
        resolve()
      }
    })
  }

  stop(reason: TerminatedReason, deadlineAtMs: number): Promise<readonly Address[]> {
    this.#stopping ??= this.#end(reason, deadlineAtMs)
    return this.#stopping
  }

  /** What the behavior chooses to show of its state; null before the first start and while restarting. */
  summary(): Readonly<Record<string, unknown>> | null {
    try {
      return this.#life?.behavior.summarize?.(this.#life.state) ?? null
    } catch (cause) {
      return { summaryFailed: errorData(cause).message }
    }
  }

  #begin(): void {
    try {
      const behavior = this.#props.behavior()
      const inbox$ = new Subject<AnyMessage>()
      const context = this.#context(behavior)
      const life: Life = { behavior, context, inbox$, state: behavior.machine.initial.state, subscription: null }
      this.#life = life
      this.phase = 'running'
      life.subscription = runMachine(
        behavior.machine,
        inbox$,
        behavior.interpret(context),
        (effect, cause) => behavior.onEffectError(effect, cause),
        (effect, cause) => this.#log.error(EVENTS.effectTeardownFail, { effect: effectType(effect), cause }),
      ).subscribe({
        next: step => {
          life.state = step.state
        },
        error: cause => this.#ended('crashed', cause),
        complete: () => this.#ended('stopped', new RolloutError('ACTOR_DEAD', 'ended by its own machine')),
      })
      // An initial effect may have stopped this actor before there was a subscription to cancel.
      if (this.#life !== life) life.subscription.unsubscribe()
      this.#log.debug(EVENTS.actorStart, { restarts: this.restarts })
    } catch (cause) {
      this.phase = 'running'
      this.#ended('crashed', cause)
    }
  }

  /** The machine crashed or is done; or a child failed too often. While restarting or stopping it changes nothing. */
  #ended(ended: 'crashed' | 'stopped', cause: unknown): void {
    if (this.phase !== 'running') return
    this.phase = 'restarting'
    if (ended === 'crashed') {
      this.lastError = errorData(cause)
      this.#log.error(EVENTS.actorCrash, { cause, ...(cause instanceof Error && { stack: cause.stack }) })
    }
    this.#parent.childEnded(this, ended, cause)
  }

  async #end(reason: TerminatedReason, deadlineAtMs: number): Promise<readonly Address[]> {
    this.phase = 'stopping'
    this.#endBackOff?.()
    const life = this.#endLife()
    await this.#suspending
    const missed = [...(await this.family.stopAll(deadlineAtMs))]
    if (life !== null && !(await this.#signal(life, { type: 'post-stop' }, deadlineAtMs))) {
      missed.push(this.address)
      this.#log.error(EVENTS.actorDeadlineMiss, { shutdownMs: this.#props.shutdownMs })
    }
    this.phase = 'stopped'
    this.#parent.forget(this)
    for (const message of this.mailbox.drain()) this.#kernel.undeliverable(this.address, message, 'stopped')
    this.#log.debug(EVENTS.actorStop, { reason })
    this.#kernel.ended(this, reason)
    return missed
  }

  /** Cancels effects and watches; null when there was no life. */
  #endLife(): Life | null {
    const life = this.#life
    this.#life = null
    for (const unwatch of this.#watching.values()) unwatch()
    this.#watching.clear()
    try {
      life?.subscription?.unsubscribe()
    } catch (cause) {
      this.#log.error(EVENTS.effectTeardownFail, { cause })
    }
    return life
  }

  /** False when the behavior took longer than its `shutdownMs`, or than `deadlineAtMs`. */
  async #signal(life: Life, signal: Signal, deadlineAtMs: number): Promise<boolean> {
    const { behavior, state, context } = life
    const failed = (cause: unknown) => this.#log.error(EVENTS.signalFail, { signal: signal.type, cause })
    try {
      const work = behavior.signal?.(signal, state, context)
      if (work === undefined) return true
      work.catch(failed)
      const limitMs = Math.min(this.#props.shutdownMs, deadlineAtMs - this.#kernel.clock.now())
      return await settledWithin(this.#kernel.clock, limitMs, work)
    } catch (cause) {
      failed(cause)
      return true
    }
  }

  #context(behavior: Life['behavior']): ActorContext<AnyMessage> {
    const kernel = this.#kernel
    const context = {
      self: this.ref,
      clock: kernel.clock,
      log: this.#log,
      spawn: (props: AnyProps, name: string) => {
        if (this.#life?.context !== context) {
          throw new RolloutError('ACTOR_DEAD', `${addressKey(this.address)} has ended and starts no children`)
        }
        return new Cell(kernel, this.family, this.address.path, props, name).ref
      },
      stop: (ref: ActorRef<never>) => this.#stopChildOrSelf(ref),
      ask: kernel.ask,
      watch: ({ address }: ActorRef<never>) => {
        if (behavior.terminated === undefined) {
          throw new RolloutError('INTERNAL_BUG', `${addressKey(this.address)} watches but has no \`terminated\``)
        }
        const key = addressKey(address)
        if (this.#life?.context !== context || this.#watching.has(key)) return
        this.#watching.set(
          key,
          kernel.watch(address, (target, reason) => this.#watchedEnded(target, reason)),
        )
      },
      unwatch: ({ address }: ActorRef<never>) => {
        this.#watching.get(addressKey(address))?.()
        this.#watching.delete(addressKey(address))
      },
    }
    // The generic signatures of `spawn` and `ask` exist for callers; in here every protocol is AnyMessage.
    return context as unknown as ActorContext<AnyMessage>
  }

  #stopChildOrSelf({ address }: ActorRef<never>): void {
    const key = addressKey(address)
    const target =
      key === addressKey(this.address) ? this : this.family.children.find(child => addressKey(child.address) === key)
    if (target === undefined) {
      throw new RolloutError('INTERNAL_BUG', `${addressKey(this.address)} may stop itself and its children, not ${key}`)
    }
    void target.stop('stopped', Number.POSITIVE_INFINITY)
  }

  #watchedEnded(target: Address, reason: TerminatedReason): void {
    this.#watching.delete(addressKey(target))
    try {
      const notice = this.#life?.behavior.terminated?.(target, reason)
      if (notice === undefined) return
      this.mailbox.pushNotice(notice)
      this.#kernel.dispatcher.ready(this)
    } catch (cause) {
      this.#ended('crashed', cause)
    }
  }
}

const effectType = (effect: unknown): string => String((effect as { type?: unknown } | null)?.type ?? typeof effect)

function withActor(log: Logger, actor: string): Logger {
  return {
    debug: (event, fields) => log.debug(event, { actor, ...fields }),
    info: (event, fields) => log.info(event, { actor, ...fields }),
    warn: (event, fields) => log.warn(event, { actor, ...fields }),
    error: (event, fields) => log.error(event, { actor, ...fields }),
  }
}

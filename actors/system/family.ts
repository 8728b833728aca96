// The children of one actor (or of the system's guardian): started in order, stopped in reverse, restarted as their supervision says.
// Knows children by a narrow interface; what a child is lives in cell.ts.

import { type ErrorData, errorData, RolloutError } from '../../src/domain/errors.js'
import { EVENTS } from '../../src/observability/events.js'
import { addressKey } from './address.js'
import type { ActorClock, Logger, TerminatedReason } from './behavior.js'
import type { Address } from './ref.js'
import { decide, type RestartBudget, type Supervision } from './supervision.js'

export interface Child {
  readonly name: string
  readonly address: Address
  readonly supervision: Supervision
  readonly budget: RestartBudget
  /** Cancels effects, stops its own children, signals `pre-restart`. Messages wait in the mailbox. */
  suspend(cause: ErrorData): Promise<void>
  /** Starts anew from `initial`. No effect on a child that was stopped meanwhile. */
  resume(): void
  /** Resolves with the addresses of those who missed their deadline. `deadlineAtMs` on the system's clock; Infinity = only their own. */
  stop(reason: TerminatedReason, deadlineAtMs: number): Promise<readonly Address[]>
  /** Resolves after `ms`, or when the child is stopped. */
  backOff(ms: number): Promise<void>
}

export interface FamilyOptions {
  readonly clock: ActorClock
  readonly log: Logger
  /** A child failed more often than its intensity allows. */
  readonly escalate: (cause: RolloutError) => void
}

export class Family<C extends Child> {
  readonly #children = new Map<string, C>()
  /** The restart that decides when a child starts again; a later one takes over from an earlier. */
  readonly #restarts = new WeakMap<Child, symbol>()
  readonly #options: FamilyOptions

  constructor(options: FamilyOptions) {
    this.#options = options
  }

  /** In order of start. */
  get children(): readonly C[] {
    return [...this.#children.values()]
  }

  /** Throws INTERNAL_BUG when a child of that name has not ended yet. */
  add(child: C): void {
    if (this.#children.has(child.name)) {
      throw new RolloutError('INTERNAL_BUG', `${addressKey(child.address)} is there already`)
    }
    this.#children.set(child.name, child)
  }

  forget(child: C): void {
    if (this.#children.get(child.name) === child) this.#children.delete(child.name)
  }

  /** `cause`: what a crash threw. Returns at once; what follows is asynchronous. */
  childEnded(child: C, ended: 'crashed' | 'stopped', cause: unknown): void {
    this.#supervise(child, ended, errorData(cause)).catch(failure => {
      this.#options.escalate(
        new RolloutError('INTERNAL_BUG', `supervision of ${addressKey(child.address)} failed`, { cause: failure }),
      )
    })
  }

  /** Reverse order of start, one after the other; neighbours that are `temporary` (sessions) together. */
  async stopAll(deadlineAtMs: number): Promise<readonly Address[]> {
    const missed: Address[] = []
    let batch: C[] = []
    const stopBatch = async () => {
      const reports = await Promise.all(batch.map(child => child.stop('stopped', deadlineAtMs)))
      missed.push(...reports.flat())
      batch = []
    }
    for (const child of this.children.toReversed()) {
      if (!isTemporary(child) || !isTemporary(batch[0])) await stopBatch()
      batch.push(child)
    }
    await stopBatch()
    return missed
  }

  async #supervise(child: C, ended: 'crashed' | 'stopped', cause: ErrorData): Promise<void> {
    const { clock, log, escalate } = this.#options
    const actor = addressKey(child.address)
    const decision = decide(child.supervision, ended, child.budget, clock.now())
    if (decision.action === 'end') {
      await child.stop(decision.reason, Number.POSITIVE_INFINITY)
      return
    }
    if (decision.action === 'escalate') {
      log.error(EVENTS.actorEscalate, { actor, cause })
      await child.stop('crashed', Number.POSITIVE_INFINITY)
      escalate(new RolloutError(cause.code, `${actor} failed too often, last: ${cause.message}`, { cause }))
      return
    }
    const siblings = this.children
    const group = child.supervision.strategy === 'rest-for-one' ? siblings.slice(siblings.indexOf(child)) : [child]
    const restart = Symbol(actor)
    for (const member of group) this.#restarts.set(member, restart)
    for (const member of group.toReversed()) {
      if (member !== child && isTemporary(member)) await member.stop('stopped', Number.POSITIVE_INFINITY)
      else await member.suspend(cause)
    }
    await child.backOff(decision.waitMs)
    for (const member of group) {
      if (this.#restarts.get(member) !== restart) continue
      log.warn(EVENTS.actorRestart, { actor: addressKey(member.address), waitMs: decision.waitMs, cause })
      member.resume()
    }
  }
}

const isTemporary = (child: Child | undefined): boolean => child?.supervision.restart === 'temporary'

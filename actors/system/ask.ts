// Questions on the way: each has a temporary reply address, a deadline, and exactly one end. Nothing stays behind after that end.

import { type ErrorData, errorFromData, RolloutError } from '../../src/domain/errors.js'
import { ASK_ROOT, addressKey } from './address.js'
import type { ActorClock } from './behavior.js'
import { after } from './clock.js'
import type { ActorRef, Address, AnyMessage } from './ref.js'
import { copyTransferMark } from './transfer.js'

interface PendingAsk {
  readonly target: string
  readonly targetSystem: string
  settle(outcome: { readonly reply: AnyMessage } | { readonly error: RolloutError }): void
}

export interface Asks {
  /** One reply, or RolloutError ACTOR_ASK_TIMEOUT / ACTOR_DEAD / ACTOR_MAILBOX_FULL. `deadlineMs` in milliseconds. */
  ask(ref: ActorRef<AnyMessage>, question: AnyMessage, deadlineMs: number): Promise<AnyMessage>
  /** False when no question waits there (any more): the reply is late. */
  reply(path: string, message: AnyMessage): boolean
  fail(path: string, error: ErrorData): void
  /** The actor ended without having answered. */
  targetEnded(target: Address): void
  systemEnded(system: string): void
  failAll(error: ErrorData): void
  pending(): number
}

/** `incarnation`: tells the asks of a restarted thread from those of its former life, whose late replies may still come. */
export function createAsks(
  system: string,
  incarnation: string,
  clock: ActorClock,
  refOf: (address: Address) => ActorRef<AnyMessage>,
): Asks {
  const pending = new Map<string, PendingAsk>()
  const byTarget = new Map<string, Set<string>>()
  let count = 0

  const settle = (path: string, outcome: Parameters<PendingAsk['settle']>[0]): boolean => {
    const ask = pending.get(path)
    if (ask === undefined) return false
    pending.delete(path)
    const siblings = byTarget.get(ask.target)
    siblings?.delete(path)
    if (siblings?.size === 0) byTarget.delete(ask.target)
    ask.settle(outcome)
    return true
  }
  const dead = (what: string) => ({ error: new RolloutError('ACTOR_DEAD', what) })

  return {
    ask(ref, question, deadlineMs) {
      const path = `${ASK_ROOT}${incarnation}-${count++}/`
      const target = addressKey(ref.address)
      return new Promise((resolve, reject) => {
        const cancel = after(clock, deadlineMs, () => {
          settle(path, {
            error: new RolloutError(
              'ACTOR_ASK_TIMEOUT',
              `${target} did not answer ${question.type} within ${deadlineMs} ms`,
            ),
          })
        })
        pending.set(path, {
          target,
          targetSystem: ref.address.system,
          settle(outcome) {
            cancel()
            if ('reply' in outcome) resolve(outcome.reply)
            else reject(outcome.error)
          },
        })
        const siblings = byTarget.get(target) ?? new Set()
        byTarget.set(target, siblings.add(path))
        ref.tell(copyTransferMark(question, { ...question, replyTo: refOf({ system, path }) }))
      })
    },
    reply: (path, message) => settle(path, { reply: message }),
    fail(path, error) {
      settle(path, { error: errorFromData(error) })
    },
    targetEnded(target) {
      const key = addressKey(target)
      for (const path of [...(byTarget.get(key) ?? [])]) settle(path, dead(`${key} ended before it answered`))
    },
    systemEnded(name) {
      for (const [path, ask] of [...pending]) {
        if (ask.targetSystem === name) settle(path, dead(`the thread of ${ask.target} has died`))
      }
    },
    failAll(error) {
      for (const path of [...pending.keys()]) settle(path, { error: errorFromData(error) })
    },
    pending: () => pending.size,
  }
}

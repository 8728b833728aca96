// Where messages end that could not be delivered: counted, published, logged. A dead letter tells reason, type and address,
// never the payload.

import { type Observable, Subject } from 'rxjs'
import { EVENTS } from '../../src/observability/events.js'
import { addressKey } from './address.js'
import type { Logger } from './behavior.js'
import type { Address } from './ref.js'

export type DeadLetterReason =
  /** The mailbox refused it. */
  | 'mailbox-full'
  /** A newer message pushed it out of the mailbox. */
  | 'dropped-oldest'
  | 'unknown-address'
  /** The actor ended before it could handle it. */
  | 'stopped'
  /** A reply after the asker's deadline. */
  | 'late-reply'
  /** The thread of the address has died. */
  | 'thread-died'
  /** It holds something that cannot go to another thread. */
  | 'unserialisable'
  /** What came from another thread is no message. */
  | 'malformed'

export interface DeadLetter {
  readonly reason: DeadLetterReason
  /** `type` of the message. */
  readonly type: string
  readonly address: Address
}

export interface DeadLetterCounts {
  readonly total: number
  readonly byReason: Readonly<Partial<Record<DeadLetterReason, number>>>
}

export interface DeadLetters {
  readonly deadLetters$: Observable<DeadLetter>
  publish(letter: DeadLetter): void
  counts(): DeadLetterCounts
  complete(): void
}

export function createDeadLetters(log: Logger): DeadLetters {
  const letters$ = new Subject<DeadLetter>()
  const byReason: Partial<Record<DeadLetterReason, number>> = {}
  let total = 0
  return {
    deadLetters$: letters$.asObservable(),
    publish(letter) {
      total += 1
      const count = (byReason[letter.reason] ?? 0) + 1
      byReason[letter.reason] = count
      const fields = { reason: letter.reason, type: letter.type, actor: addressKey(letter.address), count }
      // 1, 2, 4, 8 ...: a flood of dead letters must not become a flood of log lines.
      if ((count & (count - 1)) === 0) log.warn(EVENTS.deadLetterCount, fields)
      else log.debug(EVENTS.deadLetterCount, fields)
      letters$.next(letter)
    },
    counts: () => ({ total, byReason: { ...byReason } }),
    complete: () => letters$.complete(),
  }
}

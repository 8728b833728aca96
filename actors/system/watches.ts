// Who wants to be told when an actor ends. One entry per watch, gone once told or taken back.

import { EVENTS } from '../../src/observability/events.js'
import { addressKey } from './address.js'
import type { Logger, TerminatedReason } from './behavior.js'
import type { Address } from './ref.js'

export type WatchCallback = (address: Address, reason: TerminatedReason) => void

export interface Watches {
  /** `isFirst`: nobody watched this address before. The return value takes the watch back and says whether it was the last. */
  add(target: Address, callback: WatchCallback): { readonly isFirst: boolean; remove(): boolean }
  ended(target: Address, reason: TerminatedReason): void
  /** Every actor of that system is gone. */
  systemEnded(system: string, reason: TerminatedReason): void
  size(): number
}

export function createWatches(log: Logger): Watches {
  const byTarget = new Map<
    string,
    { readonly target: Address; readonly entries: Set<{ readonly callback: WatchCallback }> }
  >()

  const ended = (target: Address, reason: TerminatedReason) => {
    const key = addressKey(target)
    const watched = byTarget.get(key)
    byTarget.delete(key)
    for (const { callback } of watched?.entries ?? []) {
      try {
        callback(target, reason)
      } catch (cause) {
        log.error(EVENTS.watchCallbackFail, { actor: key, cause })
      }
    }
  }

  return {
    add(target, callback) {
      const key = addressKey(target)
      const watched = byTarget.get(key) ?? { target, entries: new Set() }
      const isFirst = watched.entries.size === 0
      const entry = { callback }
      watched.entries.add(entry)
      byTarget.set(key, watched)
      return {
        isFirst,
        remove() {
          const isLast = watched.entries.delete(entry) && watched.entries.size === 0
          if (isLast && byTarget.get(key) === watched) byTarget.delete(key)
          return isLast
        },
      }
    },
    ended,
    systemEnded(system, reason) {
      for (const { target } of [...byTarget.values()]) if (target.system === system) ended(target, reason)
    },
    size: () => [...byTarget.values()].reduce((sum, { entries }) => sum + entries.size, 0),
  }
}

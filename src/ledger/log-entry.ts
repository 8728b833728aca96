// What a session log says about one step, so that the same log can be made of its entries again: the form a store keeps. Plain data
// and typed arrays. An entry tells what is other or fresh beside the entries before it, so that a session's entries together
// grow with what was said, not with its square. Entries of a session are read back in the order in which they were made.

import type { Delivered, FailedCall, OriginalLike } from '../domain/completion.js'
import { RolloutError } from '../domain/errors.js'
import type { CompletionId } from '../domain/ids.js'
import { isObject } from '../domain/json.js'
import type { ObjectChange } from './difference.js'
import type { ItemReference } from './list-tree.js'

/** Of this form of entries; a store keeps it with them. */
export const LOG_ENTRY_VERSION = 1

/** Ids of a call: behind the first `shared` ids of the path that ends in `segment` comes `suffix`; together prompt + sampled ids. */
export interface EntryTokens {
  readonly segment: number
  readonly shared: number
  readonly suffix: Int32Array
  /** Length of the prompt in tokens. */
  readonly prompt: number
  /** Length of the answer in tokens; null where the engine told no sampled ids. */
  readonly sampled: number | null
}

/** The known list `after` and the items that follow it. */
export interface EntryList {
  readonly after: number
  readonly rest: readonly ItemReference[]
}

export interface CallEntry {
  readonly kind: 'call'
  /** Calls of the session before this one: an entry that is missing is found out. */
  readonly number: number
  readonly completionId: CompletionId
  /** The record's plain fields, beside those of the call before. */
  readonly facts: ObjectChange
  /** null where the engine told no prompt ids. */
  readonly tokens: EntryTokens | null
  /** Sampled ids without a prompt; null where `tokens` says them or there are none. */
  readonly sampledIds: Int32Array | null
  readonly logprobs: Float32Array | null
  /** The request without the lists, beside that of the call before. */
  readonly request: ObjectChange
  /** null where the request has no such list of objects. */
  readonly messages: EntryList | null
  readonly tools: EntryList | null
  /** The response without the message of its first choice, beside that of the call before. */
  readonly response: ObjectChange
  /** That message; null where there is none. */
  readonly answer: ItemReference | null
  /** What the harness's body does not share with the one in `originalLike`. */
  readonly originalRequest: string
  readonly originalLike: OriginalLike | null
}

export interface FailedEntry {
  readonly kind: 'failed'
  readonly failed: FailedCall
}

export interface DeliveredEntry {
  readonly kind: 'delivered'
  readonly completionId: string
  readonly delivered: Delivered
}

export type LogEntry = CallEntry | FailedEntry | DeliveredEntry

type Check = (value: unknown) => boolean
const isCount: Check = value => Number.isSafeInteger(value) && (value as number) >= 0
const isChange: Check = value => isObject(value) && isObject(value['set'])
const isList: Check = value =>
  value === null ||
  (isObject(value) && isCount(value['after']) && Array.isArray(value['rest']) && value['rest'].every(isReference))
const isReference: Check = value => isCount(value) || isObject(value)

const CALL_CHECKS: Readonly<Record<Exclude<keyof CallEntry, 'kind'>, Check>> = {
  number: isCount,
  completionId: value => typeof value === 'string',
  facts: isChange,
  tokens: value =>
    value === null ||
    (isObject(value) &&
      ['segment', 'shared', 'prompt'].every(key => isCount(value[key])) &&
      (value['sampled'] === null || isCount(value['sampled'])) &&
      value['suffix'] instanceof Int32Array),
  sampledIds: value => value === null || value instanceof Int32Array,
  logprobs: value => value === null || value instanceof Float32Array,
  request: isChange,
  messages: isList,
  tools: isList,
  response: isChange,
  answer: value => value === null || isReference(value),
  originalRequest: value => typeof value === 'string',
  originalLike: value => value === null || isObject(value),
}

/** An entry that was read back. Throws RolloutError WIRE_MALFORMED. */
export function parseLogEntry(value: unknown): LogEntry {
  if (isObject(value)) {
    const { kind } = value
    const wrong = kind === 'call' ? Object.entries(CALL_CHECKS).find(([key, check]) => !check(value[key])) : undefined
    if (wrong) throw new RolloutError('WIRE_MALFORMED', `a log entry's ${wrong[0]} is missing or of another type`)
    // Every field was checked just above, or is checked here.
    if (kind === 'call') return value as unknown as CallEntry
    if (kind === 'failed' && isObject(value['failed'])) return value as unknown as FailedEntry
    if (kind === 'delivered' && typeof value['completionId'] === 'string') return value as unknown as DeliveredEntry
  }
  throw new RolloutError('WIRE_MALFORMED', 'this is no entry of a session log')
}

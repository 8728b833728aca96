// Messages as they cross from thread to thread: refs become plain addresses, and where they stood is told beside the message, so that
// nothing a message happens to contain can pass for a ref.

import { isAddress } from './address.js'
import type { ActorRef, Address, AnyMessage } from './ref.js'

/** Refs are found this many levels below the message: `replyTo`, `session.session`. Deeper ones make the send fail, not go wrong. */
const DEPTH = 4

export interface Envelope {
  readonly message: AnyMessage
  /** Where refs stand, as property names from the message down. */
  readonly refs: readonly (readonly string[])[]
}

/** The message itself when it holds no ref; else a copy of the parts on the way to the refs. The given message is not changed. */
export function seal(message: AnyMessage): Envelope {
  const refs: string[][] = []
  // `replaceRefs` keeps the shape but for refs, and a message is not a ref.
  return { message: replaceRefs(message, [], refs) as AnyMessage, refs }
}

/** Puts live refs back, in place: the envelope came by structured clone and is the receiver's own. False when it is malformed. */
export function open({ message, refs }: Envelope, refOf: (address: Address) => ActorRef<AnyMessage>): boolean {
  for (const path of refs) {
    const last = path.at(-1)
    let holder: unknown = message
    for (const name of path.slice(0, -1)) holder = isRecord(holder) ? holder[name] : undefined
    if (last === undefined || !isRecord(holder)) return false
    const { $ref } = (holder[last] ?? {}) as { $ref?: unknown }
    if (!isAddress($ref)) return false
    holder[last] = refOf($ref)
  }
  return true
}

function replaceRefs(value: unknown, path: readonly string[], found: string[][]): unknown {
  if (!isRecord(value) || ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value
  if (path.length > 0 && isRef(value)) {
    found.push([...path])
    return { $ref: { system: value.address.system, path: value.address.path } }
  }
  if (path.length >= DEPTH) return value
  let copy: Record<string, unknown> | null = null
  for (const [name, part] of Object.entries(value)) {
    const replaced = replaceRefs(part, [...path, name], found)
    if (replaced === part) continue
    // An array stays an array: its indices are property names like any other.
    copy ??= (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>
    copy[name] = replaced
  }
  return copy ?? value
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

const isRef = (value: Record<string, unknown>): value is Record<string, unknown> & ActorRef<AnyMessage> =>
  typeof value['tell'] === 'function' && isAddress(value['address'])

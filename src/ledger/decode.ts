// Drives a pure computation that asks for the text of ids (text-match.ts) with a decoder, which may be asynchronous.

import { type AskingMany, remembering } from './text-match.js'

/** Text of token ids; null = cannot be told. */
export type DecodeIds = (ids: Int32Array) => Promise<string | null>

/** Decodes in flight at once: enough to hide a loopback round trip, few enough to leave the engine to its work. */
const CONCURRENCY = 8

/** Runs `asking` to its end. Each distinct list of ids is decoded once. Rejects with `signal.reason` when aborted between decodes, or with what `decode` rejects with. */
export async function withTexts<T>(asking: AskingMany<T>, decode: DecodeIds, signal?: AbortSignal): Promise<T> {
  const run = remembering(asking)
  let step = run.next()
  while (!step.done) {
    const wanted = step.value
    const texts: (string | null)[] = []
    for (let at = 0; at < wanted.length; at += CONCURRENCY) {
      signal?.throwIfAborted()
      texts.push(...(await Promise.all(wanted.slice(at, at + CONCURRENCY).map(ids => decode(ids)))))
    }
    step = run.next(texts)
  }
  return step.value
}

// Bytes of a server-sent event stream -> its events, whatever way the bytes were cut. Also takes CRLF, `data:` without a space,
// several data lines per event, and a last event without its blank line. An unfinished character at the end is dropped.

import { createParser } from 'eventsource-parser'
import { RolloutError } from '../domain/errors.js'

/** Longest single event, characters: a guard against an endless line, far over what 100,000 token ids need. */
const MAX_EVENT_CHARACTERS = 64 * 1024 * 1024

export interface StreamEvent {
  readonly event: string | null
  readonly data: string
}

/** Events of `chunks` in order. Throws UPSTREAM_MALFORMED for an event over 64 Mi characters; errors of `chunks` pass through. */
export async function* eventsOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
  for await (const batch of eventBatchesOf(chunks)) yield* batch
}

/** The same, with the events that became whole by one chunk together. No batch is empty. */
export async function* eventBatchesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<readonly StreamEvent[]> {
  const ready: StreamEvent[] = []
  let tooLong = false
  const parser = createParser({
    maxBufferSize: MAX_EVENT_CHARACTERS,
    onEvent: ({ event, data }) => ready.push({ event: event ?? null, data }),
    onError: error => {
      if (error.type === 'max-buffer-size-exceeded') tooLong = true
    },
  })
  const decoder = new TextDecoder()
  function take(): readonly StreamEvent[] {
    if (tooLong) throw new RolloutError('UPSTREAM_MALFORMED', `an event is over ${MAX_EVENT_CHARACTERS} characters`)
    return ready.splice(0)
  }
  for await (const chunk of chunks) {
    parser.feed(decoder.decode(chunk, { stream: true }))
    const batch = take()
    if (batch.length > 0) yield batch
  }
  parser.feed(`${decoder.decode()}\n\n`)
  const last = take()
  if (last.length > 0) yield last
}

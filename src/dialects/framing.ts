// Writes stream frames as bytes on the wire, as text: server-sent events, or one JSON array where a Google client did not ask for `alt=sse`
// (obligation A-62). Keeps no queue and knows no socket.

import type { RouteMatch, SseFrame } from './base.js'

export interface Framing {
  readonly contentType: string
  /** Text of one frame; call in order. */
  write(frame: SseFrame): string
  /** Text that ends the stream, after the last frame; may be empty. */
  end(): string
  /** False where no keep-alive can stand between frames. */
  readonly takesKeepAlive: boolean
}

export const framing = (route: Pick<RouteMatch, 'sse'>): Framing => (route.sse ? eventStream : jsonArray())

const eventStream: Framing = {
  contentType: 'text/event-stream; charset=utf-8',
  write: ({ event, data }) => `${event === null ? '' : `event: ${event}\n`}data: ${data}\n\n`,
  end: () => '',
  takesKeepAlive: true,
}

function jsonArray(): Framing {
  let isEmpty = true
  return {
    contentType: 'application/json; charset=utf-8',
    write({ data }) {
      const text = `${isEmpty ? '[' : ',\n'}${data}`
      isEmpty = false
      return text
    },
    end: () => (isEmpty ? '[]' : ']'),
    takesKeepAlive: false,
  }
}

// Writes an HTTP answer: a JSON body, or a stream piece by piece where `write` waits until the client takes more. It knows
// whether the client got the end. `drain` never fires after a client has left, so every wait is raced with `close`.

import type { ServerResponse } from 'node:http'

export interface AnswerWriter {
  /** True once a status line was written. */
  readonly started: boolean
  /** True once the connection is gone. */
  readonly closed: boolean
  /** Writes a whole JSON answer and ends. A no-op when the connection is gone. */
  json(status: number, body: unknown, headers?: Readonly<Record<string, string>>): void
  /** `alone`: the head goes out before there is any body. Else with its first piece, which saves a packet. */
  start(status: number, headers: Readonly<Record<string, string>>, alone?: boolean): void
  /** Resolves when more may be written, or when the connection is gone. */
  write(text: string): Promise<void>
  end(text?: string): void
  /** Cuts the connection. */
  destroy(): void
  /** True when all was handed to the system before the connection closed, false when not. Settles once. */
  readonly delivered: Promise<boolean>
}

export function answerWriter(response: ServerResponse): AnswerWriter {
  let closed = response.destroyed
  const delivered = new Promise<boolean>(resolve => {
    response.once('finish', () => resolve(true))
    response.once('close', () => {
      closed = true
      resolve(response.writableFinished)
    })
    if (closed) resolve(response.writableFinished)
  })
  // A socket error after the client left is the same fact as `close`.
  response.on('error', () => {})
  return {
    get started() {
      return response.headersSent
    },
    get closed() {
      return closed
    },
    delivered,
    json(status, body, headers = {}) {
      if (closed || response.headersSent) return
      const text = JSON.stringify(body)
      response.writeHead(status, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
        ...headers,
      })
      response.end(text)
    },
    start(status, headers, alone = true) {
      if (closed || response.headersSent) return
      response.writeHead(status, headers)
      if (alone) response.flushHeaders()
    },
    async write(text) {
      if (closed || text === '' || response.write(text)) return
      await new Promise<void>(resolve => {
        const done = () => {
          response.off('drain', done)
          response.off('close', done)
          resolve()
        }
        response.once('drain', done)
        response.once('close', done)
      })
    },
    end(text) {
      if (closed) return
      response.end(text)
    },
    destroy: () => response.destroy(),
  }
}

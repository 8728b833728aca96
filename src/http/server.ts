// An HTTP server without policy: limits fit for long model calls, WebSocket upgrades answered 426 (Codex then posts at once),
// and a close that lets running answers end until a deadline.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface HttpServer {
  readonly port: number
  /** Stops accepting, lets running answers end for `graceMs`, then cuts them. Idempotent. */
  close(graceMs: number, sleep: (ms: number, signal: AbortSignal) => Promise<void>): Promise<void>
}

/**
 * Listens on `host:port` (0 = any free port). `handle` owns the response; it must not throw or reject.
 * Rejects with Node's own error (`EADDRINUSE` ...) when the port cannot be had.
 */
export async function listen(
  options: { readonly host: string; readonly port: number },
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<HttpServer> {
  // Node's defaults (5 s, 300 s) reset connections after a long tool call or in a long answer.
  const server = createServer({ keepAliveTimeout: 600_000, requestTimeout: 0, noDelay: true }, handle)
  server.on('upgrade', (_request, socket) => {
    socket.on('error', () => {})
    socket.end('HTTP/1.1 426 Upgrade Required\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
  })
  server.on('clientError', (_error, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
    else socket.destroy()
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  let closing: Promise<void> | null = null
  return {
    // A listening TCP server's address is never a pipe name.
    port: (server.address() as AddressInfo).port,
    close(graceMs, sleep) {
      closing ??= new Promise<void>(resolve => {
        const timer = new AbortController()
        server.close(() => {
          timer.abort()
          resolve()
        })
        server.closeIdleConnections()
        sleep(graceMs, timer.signal).then(
          () => server.closeAllConnections(),
          () => {},
        )
      })
      return closing
    },
  }
}

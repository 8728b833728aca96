// A forwarder on loopback that keeps every exchange as it went over the wire, and can spoil one. Two stand in a run: between the
// harness and the gateway (what the harness sent and got, seen by nobody's code but its own), and between the gateway and the engine.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import type { Clock } from '../../src/domain/clock.js'

export interface Exchange {
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
  readonly startedAtMs: number
  /** 0 = no head came. */
  status: number
  /** What went to the client so far. */
  answer: string
  /** The whole answer reached the client. */
  complete: boolean
  /** What was done to it on purpose. */
  spoiled: string | null
}

export type Fault =
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly body: unknown
      readonly headers?: Readonly<Record<string, string>>
    }
  /** Milliseconds before the head. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** The connection is cut after so many events of the answer's stream. */
  | { readonly kind: 'cut'; readonly afterEvents: number }

export interface Forwarder {
  readonly url: string
  /** In order of arrival. */
  readonly exchanges: readonly Exchange[]
  close(): Promise<void>
}

export interface ForwarderOptions {
  readonly host: string
  /** 0 = any. */
  readonly port: number
  readonly target: string
  readonly clock: Clock
  /** Called once the request is read; null = let it pass. */
  readonly spoil?: (exchange: Exchange) => Fault | null
}

export async function forwarder(options: ForwarderOptions): Promise<Forwarder> {
  const exchanges: Exchange[] = []
  const server = createServer((request, response) => {
    serve(options, exchanges, request, response).catch(() => response.destroy())
  })
  server.keepAliveTimeout = 600_000
  server.requestTimeout = 0
  server.listen(options.port, options.host)
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : options.port
  return {
    url: `http://${options.host}:${port}`,
    exchanges,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function serve(
  { target, clock, spoil }: ForwarderOptions,
  exchanges: Exchange[],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const startedAtMs = clock.now()
  let body = ''
  for await (const chunk of request.setEncoding('utf8')) body += chunk
  const exchange: Exchange = {
    path: request.url ?? '/',
    headers: request.headers,
    body,
    startedAtMs,
    status: 0,
    answer: '',
    complete: false,
    spoiled: null,
  }
  exchanges.push(exchange)
  const fault = spoil?.(exchange) ?? null
  exchange.spoiled = fault === null ? null : fault.kind === 'answer' ? String(fault.status) : fault.kind
  if (fault?.kind === 'answer') {
    exchange.status = fault.status
    exchange.answer = JSON.stringify(fault.body)
    response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers })
    response.end(exchange.answer)
    return
  }
  if (fault?.kind === 'delay') await clock.sleep(fault.ms)
  await pass({ target, clock }, request, response, exchange, fault?.kind === 'cut' ? fault.afterEvents : null)
}

/** From the last event before a cut to the cut. */
const CUT_MS = 500

async function pass(
  { target, clock }: Pick<ForwarderOptions, 'target' | 'clock'>,
  request: IncomingMessage,
  response: ServerResponse,
  exchange: Exchange,
  cutAfter: number | null,
): Promise<void> {
  const { host, connection, 'transfer-encoding': _, 'content-length': __, ...headers } = request.headers
  const text = Buffer.from(exchange.body)
  const upstream = send(target + exchange.path, {
    method: request.method ?? 'GET',
    headers: { ...headers, ...(text.length > 0 && { 'content-length': text.length }) },
  })
  response.on('close', () => {
    exchange.complete = response.writableFinished
    if (!response.writableFinished) upstream.destroy()
  })
  upstream.end(text)
  const [answer] = (await once(upstream, 'response')) as [IncomingMessage]
  exchange.status = answer.statusCode ?? 0
  const { connection: closing, 'keep-alive': alive, ...kept } = answer.headers
  response.writeHead(exchange.status, kept)
  response.flushHeaders()
  const decoder = new TextDecoder()
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    exchange.answer += decoder.decode(chunk, { stream: true })
    const end = cutAfter === null ? -1 : endOfEvent(exchange.answer, cutAfter)
    const surplus = end < 0 ? 0 : Buffer.byteLength(exchange.answer.slice(end))
    await new Promise<void>(resolve => response.write(chunk.subarray(0, chunk.length - surplus), () => resolve()))
    if (end < 0) continue
    exchange.answer = exchange.answer.slice(0, end)
    // What was written before arrives as well, as on a network; without the wait it is chance.
    await clock.sleep(CUT_MS)
    response.destroy()
    return
  }
  response.end()
}

/** Where the event of that number ends; -1 = not there yet. */
function endOfEvent(text: string, count: number): number {
  let at = 0
  for (let seen = 0; seen < count; seen++) {
    const next = text.indexOf('\n\n', at)
    if (next < 0) return -1
    at = next + 2
  }
  return at
}

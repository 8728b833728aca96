// The HTTP client of the whole service, over undici: one pool per origin, limits of 900 s for heads and bodies and 30 s for
// connecting, failures as RolloutError UPSTREAM_UNREACHABLE, UPSTREAM_TIMEOUT or UPSTREAM_MALFORMED. An aborted call rejects with
// the signal's own reason. Nothing is retried here, and nothing of the body is logged.

import { Agent, type Dispatcher } from 'undici'
import { RolloutError } from '../domain/errors.js'

export interface HttpClientOptions {
  /** Most connections per origin. */
  readonly connections: number
  readonly headersTimeoutMs?: number
  readonly bodyTimeoutMs?: number
  readonly connectTimeoutMs?: number
}

export interface HttpCall {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal
  /** Overrides of the client's limits, milliseconds. */
  readonly headersTimeoutMs?: number
  readonly bodyTimeoutMs?: number
}

export interface HttpAnswer {
  readonly status: number
  /** Lower-case names; of a repeated header the first value. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Read once: chunks as they come. Not reading them holds the sender back. Breaking off closes the connection. */
  chunks(): AsyncIterable<Uint8Array>
  /** Whole body, at most `maxBytes` (default 256 MiB), else UPSTREAM_MALFORMED. */
  bytes(maxBytes?: number): Promise<Buffer>
  /** The same as UTF-8. */
  text(maxBytes?: number): Promise<string>
  /** Drops what is left of the body. */
  discard(): void
}

export interface HttpClient {
  request(call: HttpCall): Promise<HttpAnswer>
  /** Cuts running calls and closes all connections. */
  close(): Promise<void>
}

const MAX_ANSWER_BYTES = 256 * 1024 * 1024

export function createHttpClient(options: HttpClientOptions): HttpClient {
  const agent = new Agent({
    connections: options.connections,
    pipelining: 1,
    headersTimeout: options.headersTimeoutMs ?? 900_000,
    bodyTimeout: options.bodyTimeoutMs ?? 900_000,
    connect: { timeout: options.connectTimeoutMs ?? 30_000 },
  })
  return {
    async request(call) {
      try {
        const response = await agent.request({
          origin: new URL(call.url).origin,
          path: pathOf(call.url),
          method: call.method,
          headers: call.headers ?? {},
          body: call.body ?? null,
          signal: call.signal ?? null,
          ...(call.headersTimeoutMs !== undefined && { headersTimeout: call.headersTimeoutMs }),
          ...(call.bodyTimeoutMs !== undefined && { bodyTimeout: call.bodyTimeoutMs }),
        })
        return answerOf(response, call)
      } catch (cause) {
        throw failureOf(cause, call)
      }
    },
    close: () => agent.destroy(),
  }
}

function answerOf(response: Dispatcher.ResponseData, call: HttpCall): HttpAnswer {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of response.body) yield chunk as Uint8Array
    } catch (cause) {
      throw failureOf(cause, call)
    }
  }
  async function bytes(maxBytes = MAX_ANSWER_BYTES): Promise<Buffer> {
    const parts: Uint8Array[] = []
    let size = 0
    for await (const chunk of chunks()) {
      size += chunk.byteLength
      if (size > maxBytes) {
        throw new RolloutError('UPSTREAM_MALFORMED', `answer of ${originOf(call.url)} is over ${maxBytes} bytes`)
      }
      parts.push(chunk)
    }
    return Buffer.concat(parts)
  }
  return {
    status: response.statusCode,
    headers: Object.fromEntries(
      Object.entries(response.headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]),
    ),
    chunks,
    bytes,
    text: async maxBytes => (await bytes(maxBytes)).toString('utf8'),
    discard() {
      // Destroying is what frees the connection when a body is not wanted; the error that follows is of our own making.
      response.body.on('error', () => {}).destroy()
    },
  }
}

/** Any failure of undici as an error of ours; an abort stays what the aborting side gave as reason. */
function failureOf(cause: unknown, call: HttpCall): unknown {
  if (call.signal?.aborted) return call.signal.reason
  if (cause instanceof RolloutError) return cause
  const code = String((cause as { code?: unknown } | null)?.code ?? '')
  const details = { origin: originOf(call.url), cause: code }
  if (/TIMEOUT|ETIMEDOUT/.test(code)) {
    return new RolloutError('UPSTREAM_TIMEOUT', `${details.origin} did not answer in time (${code})`, {
      details: { ...details, connected: code !== 'UND_ERR_CONNECT_TIMEOUT' },
      cause,
    })
  }
  const text = cause instanceof Error ? cause.message : String(cause)
  return new RolloutError('UPSTREAM_UNREACHABLE', `${details.origin} cannot be reached: ${code || text}`, {
    details,
    cause,
  })
}

const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : 'an invalid URL')

function pathOf(url: string): string {
  const { pathname, search } = new URL(url)
  return pathname + search
}

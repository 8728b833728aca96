// Process of the benchmark: an inference server that costs next to nothing. It reads a request's bytes, looks only for `"stream":true`,
// and answers with bytes made before. Also, with `--pipe URL`, the bare byte pass-through in front of another server.

import { Agent, createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promptTokensOf, streamedAnswer, wholeAnswer } from './work.js'

const upstream = process.argv[2] === '--pipe' ? new URL(process.argv[3] ?? '') : null
const agent = new Agent({ keepAlive: true, maxSockets: 2_000 })

const server = createServer({ keepAliveTimeout: 600_000, noDelay: true }, (incoming, response) => {
  if (upstream === null) void answer(incoming, response)
  else pass(upstream, incoming, response)
})
server.listen(0, '127.0.0.1', () => {
  // A listening TCP server's address is never a pipe name.
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
})
process.on('message', () => process.send?.({ cpuMs: cpuMs() }))
process.on('disconnect', () => process.exit(0))

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** Bytes in, bytes out: no look at either. */
function pass(to: URL, incoming: IncomingMessage, response: ServerResponse): void {
  const { method, url, headers } = incoming
  const outgoing = httpRequest({ host: to.hostname, port: to.port, method, path: url, headers, agent }, answered => {
    response.writeHead(answered.statusCode ?? 502, answered.headers)
    answered.pipe(response)
  })
  outgoing.on('error', () => response.destroy())
  incoming.pipe(outgoing)
}

interface Prepared {
  readonly whole: Buffer
  readonly streamed: Buffer
}
const prepared = new Map<number, Prepared>()

function preparedFor(bytes: number): Prepared {
  // Sizes are rounded: requests of one cell differ by a few bytes, and the gateway's by what it adds.
  const size = [4_000, 40_000, 400_000].find(limit => bytes < limit * 2.5) ?? 400_000
  const known = prepared.get(size)
  if (known !== undefined) return known
  const tokens = promptTokensOf(size)
  const made = { whole: Buffer.from(wholeAnswer(tokens)), streamed: Buffer.from(streamedAnswer(tokens)) }
  prepared.set(size, made)
  return made
}

async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  let bytes = 0
  let isStream = false
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength
    isStream ||= chunk.includes('"stream":true')
  }
  if (incoming.url === '/tokenize') {
    const body = JSON.stringify({ count: 20, max_model_len: 262_144, tokens: Array(20).fill(5) })
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
    return
  }
  const { whole, streamed } = preparedFor(bytes)
  if (isStream) response.writeHead(200, { 'content-type': 'text/event-stream' }).end(streamed)
  else {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': whole.byteLength }).end(whole)
  }
}

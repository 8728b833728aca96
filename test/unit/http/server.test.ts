import { once } from 'node:events'
import { request as rawRequest } from 'node:http'
import { connect } from 'node:net'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import t from 'tap'
import { RolloutError } from '../../../src/domain/errors.js'
import { answerWriter } from '../../../src/http/answer.js'
import { readBody } from '../../../src/http/body.js'
import { type HttpServer, listen } from '../../../src/http/server.js'

const never = (_ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))

const close = (server: HttpServer): Promise<void> => server.close(0, async () => {})

/** A server that answers the size of the decoded body, or the code of the refusal. */
const sizes = (maxBytes: number): Promise<HttpServer> =>
  listen({ host: '127.0.0.1', port: 0 }, (request, response) => {
    const answer = answerWriter(response)
    readBody(request, maxBytes).then(
      body => answer.json(200, { bytes: body.byteLength, start: body.subarray(0, 5).toString() }),
      (cause: unknown) =>
        cause instanceof RolloutError ? answer.json(cause.status, { code: cause.code }) : answer.destroy(),
    )
  })

t.test('bodies are decoded by their content encoding', async t => {
  const server = await sizes(1_000_000)
  t.teardown(() => close(server))
  const text = 'hello'.repeat(1000)
  const post = async (encoding: string | null, body: Uint8Array | string) => {
    const response = await fetch(`http://127.0.0.1:${server.port}/`, {
      method: 'POST',
      body: typeof body === 'string' ? body : Uint8Array.from(body),
      headers: encoding === null ? {} : { 'content-encoding': encoding },
    })
    return { status: response.status, ...((await response.json()) as object) }
  }
  const whole = { status: 200, bytes: 5000, start: 'hello' }
  t.strictSame(await post(null, text), whole)
  t.strictSame(await post('identity', text), whole)
  t.strictSame(await post('gzip', gzipSync(text)), whole)
  t.strictSame(await post('deflate', deflateSync(text)), whole)
  t.strictSame(await post('deflate', deflateRawSync(text)), whole, 'raw deflate under the name deflate')
  t.strictSame(await post('br', brotliCompressSync(text)), whole)
  t.strictSame(await post('gzip, br', brotliCompressSync(gzipSync(text))), whole, 'two encodings, undone in reverse')
  t.strictSame(await post('compress', text), { status: 415, code: 'DIALECT_UNSUPPORTED_ENCODING' })
  t.strictSame(await post('gzip', text), { status: 400, code: 'DIALECT_INVALID_REQUEST' })
})

t.test('a body over the limit is refused, on the wire and after decoding', async t => {
  const server = await sizes(1000)
  t.teardown(() => close(server))
  const post = async (body: Uint8Array, headers: Record<string, string> = {}) => {
    const response = await fetch(`http://127.0.0.1:${server.port}/`, {
      method: 'POST',
      body: Uint8Array.from(body),
      headers,
    })
    return { status: response.status, ...((await response.json()) as object) }
  }
  t.match(await post(Buffer.alloc(1000)), { status: 200, bytes: 1000 })
  t.strictSame(await post(Buffer.alloc(1001)), { status: 413, code: 'DIALECT_TOO_LARGE' })
  t.strictSame(await post(Buffer.alloc(8_000_000)), { status: 413, code: 'DIALECT_TOO_LARGE' })
  t.strictSame(await post(gzipSync(Buffer.alloc(100_000)), { 'content-encoding': 'gzip' }), {
    status: 413,
    code: 'DIALECT_TOO_LARGE',
  })
})

t.test('a WebSocket upgrade is answered 426', async t => {
  const server = await sizes(1000)
  t.teardown(() => close(server))
  const request = rawRequest({
    port: server.port,
    host: '127.0.0.1',
    path: '/v1/responses',
    headers: { connection: 'upgrade', upgrade: 'websocket' },
  })
  request.end()
  const [response] = (await once(request, 'response')) as [{ statusCode: number; resume(): void }]
  response.resume()
  t.equal(response.statusCode, 426)
})

t.test('a stream whose client stops reading and leaves ends its wait, undelivered', async t => {
  let seen: Promise<{ delivered: boolean; waited: boolean }> | null = null
  const server = await listen({ host: '127.0.0.1', port: 0 }, (_request, response) => {
    const answer = answerWriter(response)
    answer.start(200, { 'content-type': 'text/event-stream' })
    seen = (async () => {
      let writes = 0
      // Far more than the buffers of a loopback connection hold: only the client's leaving ends this.
      while (!answer.closed && writes < 10_000) {
        await answer.write('x'.repeat(100_000))
        writes += 1
      }
      answer.end()
      return { delivered: await answer.delivered, waited: writes < 10_000 }
    })()
  })
  t.teardown(() => close(server))
  const socket = connect(server.port, '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  await once(socket, 'data')
  socket.pause()
  socket.destroy()
  await once(socket, 'close')
  while (seen === null) await new Promise(resolve => setImmediate(resolve))
  t.strictSame(await seen, { delivered: false, waited: true })
})

t.test('a whole answer counts as delivered', async t => {
  let delivered: Promise<boolean> | null = null
  const server = await listen({ host: '127.0.0.1', port: 0 }, (_request, response) => {
    const answer = answerWriter(response)
    delivered = answer.delivered
    answer.json(200, { ok: true })
  })
  t.teardown(() => close(server))
  t.strictSame(await (await fetch(`http://127.0.0.1:${server.port}/`)).json(), { ok: true })
  t.equal(await delivered, true)
})

t.test('closing waits for a running answer, and cuts it at the deadline', async t => {
  const server = await listen({ host: '127.0.0.1', port: 0 }, (_request, response) => {
    answerWriter(response).start(200, {})
  })
  const response = await fetch(`http://127.0.0.1:${server.port}/`)
  let deadline = () => {}
  const closed = server.close(
    1000,
    () =>
      new Promise(resolve => {
        deadline = resolve
      }),
  )
  t.equal(server.close(1000, never), closed, 'closing twice is closing once')
  await t.rejects(fetch(`http://127.0.0.1:${server.port}/`), 'no new connection')
  deadline()
  await closed
  await t.rejects(response.text(), 'the running answer is cut')
})

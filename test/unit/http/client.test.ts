import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { createHttpClient } from '../../../src/http/client.js'

async function serve(
  t: { teardown(fn: () => void): void },
  handle: (request: IncomingMessage, response: ServerResponse) => void,
) {
  const server = createServer(handle)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

t.test('an answer comes with status, headers and text', async t => {
  const { url } = await serve(t, (request, response) => {
    request.setEncoding('utf8')
    let body = ''
    request.on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', () => {
      response.writeHead(418, { 'Retry-After': '7' })
      response.end(`${request.method} ${request.url} ${body}`)
    })
  })
  const client = createHttpClient({ connections: 2 })
  t.teardown(() => client.close())
  const answer = await client.request({ method: 'POST', url: `${url}/a/b?c=1`, body: 'naïve' })
  t.equal(answer.status, 418)
  t.equal(answer.headers['retry-after'], '7')
  t.equal(await answer.text(), 'POST /a/b?c=1 naïve')
})

t.test('failures have the codes of an upstream', async t => {
  const { server, url } = await serve(t, (request, response) => {
    if (request.url === '/cut') {
      response.writeHead(200)
      response.write('half', () => request.socket.destroy())
    } else if (request.url === '/reset') request.socket.destroy()
    else if (request.url === '/long') response.end('x'.repeat(100))
  })
  const client = createHttpClient({ connections: 2, headersTimeoutMs: 50 })
  t.teardown(() => client.close())
  const get = (path: string) => client.request({ method: 'GET', url: url + path })
  await t.rejects(get('/silent'), { code: 'UPSTREAM_TIMEOUT' })
  await t.rejects(get('/reset'), { code: 'UPSTREAM_UNREACHABLE' })
  await t.rejects((await get('/cut')).text(), { code: 'UPSTREAM_UNREACHABLE' })
  await t.rejects((await get('/long')).text(10), { code: 'UPSTREAM_MALFORMED' })
  server.closeAllConnections()
  await new Promise(resolve => server.close(resolve))
  await t.rejects(get('/'), { code: 'UPSTREAM_UNREACHABLE', details: { cause: 'ECONNREFUSED' } })
})

t.test('an aborted call closes its connection and rejects with the reason given', async t => {
  const events: string[] = []
  const { server, url } = await serve(t, (request, response) => {
    if (request.url === '/stream') response.write('first')
  })
  const client = createHttpClient({ connections: 2 })
  t.teardown(() => client.close())
  for (const path of ['/waiting', '/stream']) {
    const abort = new AbortController()
    const closed = new Promise<void>(resolve =>
      server.once('request', (request: IncomingMessage) =>
        request.socket.once('close', () => {
          events.push(path)
          resolve()
        }),
      ),
    )
    const arrived = once(server, 'request')
    const call = client.request({ method: 'GET', url: url + path, signal: abort.signal })
    const outcome = call.then(answer => answer.text())
    const refused = t.rejects(outcome, { message: 'client left' })
    await arrived
    if (path === '/stream') await call
    abort.abort(new Error('client left'))
    await refused
    await closed
  }
  t.strictSame(events, ['/waiting', '/stream'])
})

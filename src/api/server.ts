// The control API over HTTP: routes, token, error shapes (W-5). It decides nothing about tasks; it asks its ports.

import type { Socket } from 'node:net'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { errorData } from '../domain/errors.js'
import { fail, refuse } from './answers.js'
import { authorize } from './auth.js'
import type { ControlOptions } from './ports.js'
import { addRoutes } from './routes.js'

/** Answers smaller than this are sent as they are. */
const COMPRESS_BYTES = 32 * 1024
const compress = promisify(gzip)

/** Not yet listening. Closing it ends event streams and long polls at once and lets other requests finish. */
export function controlServer(options: ControlOptions): FastifyInstance {
  const server = fastify({
    bodyLimit: options.plan.limits.bodyBytes,
    // The defaults reset connections after a long silence (decisions.md, section 7).
    keepAliveTimeout: 600_000,
    requestTimeout: 0,
    forceCloseConnections: 'idle',
    return503OnClosing: true,
    routerOptions: { maxParamLength: 200 },
  })

  server.addHook('onRequest', async (request, reply) => {
    const verdict = authorize({ method: request.method, path: pathOf(request), headers: request.headers }, options.auth)
    switch (verdict) {
      case 'allowed':
        return
      case 'session-key':
        return fail(reply, 403, "a session's model key opens no control route")
      case 'foreign-page':
        return fail(reply, 403, 'a route without token takes no requests of web pages')
      default:
        reply.header('www-authenticate', 'Bearer')
        return fail(reply, 401, `${verdict} control token: send it as X-Polar-Control-Token or Authorization: Bearer`)
    }
  })

  // Any content type is read as JSON: what else a client may send is refused by the schema with its path.
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', { parseAs: 'string' }, (_request, text, done) => {
    try {
      done(null, text === '' ? undefined : JSON.parse(String(text)))
    } catch (cause) {
      done(new NotJson((cause as Error).message), undefined)
    }
  })

  // A connection that brought no request yet is not idle to Node, and would hold up a close until its client gives up.
  const unused = new Set<Socket>()
  server.server.on('connection', socket => {
    unused.add(socket)
    socket.once('close', () => unused.delete(socket))
  })
  server.server.on('request', request => unused.delete(request.socket))
  let closing = false
  server.addHook('preClose', async () => {
    closing = true
    options.hub.close()
    for (const socket of unused) socket.destroy()
  })
  server.addHook('onSend', async (request, reply, payload) => {
    // An answer that was on its way when the close began must not leave an idle connection behind.
    if (closing) reply.header('connection', 'close')
    if (typeof payload !== 'string' || payload.length < COMPRESS_BYTES) return payload
    if (!/\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))) return payload
    const packed = await compress(payload)
    reply
      .header('content-encoding', 'gzip')
      .header('vary', 'accept-encoding')
      .header('content-length', packed.byteLength)
    return packed
  })

  server.setNotFoundHandler((request, reply) =>
    fail(reply, 404, `there is no route ${request.method} ${pathOf(request)}`),
  )
  server.setErrorHandler((error, request, reply) => answerError(error, request, reply, options))
  addRoutes(server, options)
  return server
}

class NotJson extends Error {
  readonly statusCode = 422
}

const pathOf = (request: FastifyRequest): string => request.url.split('?')[0] ?? ''

function answerError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  options: ControlOptions,
): FastifyReply {
  if (error instanceof NotJson)
    return fail(reply, 422, [{ loc: ['body'], msg: `wanted JSON: ${error.message}`, type: 'json_invalid' }])
  // Recursion over JSON that is nested thousands deep.
  if (error instanceof RangeError && /call stack/.test(error.message))
    return fail(reply, 422, [{ loc: ['body'], msg: 'nested too deeply', type: 'too_deep' }])
  const status = (error as { statusCode?: unknown }).statusCode
  if (status === 413)
    return fail(reply, 413, `the body is over limits.bodyBytes (${options.plan.limits.bodyBytes} bytes)`)
  if (typeof status === 'number' && status >= 400 && status < 500) return fail(reply, status, (error as Error).message)
  const data = errorData(error)
  if (data.code === 'INTERNAL_BUG') options.onFailure(`${request.method} ${pathOf(request)}`, error)
  return refuse(reply, data)
}

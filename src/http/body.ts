// Reads the body of a request: with a limit on both the bytes on the wire and the decoded ones, and with the content encodings
// gzip, deflate, br and zstd. A body over the limit is read to its end and thrown away, so that the client can read the answer.

import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, inflateRaw } from 'node:zlib'
import { RolloutError } from '../domain/errors.js'
import { decodeZstd, ZstdTooLarge } from './zstd.js'

const decoders = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  br: promisify(brotliDecompress),
  zstd: (body: Uint8Array, options: { maxOutputLength: number }) => decodeZstd(body, options.maxOutputLength),
  // Some clients send raw deflate under this name.
  deflate: async (body: Uint8Array, options: { maxOutputLength: number }) =>
    ((body[0] ?? 0) & 0x0f) === 8 ? promisify(inflate)(body, options) : promisify(inflateRaw)(body, options),
} as const

/**
 * The decoded body as bytes, at most `maxBytes`.
 *
 * Throws RolloutError DIALECT_TOO_LARGE, DIALECT_UNSUPPORTED_ENCODING (naming what is supported) or DIALECT_INVALID_REQUEST
 * (broken encoding). Rejects with the stream's own error when the client leaves before the end.
 */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const encodings = (request.headers['content-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '' && name !== 'identity')
  const parts: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength
    if (bytes <= maxBytes) parts.push(chunk)
    else parts.length = 0
    // A client that goes on for ever is cut off; it will see a reset in place of the answer.
    if (bytes > maxBytes + MAX_DISCARDED_BYTES) request.destroy()
  }
  if (bytes > maxBytes) throw tooLarge(maxBytes)
  let body: Buffer = Buffer.concat(parts)
  for (const name of encodings.reverse()) {
    if (!isKnown(name)) {
      throw new RolloutError(
        'DIALECT_UNSUPPORTED_ENCODING',
        `content-encoding ${name} is not supported; wanted gzip, deflate, br, zstd or none`,
      )
    }
    body = await decode(name, body, maxBytes)
  }
  return body
}

const MAX_DISCARDED_BYTES = 1024 * 1024 * 1024

const isKnown = (name: string): name is keyof typeof decoders => Object.hasOwn(decoders, name)

const tooLarge = (maxBytes: number): RolloutError =>
  new RolloutError('DIALECT_TOO_LARGE', `the body is over the limit of ${maxBytes} bytes`)

async function decode(name: keyof typeof decoders, body: Buffer, maxBytes: number): Promise<Buffer> {
  try {
    return await decoders[name](body, { maxOutputLength: maxBytes })
  } catch (cause) {
    if (cause instanceof ZstdTooLarge || (cause as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE')
      throw tooLarge(maxBytes)
    throw new RolloutError('DIALECT_INVALID_REQUEST', `the body is not valid ${name}`, { cause })
  }
}

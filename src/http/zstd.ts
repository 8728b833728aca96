// Decodes zstd bodies (Codex sends them) under a limit that holds while decoding: a body that would expand beyond it ends at the first
// block that goes over. The frames are walked here before the decoder sees them, since it allocates the window that a frame's header
// claims, up to 2 GB. Format: RFC 8878.

import { Decompress } from 'fzstd'

/** Every decoder should take windows of this size (RFC 8878, section 3.1.1.1.2), whatever the limit of the body. */
const WINDOW_BYTES = 8 * 1024 * 1024
/** Bytes decoded between two turns of the event loop. */
const TURN_BYTES = 1024 * 1024

export class ZstdTooLarge extends Error {
  override readonly name = 'ZstdTooLarge'
}

/**
 * The decoded bytes, at most `maxBytes`. Concatenated and skippable frames are taken, dictionaries are not.
 * Throws ZstdTooLarge when the content, or the window of a frame, is over the limit; Error for anything that is no zstd.
 */
export async function decodeZstd(body: Uint8Array, maxBytes: number): Promise<Buffer> {
  const parts: Uint8Array[] = []
  let bytes = 0
  let sinceTurn = 0
  for (const pieces of framesOf(body, Math.max(maxBytes, WINDOW_BYTES))) {
    const decoder = new Decompress(data => {
      bytes += data.byteLength
      sinceTurn += data.byteLength
      if (bytes > maxBytes) throw new ZstdTooLarge()
      // A copy: blocks may be views of the decoder's own window.
      if (data.byteLength > 0) parts.push(data.slice())
    })
    for (const [index, piece] of pieces.entries()) {
      decoder.push(piece, index === pieces.length - 1)
      if (sinceTurn < TURN_BYTES) continue
      sinceTurn = 0
      await new Promise(resolve => setImmediate(resolve))
    }
  }
  return Buffer.concat(parts)
}

/** The frames with content, each as its header and its blocks. Throws for a window over `maxWindow`, and for what is cut or no frame. */
function* framesOf(body: Uint8Array, maxWindow: number): Generator<readonly Uint8Array[]> {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength)
  let offset = 0
  if (body.byteLength === 0) throw new Error('no frame')
  while (offset < body.byteLength) {
    const magic = view.getUint32(offset, true)
    if ((magic & 0xfffffff0) >>> 0 === 0x184d2a50) {
      offset += 8 + view.getUint32(offset + 4, true)
      continue
    }
    if (magic !== 0xfd2fb528) throw new Error('no zstd frame')
    const { headerBytes, windowBytes, hasChecksum } = frameHeader(view, offset + 4)
    if (windowBytes > maxWindow) throw new ZstdTooLarge()
    const pieces: Uint8Array[] = []
    let start = offset
    let end = offset + headerBytes
    for (let isLast = false; !isLast; start = end) {
      const block = view.getUint8(end) | (view.getUint8(end + 1) << 8) | (view.getUint8(end + 2) << 16)
      isLast = (block & 1) === 1
      // A run-length block is one byte, however long its content.
      end += 3 + (((block >> 1) & 3) === 1 ? 1 : block >> 3)
      if (isLast && hasChecksum) end += 4
      if (end > body.byteLength) throw new Error('the last frame is cut')
      pieces.push(body.subarray(start, end))
    }
    yield pieces
    offset = end
  }
}

function frameHeader(view: DataView, offset: number) {
  const descriptor = view.getUint8(offset)
  const isSingleSegment = (descriptor & 0x20) !== 0
  const dictionary = descriptor & 3
  if (dictionary !== 0) throw new Error('dictionaries are not supported')
  const sizeCode = descriptor >> 6
  const sizeBytes = sizeCode === 0 ? (isSingleSegment ? 1 : 0) : 1 << sizeCode
  const sizeAt = offset + (isSingleSegment ? 1 : 2)
  const readSize = () => {
    switch (sizeBytes) {
      case 1:
        return view.getUint8(sizeAt)
      case 2:
        return view.getUint16(sizeAt, true) + 256
      case 4:
        return view.getUint32(sizeAt, true)
      default:
        return view.getUint32(sizeAt, true) + view.getUint32(sizeAt + 4, true) * 2 ** 32
    }
  }
  const windowByte = isSingleSegment ? 0 : view.getUint8(offset + 1)
  const base = 2 ** (10 + (windowByte >> 3))
  return {
    headerBytes: 4 + (sizeAt - offset) + sizeBytes,
    windowBytes: isSingleSegment ? readSize() : base + (base / 8) * (windowByte & 7),
    hasChecksum: (descriptor & 4) !== 0,
  }
}

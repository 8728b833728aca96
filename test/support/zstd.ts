// zstd bodies for tests: one that the reference encoder wrote (`zstd -19`), and frames put together by hand, since Node 20 has no encoder.

const FRAME_HEADER = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38]

/** A Responses request of 1,201 bytes whose user message starts with `zstd body, naïve 🙂`. */
export const COMPRESSED = Buffer.from(
  'KLUv/QRoLQMAQsYVHMCnA/9bcz/olsnJVtvyiib3ooCybanfqs+pi52LsDxttsG7oJ8yVW4RGsstnzIzjRM5jwcanBOilLBamKzLdVrc6S9hTKbvSmDgGw237vR2A2eptF0JAxAEIsQ/ZFzfNQ/K4m3q',
  'base64',
)

/** A frame without content size, window 128 kB. */
export const frame = (...blocks: readonly Buffer[]): Buffer => Buffer.concat([Buffer.from(FRAME_HEADER), ...blocks])

const blockHeader = (size: number, type: number, isLast: boolean): Buffer => {
  const header = Buffer.alloc(3)
  header.writeUIntLE((size << 3) | (type << 1) | (isLast ? 1 : 0), 0, 3)
  return header
}

export const rawBlock = (text: string, isLast: boolean): Buffer =>
  Buffer.concat([blockHeader(Buffer.byteLength(text), 0, isLast), Buffer.from(text)])

/** One character, `length` times. */
export const runBlock = (character: string, length: number, isLast: boolean): Buffer =>
  Buffer.concat([blockHeader(length, 1, isLast), Buffer.from(character)])

/** Some kilobytes that expand to 200 MB of white space. */
export const BOMB = frame(...Array.from({ length: 1600 }, (_, index) => runBlock(' ', 131_072, index === 1599)))

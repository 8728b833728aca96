// Byte-level vocabularies spell each byte as one printable character (GPT-2's table). Here token strings become the bytes they
// stand for, and bytes become text without ever cutting a UTF-8 sequence: a token may end in the middle of a character.

/** Character of the byte-level alphabet -> byte value. */
function byteAlphabet(): ReadonlyMap<string, number> {
  const map = new Map<string, number>()
  const printable = (byte: number): boolean =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255)
  let shifted = 0
  for (let byte = 0; byte < 256; byte++) {
    if (printable(byte)) map.set(String.fromCharCode(byte), byte)
    else map.set(String.fromCharCode(256 + shifted++), byte)
  }
  return map
}

/** Answers with a token string's bytes; a character outside the alphabet stands for its own UTF-8 (added tokens). */
export function byteReader(): (token: string) => Uint8Array {
  const alphabet = byteAlphabet()
  const encoder = new TextEncoder()
  return token => {
    const bytes: number[] = []
    for (const character of token) {
      const byte = alphabet.get(character)
      if (byte === undefined) bytes.push(...encoder.encode(character))
      else bytes.push(byte)
    }
    return Uint8Array.from(bytes)
  }
}

/** Text of a growing list of ids. Never gives half a character: the pieces joined are the text of all ids. */
export interface IncrementalDecoder {
  /** The text that `id` completes; empty while a character is unfinished. */
  push(id: number): string
  /** What is left at the end; an unfinished character becomes U+FFFD. */
  end(): string
}

/** A decoder over `bytesOf`; ids for which `skip` holds give no text. */
export function incrementalDecoder(
  bytesOf: (id: number) => Uint8Array,
  skip: (id: number) => boolean,
): IncrementalDecoder {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  return {
    push: id => (skip(id) ? '' : decoder.decode(bytesOf(id), { stream: true })),
    end: () => decoder.decode(),
  }
}

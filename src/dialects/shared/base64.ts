// Text carried through a harness that keeps an opaque field but drops thinking (Gemini's thoughtSignature, Responses' encrypted_content).
// Base64 of UTF-8 behind a prefix of ours, so that a foreign value is never read as text (case gemini-5). Nothing secret is in it.

const PREFIX = 'sextant:'

/** `text` as an opaque value. */
export function sealText(text: string): string {
  const bytes = new TextEncoder().encode(PREFIX + text)
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary)
}

/** The text of a value that `sealText` made; null for anything else. */
export function openText(sealed: unknown): string | null {
  if (typeof sealed !== 'string' || !/^[A-Za-z0-9+/]+=*$/.test(sealed)) return null
  let binary: string
  try {
    binary = atob(sealed)
  } catch {
    return null
  }
  if (!binary.startsWith(PREFIX)) return null
  const bytes = Uint8Array.from(binary, character => character.charCodeAt(0))
  return new TextDecoder().decode(bytes).slice(PREFIX.length)
}

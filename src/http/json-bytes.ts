// JSON as UTF-8 bytes, read in place: where values end, lists of ids, numbers as float32. Each function takes the place of a value's first
// byte and gives the place after its last, or -1 for what is no JSON or too unusual to be worth reading here: the caller then takes
// JSON.parse. Accepting means valid (test/property/answer-bytes.test.ts holds it against JSON.parse).

const QUOTE = 34
const COMMA = 44
const COLON = 58
const BACKSLASH = 92
const OPEN_LIST = 91
const CLOSE_LIST = 93
const OPEN_OBJECT = 123
const CLOSE_OBJECT = 125
const ZERO = 48

/** Nesting that is skipped; deeper is unusual. */
const MAX_DEPTH = 32

/** Place of the first byte from `at` that is no white space. */
export function skipSpace(bytes: Uint8Array, at: number): number {
  let next = at
  for (let byte = bytes[next]; byte === 32 || byte === 10 || byte === 13 || byte === 9; byte = bytes[next]) next += 1
  return next
}

/** Any value. */
export function skipValue(bytes: Uint8Array, at: number, depth = 0): number {
  switch (bytes[at]) {
    case QUOTE:
      return skipString(bytes, at)
    case OPEN_OBJECT:
      return depth < MAX_DEPTH ? skipObject(bytes, at, depth + 1) : -1
    case OPEN_LIST:
      return depth < MAX_DEPTH ? skipList(bytes, at, depth + 1) : -1
    case 116:
      return skipWord(bytes, at, TRUE)
    case 102:
      return skipWord(bytes, at, FALSE)
    case 110:
      return skipWord(bytes, at, NULL)
    default:
      return skipNumber(bytes, at)
  }
}

const wordOf = (text: string): Uint8Array => new TextEncoder().encode(text)
const TRUE = wordOf('true')
const FALSE = wordOf('false')
const NULL = wordOf('null')

const skipWord = (bytes: Uint8Array, at: number, word: Uint8Array): number =>
  startsWith(bytes, at, word) ? at + word.length : -1

/** True when `bytes` has `part` at that place. */
export function startsWith(bytes: Uint8Array, at: number, part: Uint8Array): boolean {
  for (let index = 0; index < part.length; index += 1) if (bytes[at + index] !== part[index]) return false
  return true
}

export function skipString(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) return -1
  let next = at + 1
  for (;;) {
    const byte = bytes[next] ?? 0
    next += 1
    if (byte === QUOTE) return next
    if (byte < 32) return -1
    if (byte === BACKSLASH) {
      next = skipEscape(bytes, next)
      if (next === -1) return -1
    }
  }
}

function skipEscape(bytes: Uint8Array, at: number): number {
  const escaped = bytes[at] ?? 0
  if (escaped !== 117) return SINGLE_ESCAPES.has(escaped) ? at + 1 : -1
  for (let digit = 1; digit <= 4; digit += 1) if (!isHex(bytes[at + digit] ?? 0)) return -1
  return at + 5
}

/** `"`, `\`, `/`, b, f, n, r, t. */
const SINGLE_ESCAPES: ReadonlySet<number> = new Set([34, 92, 47, 98, 102, 110, 114, 116])
const isDigit = (byte: number): boolean => byte >= ZERO && byte <= 57
const isHex = (byte: number): boolean => isDigit(byte) || (byte >= 65 && byte <= 70) || (byte >= 97 && byte <= 102)

// Both without a callback: they are called for each entry of a list of logprobs.

function skipList(bytes: Uint8Array, at: number, depth: number): number {
  let next = skipSpace(bytes, at + 1)
  if (bytes[next] === CLOSE_LIST) return next + 1
  for (;;) {
    next = skipValue(bytes, next, depth)
    if (next === -1) return -1
    if ((bytes[next] ?? 0) <= 32) next = skipSpace(bytes, next)
    const byte = bytes[next]
    if (byte === CLOSE_LIST) return next + 1
    if (byte !== COMMA) return -1
    next += 1
    if ((bytes[next] ?? 0) <= 32) next = skipSpace(bytes, next)
  }
}

function skipObject(bytes: Uint8Array, at: number, depth: number): number {
  let next = skipSpace(bytes, at + 1)
  if (bytes[next] === CLOSE_OBJECT) return next + 1
  for (;;) {
    next = skipString(bytes, next)
    if (next === -1) return -1
    next = skipColon(bytes, next)
    if (next === -1) return -1
    next = skipSpace(bytes, skipValue(bytes, next, depth))
    if (next === -1) return -1
    const byte = bytes[next]
    if (byte === CLOSE_OBJECT) return next + 1
    if (byte !== COMMA) return -1
    next = skipSpace(bytes, next + 1)
  }
}

/** Over the colon after a key, and the white space around it. */
export function skipColon(bytes: Uint8Array, at: number): number {
  const colon = bytes[at] === COLON ? at : skipSpace(bytes, at)
  if (bytes[colon] !== COLON) return -1
  return (bytes[colon + 1] ?? 0) <= 32 ? skipSpace(bytes, colon + 1) : colon + 1
}

/** Calls `item` with the place of each value of the list at that place; it gives the place after the value, or -1. */
export function eachItem(bytes: Uint8Array, at: number, item: (value: number) => number): number {
  if (bytes[at] !== OPEN_LIST) return -1
  let next = skipSpace(bytes, at + 1)
  if (bytes[next] === CLOSE_LIST) return next + 1
  for (;;) {
    next = item(next)
    if (next === -1) return -1
    next = skipSpace(bytes, next)
    if (bytes[next] === CLOSE_LIST) return next + 1
    if (bytes[next] !== COMMA) return -1
    next = skipSpace(bytes, next + 1)
  }
}

/**
 * Calls `field` for each field of the object at that place, with the place of the key's first byte within its quotes and of the closing
 * quote, and the place of the value. `field` gives the place after the value, or -1.
 */
export function eachField(
  bytes: Uint8Array,
  at: number,
  field: (from: number, to: number, value: number) => number,
): number {
  if (bytes[at] !== OPEN_OBJECT) return -1
  let next = skipSpace(bytes, at + 1)
  if (bytes[next] === CLOSE_OBJECT) return next + 1
  for (;;) {
    const from = next + 1
    next = skipString(bytes, next)
    if (next === -1) return -1
    const to = next - 1
    next = skipColon(bytes, next)
    if (next === -1) return -1
    next = field(from, to, next)
    if (next === -1) return -1
    next = skipSpace(bytes, next)
    if (bytes[next] === CLOSE_OBJECT) return next + 1
    if (bytes[next] !== COMMA) return -1
    next = skipSpace(bytes, next + 1)
  }
}

function skipNumber(bytes: Uint8Array, at: number): number {
  let next = bytes[at] === 45 ? at + 1 : at
  const first = bytes[next] ?? 0
  if (!isDigit(first)) return -1
  next = first === ZERO ? next + 1 : skipDigits(bytes, next)
  let byte = bytes[next] ?? 0
  if (byte === 46) {
    if (!isDigit(bytes[next + 1] ?? 0)) return -1
    next = skipDigits(bytes, next + 1)
    byte = bytes[next] ?? 0
  }
  if (byte === 101 || byte === 69) {
    next += 1
    if (bytes[next] === 43 || bytes[next] === 45) next += 1
    if (!isDigit(bytes[next] ?? 0)) return -1
    next = skipDigits(bytes, next)
  }
  return next
}

function skipDigits(bytes: Uint8Array, at: number): number {
  let next = at
  while (isDigit(bytes[next] ?? 0)) next += 1
  return next
}

/** Where ids are collected: one for the thread, it grows to the longest prompt. */
let scratch = new Int32Array(4_096)

/** The list of token ids at that place: whole numbers from 0, without exponent, that are int32. null = something else. */
export function readIds(bytes: Uint8Array, at: number): { readonly ids: Int32Array; readonly end: number } | null {
  if (bytes[at] !== OPEN_LIST) return null
  let next = skipSpace(bytes, at + 1)
  if (bytes[next] === CLOSE_LIST) return { ids: new Int32Array(0), end: next + 1 }
  let count = 0
  for (;;) {
    let id = (bytes[next] ?? 0) - ZERO
    if (id < 0 || id > 9) return null
    next += 1
    let digit = (bytes[next] ?? 0) - ZERO
    if (id === 0 && digit >= 0 && digit <= 9) return null
    while (digit >= 0 && digit <= 9) {
      // Checked before it could leave the 31 bits, and with them the fast integers.
      if (id > 214_748_363) return null
      id = id * 10 + digit
      next += 1
      digit = (bytes[next] ?? 0) - ZERO
    }
    if (count === scratch.length) {
      const larger = new Int32Array(2 * count)
      larger.set(scratch)
      scratch = larger
    }
    scratch[count] = id
    count += 1
    if (digit !== COMMA - ZERO) {
      next = skipSpace(bytes, next)
      if (bytes[next] === CLOSE_LIST) return { ids: scratch.slice(0, count), end: next + 1 }
      if (bytes[next] !== COMMA) return null
    }
    next += 1
    // One space at most is usual.
    if ((bytes[next] ?? 0) <= 32) next = skipSpace(bytes, next)
  }
}

const POWERS: readonly number[] = Array.from({ length: 41 }, (_, power) => Number(`1e${power}`))
/** Far more than the roundings below can add up to, far less than half a step of float32. */
const DOUBT = 2 ** -48

/** What `readFloat` read last: a second result without an object. */
export const lastFloat = new Float64Array(1)

/**
 * The number at that place, to `lastFloat`, rounded to float32 as `Math.fround(JSON.parse(...))` rounds it: the digits are summed up in a
 * double, and where the last bits of that could change the result the number is read again by the platform.
 */
export function readFloat(bytes: Uint8Array, at: number): number {
  const isNegative = bytes[at] === 45
  const start = isNegative ? at + 1 : at
  let next = start
  let sum = 0
  let digit = (bytes[next] ?? 0) - ZERO
  for (; digit >= 0 && digit <= 9; digit = (bytes[next] ?? 0) - ZERO) {
    sum = sum * 10 + digit
    next += 1
  }
  let digits = next - start
  if (digits === 0 || (digits > 1 && bytes[start] === ZERO)) return -1
  let scale = 0
  if (bytes[next] === 46) {
    const point = next
    next += 1
    digit = (bytes[next] ?? 0) - ZERO
    for (; digit >= 0 && digit <= 9; digit = (bytes[next] ?? 0) - ZERO) {
      sum = sum * 10 + digit
      next += 1
    }
    scale = next - point - 1
    if (scale === 0) return -1
    digits += scale
  }
  if (bytes[next] === 101 || bytes[next] === 69) {
    const end = skipNumber(bytes, at)
    if (end === -1) return -1
    scale -= Number(textOf(bytes, next + 1, end))
    next = end
  }
  // Outside the table: not a number, and so never sure.
  const factor = POWERS[Math.abs(scale)] ?? Number.NaN
  const size = scale > 0 ? sum / factor : sum * factor
  const isSure =
    digits <= 22 &&
    (size === 0 || (size > 1e-30 && size < 1e30 && Math.fround(size * (1 - DOUBT)) === Math.fround(size * (1 + DOUBT))))
  lastFloat[0] = isSure ? (isNegative ? -size : size) : Number(textOf(bytes, at, next))
  return next
}

/** ASCII. */
const textOf = (bytes: Uint8Array, from: number, to: number): string => String.fromCharCode(...bytes.subarray(from, to))

// A small versioned container: a JSON head and typed columns, each compressed by zlib on its own (docs/result-format.md has the
// layout, docs/examples/read_result.py reads it). Knows nothing of results. int32 columns may begin like earlier ones, so that prompts
// which repeat each other are stored once.

import { promisify } from 'node:util'
import { deflate, inflateSync } from 'node:zlib'
import { RolloutError } from '../domain/errors.js'

export const CONTAINER_VERSION = 1
const MAGIC = 0x52545853 // "SXTR", little-endian
const PREAMBLE = 12
/** Decoded columns together; more is taken for a malformed file. */
const MAX_VALUES = 1 << 28
/** zlib cannot expand by more. */
const MAX_EXPANSION = 1040
const SLACK = 64

export type Column =
  /** The first `like.first` values are those of the columns `like.of` put one behind the other. */
  | { readonly type: 'int32'; readonly values: Int32Array; readonly like?: ColumnLike }
  | { readonly type: 'float32'; readonly values: Float32Array }
  /** 0 or 1 each. */
  | { readonly type: 'bits'; readonly values: Uint8Array }

export interface ColumnLike {
  readonly of: readonly number[]
  readonly first: number
}

interface ColumnHead {
  readonly type: Column['type']
  readonly count: number
  readonly bytes: number
  readonly like?: ColumnLike
}

const compress = promisify(deflate)

/** `head` is the text of a JSON value. Compresses off the event loop. */
export async function packContainer(head: string, columns: readonly Column[]): Promise<Uint8Array> {
  const packed = await Promise.all(columns.map(column => compress(bytesOf(column))))
  const heads = columns.map(
    (column, i): ColumnHead => ({
      type: column.type,
      count: column.values.length,
      bytes: packed[i]?.byteLength ?? 0,
      ...(column.type === 'int32' && column.like && { like: column.like }),
    }),
  )
  const top = await compress(`{"head":${head},"columns":${JSON.stringify(heads)}}`)
  const preamble = Buffer.alloc(PREAMBLE)
  preamble.writeUInt32LE(MAGIC, 0)
  preamble.writeUInt32LE(CONTAINER_VERSION, 4)
  preamble.writeUInt32LE(top.byteLength, 8)
  return Buffer.concat([preamble, top, ...packed])
}

export const isContainer = (bytes: Uint8Array): boolean =>
  bytes.byteLength >= 4 && viewOf(bytes).getUint32(0, true) === MAGIC

/** Throws WIRE_MALFORMED, which says what is wrong. The arrays own their memory. */
export function unpackContainer(bytes: Uint8Array): { readonly head: unknown; readonly columns: readonly Column[] } {
  if (bytes.byteLength < PREAMBLE || !isContainer(bytes)) throw malformed('it does not begin with "SXTR"')
  const view = viewOf(bytes)
  const version = view.getUint32(4, true)
  if (version !== CONTAINER_VERSION) throw malformed(`version ${version}, this program reads ${CONTAINER_VERSION}`)
  const length = view.getUint32(8, true)
  const { head, columns: heads } = topOf(expand(bytes, PREAMBLE, length, length * MAX_EXPANSION + SLACK))
  const columns: Column[] = []
  let at = PREAMBLE + length
  let total = 0
  for (const column of heads) {
    total += column.count
    if (total > MAX_VALUES) throw malformed(`more than ${MAX_VALUES} values`)
    const width = sizeOf(column.type, column.count - (column.like?.first ?? 0))
    if (width > column.bytes * MAX_EXPANSION + SLACK) throw malformed('a column is longer than its bytes can hold')
    const raw = expand(bytes, at, column.bytes, width)
    if (raw.byteLength !== width)
      throw malformed(`column ${columns.length} has ${raw.byteLength} bytes, wanted ${width}`)
    columns.push(columnOf(column, raw, columns))
    at += column.bytes
  }
  if (at !== bytes.byteLength) throw malformed(`${bytes.byteLength} bytes, wanted ${at}`)
  return { head, columns }
}

function topOf(bytes: Uint8Array): { head: unknown; columns: readonly ColumnHead[] } {
  let top: unknown
  try {
    top = JSON.parse(new TextDecoder().decode(bytes))
  } catch (cause) {
    throw malformed('its head is no JSON', cause)
  }
  const { head, columns } = top as { head: unknown; columns?: unknown }
  if (!Array.isArray(columns) || !columns.every(isColumnHead)) throw malformed('its head names no columns')
  return { head, columns }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

function isColumnHead(value: unknown, index: number): value is ColumnHead {
  const { type, count, bytes, like } = (value ?? {}) as Partial<ColumnHead>
  if (!isCount(count) || !isCount(bytes)) return false
  if (like === undefined) return type === 'int32' || type === 'float32' || type === 'bits'
  return (
    type === 'int32' &&
    Array.isArray(like.of) &&
    like.of.every(one => isCount(one) && one < index) &&
    isCount(like.first) &&
    like.first <= count
  )
}

const sizeOf = (type: Column['type'], count: number): number => (type === 'bits' ? Math.ceil(count / 8) : count * 4)

/** What of a column is stored, uncompressed. Little-endian on every machine Node runs on. */
function bytesOf(column: Column): Uint8Array {
  switch (column.type) {
    case 'int32': {
      const own = column.values.subarray(column.like?.first ?? 0)
      return new Uint8Array(own.buffer, own.byteOffset, own.byteLength)
    }
    case 'float32':
      return toPlanes(column.values)
    case 'bits': {
      const bits = new Uint8Array(Math.ceil(column.values.length / 8))
      for (let i = 0; i < column.values.length; i++)
        if (column.values[i]) bits[i >> 3] = (bits[i >> 3] ?? 0) | (1 << (i & 7))
      return bits
    }
  }
}

function columnOf({ type, count, like }: ColumnHead, raw: Uint8Array, columns: readonly Column[]): Column {
  switch (type) {
    case 'int32': {
      const values = new Int32Array(count)
      let at = 0
      for (const one of like?.of ?? []) {
        const earlier = columns[one]
        if (earlier?.type !== 'int32') throw malformed('a column begins like one that is no int32')
        const taken = earlier.values.subarray(0, (like?.first ?? 0) - at)
        values.set(taken, at)
        at += taken.length
      }
      if (at !== (like?.first ?? 0)) throw malformed('a column begins like columns that are too short')
      new Uint8Array(values.buffer).set(raw, at * 4)
      return { type, values, ...(like && { like }) }
    }
    case 'float32':
      return { type, values: fromPlanes(raw, count) }
    case 'bits': {
      const values = new Uint8Array(count)
      for (let i = 0; i < count; i++) values[i] = ((raw[i >> 3] ?? 0) >> (i & 7)) & 1
      return { type, values }
    }
  }
}

/** All first bytes, then all second ones ...: signs and exponents repeat, mantissas do not. */
function toPlanes(values: Float32Array): Uint8Array {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
  const planes = new Uint8Array(bytes.length)
  const n = values.length
  for (let i = 0; i < n; i++) for (let k = 0; k < 4; k++) planes[k * n + i] = bytes[4 * i + k] ?? 0
  return planes
}

function fromPlanes(planes: Uint8Array, n: number): Float32Array {
  const values = new Float32Array(n)
  const bytes = new Uint8Array(values.buffer)
  for (let i = 0; i < n; i++) for (let k = 0; k < 4; k++) bytes[4 * i + k] = planes[k * n + i] ?? 0
  return values
}

function expand(bytes: Uint8Array, at: number, length: number, limit: number): Uint8Array {
  if (at + length > bytes.byteLength) throw malformed('it is cut off')
  try {
    return inflateSync(bytes.subarray(at, at + length), { maxOutputLength: Math.max(1, limit) })
  } catch (cause) {
    throw malformed('a part of it cannot be decompressed', cause)
  }
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const malformed = (reason: string, cause?: unknown): RolloutError =>
  new RolloutError('WIRE_MALFORMED', `malformed binary result: ${reason}`, { cause })

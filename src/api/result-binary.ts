// The compact form of a SessionResult: the same object as the JSON, with the token arrays as columns, and each message stored once
// (layout: docs/result-format.md). Reading gives back the contract's JSON to the byte and every float32 to the bit.

import { RolloutError } from '../domain/errors.js'
import { isObject, type Json, type JsonObject } from '../domain/json.js'
import type { SessionResult } from '../domain/session.js'
import { type Column, packContainer, unpackContainer } from '../wire/columns.js'
import { JSON_PARTS, mapText, objectText, type PartWriter, sessionResultText } from './encode.js'

export const RESULT_MEDIA_TYPE = 'application/vnd.sextant.result'

/** Traces looked at for a common beginning: the first and the newest ones. */
const NEWEST = 4
/** Naming a shorter beginning costs more than it saves. */
const WORTH = 16

/** Throws INTERNAL_BUG when a logprob is not finite. Compresses off the event loop. */
export async function sessionResultBinary(result: SessionResult): Promise<Uint8Array> {
  const { parts, columns, values } = columnWriter()
  const text = sessionResultText(result, parts)
  return packContainer(`{"result":${text},"values":[${values.join(',')}]}`, columns)
}

interface Columns {
  readonly parts: PartWriter
  readonly columns: Column[]
  /** JSON texts of distinct messages and tool lists. */
  readonly values: string[]
}

/** Writes each part as the number of its column (tools: of its value, or null). */
function columnWriter(): Columns {
  const columns: Column[] = []
  const values: string[] = []
  const known = new Map<unknown, number>()
  const add = (column: Column): string => String(columns.push(column) - 1)
  const indexOfValue = (value: Json | readonly JsonObject[]): number => {
    const same = known.get(value)
    if (same !== undefined) return same
    const text = JSON.stringify(value)
    const index = known.get(text) ?? values.push(text) - 1
    known.set(text, index).set(value, index)
    return index
  }
  const indices = (messages: readonly JsonObject[]) => Int32Array.from(messages, indexOfValue)
  const ids = sharing(columns)
  const texts = sharing(columns)
  return {
    columns,
    values,
    parts: {
      prompt: ids.prompt,
      response: ids.response,
      mask: bits => add({ type: 'bits', values: bits }),
      logprobs(floats) {
        const wrong = floats.find(value => !Number.isFinite(value))
        if (wrong !== undefined)
          throw new RolloutError('INTERNAL_BUG', `a result holds ${wrong} where a finite number is wanted`)
        return add({ type: 'float32', values: floats })
      },
      promptMessages: messages => texts.prompt(indices(messages)),
      responseMessages: messages => texts.response(indices(messages)),
      tools: tools => (tools === null ? 'null' : String(indexOfValue(tools))),
    },
  }
}

/** Columns of prompts and responses; a prompt that begins like an earlier prompt + response says so. */
function sharing(columns: Column[]): { prompt(values: Int32Array): string; response(values: Int32Array): string } {
  const pairs: { readonly of: readonly [number, number]; readonly parts: readonly [Int32Array, Int32Array] }[] = []
  let open: { readonly index: number; readonly values: Int32Array } | null = null
  return {
    prompt(values) {
      let like: { of: readonly number[]; first: number } | null = null
      for (const { of, parts } of [...pairs.slice(0, 1), ...pairs.slice(1).slice(-NEWEST)]) {
        const first = commonStart(values, parts)
        if (first >= WORTH && first > (like?.first ?? 0)) like = { of, first }
      }
      const index = columns.push({ type: 'int32', values, ...(like && { like }) }) - 1
      open = { index, values }
      return String(index)
    },
    response(values) {
      const index = columns.push({ type: 'int32', values }) - 1
      if (open) pairs.push({ of: [open.index, index], parts: [open.values, values] })
      return String(index)
    },
  }
}

function commonStart(values: Int32Array, [head, rest]: readonly [Int32Array, Int32Array]): number {
  const limit = Math.min(values.length, head.length + rest.length)
  let i = 0
  while (i < limit && values[i] === (i < head.length ? head[i] : rest[i - head.length])) i++
  return i
}

interface ColumnValues {
  readonly int32: Int32Array
  readonly float32: Float32Array
  readonly bits: Uint8Array
}

/** The contract's JSON of a binary result, equal to what `sessionResultJson` gave of the same result. Throws TASK_INVALID with `name`. */
export function binaryResultJson(bytes: Uint8Array, name: string): string {
  try {
    return jsonOf(bytes)
  } catch (cause) {
    throw new RolloutError('TASK_INVALID', `${name}: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}

function jsonOf(bytes: Uint8Array): string {
  const { head, columns } = unpackContainer(bytes)
  const { result, values } = isObject(head) ? head : {}
  if (!isObject(result) || !isObject(result['trajectory']) || !Array.isArray(values))
    throw new Error('it holds no result')
  const { trajectory } = result
  const traces = trajectory['traces']
  if (!Array.isArray(traces)) throw new Error('it holds no traces')
  const column = <T extends Column['type']>(index: unknown, type: T): ColumnValues[T] => {
    const found = columns[Number(index)]
    if (found?.type !== type) throw new Error(`there is no ${type} column ${String(index)}`)
    return found.values as ColumnValues[T] // of that type
  }
  const messages = (index: unknown): string =>
    `[${Array.from(column(index, 'int32'), i => JSON.stringify(values[i])).join(',')}]`
  const traceText = (trace: JsonObject): string => {
    const metadata = trace['metadata']
    const kept = isObject(metadata) ? (metadata as JsonObject) : {} // decoded JSON
    return objectText({
      ...mapText(trace),
      prompt_ids: JSON_PARTS.prompt(column(trace['prompt_ids'], 'int32')),
      response_ids: JSON_PARTS.response(column(trace['response_ids'], 'int32')),
      loss_mask: JSON_PARTS.mask(column(trace['loss_mask'], 'bits')),
      response_logprobs: JSON_PARTS.logprobs(column(trace['response_logprobs'], 'float32')),
      prompt_messages: messages(trace['prompt_messages']),
      response_messages: messages(trace['response_messages']),
      tools: trace['tools'] === null ? 'null' : JSON.stringify(values[Number(trace['tools'])]),
      metadata: objectText({
        ...mapText(kept),
        ...(typeof kept['discarded_loss_mask'] === 'number' && {
          discarded_loss_mask: JSON_PARTS.mask(column(kept['discarded_loss_mask'], 'bits')),
        }),
      }),
    })
  }
  return objectText({
    ...mapText(result as JsonObject), // decoded JSON
    trajectory: objectText({
      ...mapText(trajectory as JsonObject), // decoded JSON
      traces: `[${traces.map(traceText).join(',')}]`,
    }),
  })
}

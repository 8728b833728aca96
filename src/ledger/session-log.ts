// The online ledger of one session: every captured call, with what it shares with earlier ones stored once. Inserting says what is
// fresh as an entry (log-entry.ts) and then applies that entry; a log made again of its entries is therefore the same log.
// A log grows in place and has one owner. Idempotent by completion id.

import type {
  CompletionRecord,
  Delivered,
  FailedCall,
  LoggedCall,
  LoggedRecord,
  SessionLedger,
  TokenPlace,
} from '../domain/completion.js'
import { RolloutError } from '../domain/errors.js'
import type { CompletionId, SessionId } from '../domain/ids.js'
import { isObject, type Json, type JsonObject } from '../domain/json.js'
import { changeOf, withChange } from './difference.js'
import { type ItemReference, type ListTree, listTree } from './list-tree.js'
import type { CallEntry, DeliveredEntry, EntryList, EntryTokens, FailedEntry, LogEntry } from './log-entry.js'
import { differenceFrom, type WholeBody, wholeOriginal } from './original-request.js'
import { idsOf, pathOf, prefixOf, ROOT, type TokenTree, tokenTree } from './token-tree.js'
import { wholeRecord } from './view.js'

export interface SessionLog {
  readonly sessionId: SessionId
  /** In order of insertion. */
  readonly calls: readonly LoggedCall[]
  readonly failed: readonly FailedCall[]
  /** Sums over the calls. `turns`: those that are no side calls. */
  readonly sums: { readonly turns: number; readonly promptTokens: number; readonly sampledTokens: number }
}

/** Fields of a record that are neither tokens nor text. */
type Facts = Omit<
  LoggedRecord,
  'sessionId' | 'sampledIds' | 'logprobs' | 'response' | 'originalRequest' | 'originalLike'
>

/** The log's own side. */
interface OpenLog extends SessionLog {
  readonly calls: LoggedCall[]
  readonly failed: FailedCall[]
  sums: SessionLog['sums']
  readonly tokens: TokenTree
  readonly lists: ListTree
  readonly numbers: Map<CompletionId, number>
  readonly delivered: Map<string, Delivered>
  /** What the last call said: the next entry tells what is other. */
  last: { readonly facts: JsonObject; readonly request: JsonObject; readonly response: JsonObject }
  /** Whole bodies for the next ones to differ from, the latest last. */
  bodies: readonly WholeBody[]
}

export const sessionLog = (sessionId: SessionId): SessionLog => openLog(sessionId)

function openLog(sessionId: SessionId): OpenLog {
  return {
    sessionId,
    calls: [],
    failed: [],
    sums: { turns: 0, promptTokens: 0, sampledTokens: 0 },
    tokens: tokenTree(),
    lists: listTree(),
    numbers: new Map(),
    delivered: new Map(),
    last: { facts: {}, request: {}, response: {} },
    bodies: [],
  }
}

// Only this file makes logs.
const opened = (log: SessionLog): OpenLog => log as OpenLog

/** Adds `record`, whose arrays may be kept. null = it is known. Throws INTERNAL_BUG for a record of another session. */
export function insertCall(log: SessionLog, record: CompletionRecord): CallEntry | null {
  const own = opened(log)
  if (record.sessionId !== own.sessionId)
    throw new RolloutError('INTERNAL_BUG', `call ${record.completionId} is of another session`, {
      details: { wanted: own.sessionId, got: record.sessionId },
    })
  if (own.numbers.has(record.completionId)) return null
  const entry = entryOf(own, record)
  applyCall(own, entry)
  keepBody(own, { completionId: record.completionId, text: record.originalRequest })
  return entry
}

/** Adds a failure. null = it is known (same request, attempt and start). */
export function insertFailed(log: SessionLog, failed: FailedCall): FailedEntry | null {
  const own = opened(log)
  const known = own.failed.some(
    other =>
      other.sequence === failed.sequence &&
      other.attempt === failed.attempt &&
      other.startedAtMs === failed.startedAtMs &&
      other.finishedAtMs === failed.finishedAtMs,
  )
  if (known) return null
  own.failed.push(failed)
  return { kind: 'failed', failed }
}

/** Notes whether the harness got an answer, which may be known before the call is. null = that is known. */
export function insertDelivered(log: SessionLog, completionId: string, delivered: Delivered): DeliveredEntry | null {
  const own = opened(log)
  if (own.delivered.get(completionId) === delivered) return null
  own.delivered.set(completionId, delivered)
  return { kind: 'delivered', completionId, delivered }
}

/**
 * The log that made `entries`, in their order; twice the same entry is once. Further calls may be inserted.
 * Throws INTERNAL_BUG where an entry is missing or tells what no log says.
 */
export function restoreLog(sessionId: SessionId, entries: Iterable<LogEntry>): SessionLog {
  const log = openLog(sessionId)
  for (const entry of entries) {
    if (entry.kind === 'failed') insertFailed(log, entry.failed)
    else if (entry.kind === 'delivered') insertDelivered(log, entry.completionId, entry.delivered)
    else if (!log.numbers.has(entry.completionId)) applyCall(log, entry)
  }
  const find = (completionId: CompletionId) => log.calls[log.numbers.get(completionId) ?? -1]?.record
  for (const { record } of log.calls.slice(-KEPT_BODIES)) {
    const text = wholeOriginal(record, find)
    if (text !== null) keepBody(log, { completionId: record.completionId, text })
  }
  return log
}

/** Everything the session captured, for the build. The log must not be used any more: its arrays may be transferred. */
export function sealLog(log: SessionLog): SessionLedger {
  const { sessionId, calls, failed, delivered, tokens, lists } = opened(log)
  return {
    sessionId,
    calls: calls.map(call => ({ ...call, delivered: delivered.get(call.record.completionId) ?? 'unknown' })),
    failed: failed.slice(),
    shared: { segments: tokens.segments, lists: lists.shared() },
  }
}

/** Records of the log's calls from number `first` on, as they were captured (bodies aside). Builds each prompt anew: for readers of a few. */
export function* recordsOf(log: SessionLog, first = 0): Generator<CompletionRecord> {
  const { calls, tokens, lists } = opened(log)
  const shared = { segments: tokens.segments, lists: lists.shared() }
  for (const call of calls.slice(first)) yield wholeRecord({ shared }, call)
}

function entryOf(log: OpenLog, record: CompletionRecord): CallEntry {
  const { promptIds, sampledIds, logprobs, request, response, originalRequest, originalLike: _, ...rest } = record
  const { sessionId: __, ...facts } = rest
  const { messages, tools, ...requestRest } = request
  const messageList = objectsIn(messages)
  const toolList = objectsIn(tools)
  const { frame, answer } = splitResponse(response)
  return {
    kind: 'call',
    number: log.calls.length,
    completionId: record.completionId,
    facts: changeOf(log.last.facts, facts as unknown as JsonObject), // plain data, as a frame carries it
    tokens: promptIds && tokensOf(log.tokens, promptIds, sampledIds),
    sampledIds: promptIds === null && sampledIds !== null ? owned(sampledIds) : null,
    logprobs: logprobs && owned(logprobs),
    request: changeOf(log.last.request, {
      ...requestRest,
      ...(!messageList && messages !== undefined && { messages }),
      ...(!toolList && tools !== undefined && { tools }),
    }),
    messages: messageList && listEntry(log.lists, messageList),
    tools: toolList && listEntry(log.lists, toolList),
    response: changeOf(log.last.response, frame),
    answer: answer && referenceTo(log.lists, answer),
    ...differenceFrom(originalRequest, log.bodies),
  }
}

function tokensOf(tree: TokenTree, prompt: Int32Array, sampled: Int32Array | null): EntryTokens {
  const answer = sampled ?? NO_IDS
  let known = tree.find(prompt)
  if (known.length === prompt.length) known = tree.findAfter(known, answer, 0, answer.length)
  const suffix = new Int32Array(prompt.length + answer.length - known.length)
  if (known.length < prompt.length) {
    suffix.set(prompt.subarray(known.length))
    suffix.set(answer, prompt.length - known.length)
  } else suffix.set(answer.subarray(known.length - prompt.length))
  return {
    segment: known.segment,
    shared: known.length,
    suffix,
    prompt: prompt.length,
    sampled: sampled === null ? null : sampled.length,
  }
}

const NO_IDS = new Int32Array(0)

/** Indexes are given in the order in which `applyCall` takes them. */
function listEntry(tree: ListTree, items: readonly JsonObject[]): EntryList {
  const { list, length } = tree.find(items)
  return { after: list, rest: items.slice(length).map(item => referenceTo(tree, item)) }
}

const referenceTo = (tree: ListTree, item: JsonObject): ItemReference => {
  const index = tree.indexOf(item)
  return index < 0 ? item : index
}

function applyCall(log: OpenLog, entry: CallEntry): void {
  if (entry.number !== log.calls.length)
    throw new RolloutError('INTERNAL_BUG', `entry ${entry.number} of ${log.sessionId} comes after ${log.calls.length}`)
  const facts = withChange(log.last.facts, entry.facts)
  const rest = withChange(log.last.request, entry.request)
  const frame = withChange(log.last.response, entry.response)
  const messages = entry.messages && applyList(log.lists, entry.messages)
  const tools = entry.tools && applyList(log.lists, entry.tools)
  const answer = entry.answer === null ? null : log.lists.take(entry.answer).content
  const { prompt, sampledIds } = applyTokens(log.tokens, entry)
  const record: LoggedRecord = {
    ...(facts as unknown as Facts), // what `entryOf` took from a record
    sessionId: log.sessionId,
    sampledIds,
    logprobs: entry.logprobs,
    response: answer === null ? frame : joinResponse(frame, answer),
    originalRequest: entry.originalRequest,
    originalLike: entry.originalLike,
  }
  log.last = { facts, request: rest, response: frame }
  log.numbers.set(entry.completionId, log.calls.length)
  log.calls.push({ record, prompt, request: { rest, messages, tools }, delivered: 'unknown' })
  log.sums = {
    turns: log.sums.turns + (record.sideRule === null ? 1 : 0),
    promptTokens: log.sums.promptTokens + record.promptTokens,
    sampledTokens: log.sums.sampledTokens + record.completionTokens,
  }
}

const applyList = (tree: ListTree, { after, rest }: EntryList): number =>
  rest.reduce<number>((list, reference) => tree.grow(list, tree.take(reference).index), after)

function applyTokens(
  tree: TokenTree,
  { tokens, sampledIds }: CallEntry,
): { prompt: TokenPlace | null; sampledIds: Int32Array | null } {
  if (tokens === null) return { prompt: null, sampledIds }
  const end = pathOf(tree, tree.grow({ segment: tokens.segment, length: tokens.shared }, tokens.suffix))
  const { segment } = tokens.prompt === 0 ? ROOT : prefixOf(end, tokens.prompt)
  const prompt = { segment, length: tokens.prompt }
  if (tokens.sampled === null) return { prompt, sampledIds: null }
  // A view on the segment where it is there whole: it goes where the segment goes.
  const last = tree.segments[end.segment]
  if (last && tokens.sampled > 0 && last.start <= tokens.prompt)
    return { prompt, sampledIds: last.ids.subarray(tokens.prompt - last.start, end.length - last.start) }
  return { prompt, sampledIds: idsOf(end, tokens.prompt) }
}

/** `value` when it is a list of objects. */
const objectsIn = (value: Json | undefined): readonly JsonObject[] | null =>
  Array.isArray(value) && value.every(isObject) ? (value as readonly JsonObject[]) : null // decoded JSON, each one an object

/** A response and the message of its only choice apart. */
function splitResponse(response: JsonObject): { frame: JsonObject; answer: JsonObject | null } {
  const choices = response['choices']
  const [choice]: readonly Json[] = Array.isArray(choices) && choices.length === 1 ? choices : []
  if (!isObject(choice) || !isObject(choice['message'])) return { frame: response, answer: null }
  const answer = choice['message'] as JsonObject // decoded JSON
  return { frame: { ...response, choices: [{ ...(choice as JsonObject), message: null }] }, answer }
}

function joinResponse(frame: JsonObject, message: JsonObject): JsonObject {
  const [choice] = frame['choices'] as readonly JsonObject[] // as `splitResponse` left it
  return { ...frame, choices: [{ ...choice, message }] }
}

/** An array that shares its memory with nothing else would keep all of that alive. */
const owned = <T extends Int32Array | Float32Array>(array: T): T =>
  array.byteLength === array.buffer.byteLength ? array : (array.slice() as T)

/** A main agent and a sub-agent or side call beside it. More would cost memory for each session, fewer for each turn. */
const KEPT_BODIES = 2

function keepBody(log: OpenLog, body: WholeBody): void {
  log.bodies = [...log.bodies.slice(1 - KEPT_BODIES), body]
}

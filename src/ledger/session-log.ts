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
import { type Arena, arena } from './arena.js'
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
  readonly memory: Arena
  readonly tokens: TokenTree
  readonly lists: ListTree
  readonly numbers: Map<CompletionId, number>
  readonly delivered: Map<string, Delivered>
  /** What the last call said: the next entry tells what is other. */
  last: { readonly facts: JsonObject; readonly request: JsonObject; readonly response: JsonObject }
  /** Whole bodies for the next ones to differ from, the latest first. */
  bodies: readonly KeptBody[]
}

/** A body that the harness may go on from. */
interface KeptBody {
  readonly completionId: CompletionId
  /** In characters (UTF-16 units). */
  readonly length: number
  /** null while a log is restored. */
  readonly text: string | null
}

export const sessionLog = (sessionId: SessionId): SessionLog => openLog(sessionId)

function openLog(sessionId: SessionId): OpenLog {
  return {
    sessionId,
    calls: [],
    failed: [],
    sums: { turns: 0, promptTokens: 0, sampledTokens: 0 },
    memory: arena(),
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

/** Adds `record`; keeps none of its arrays. null = it is known. Throws INTERNAL_BUG for a record of another session. */
export function insertCall(log: SessionLog, record: CompletionRecord): CallEntry | null {
  const own = opened(log)
  if (record.sessionId !== own.sessionId)
    throw new RolloutError('INTERNAL_BUG', `call ${record.completionId} is of another session`, {
      details: { wanted: own.sessionId, got: record.sessionId },
    })
  if (own.numbers.has(record.completionId)) return null
  const entry = entryOf(own, record)
  applyCall(own, entry, record.originalRequest)
  return entry
}

/** Adds a failure. null = it is known (same request, attempt, ordinal and times). */
export function insertFailed(log: SessionLog, failed: FailedCall): FailedEntry | null {
  const own = opened(log)
  const known = own.failed.some(
    other =>
      other.sequence === failed.sequence &&
      other.attempt === failed.attempt &&
      (other.ordinal ?? 0) === (failed.ordinal ?? 0) &&
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
    else if (!log.numbers.has(entry.completionId)) applyCall(log, entry, null)
  }
  const find = (completionId: CompletionId) => log.calls[log.numbers.get(completionId) ?? -1]?.record
  log.bodies = log.bodies.map(body => {
    const record = find(body.completionId)
    return { ...body, text: record ? wholeOriginal(record, find) : null }
  })
  return log
}

/** Everything the session captured, for the build. The log must not be used any more: its arrays may be transferred. */
export function sealLog(log: SessionLog): SessionLedger {
  const { sessionId, calls, failed, delivered, memory, tokens, lists } = opened(log)
  return {
    sessionId,
    calls: calls.map(call => ({ ...call, delivered: delivered.get(call.record.completionId) ?? 'unknown' })),
    failed: failed.slice(),
    shared: { memory: memory.chunks, segments: tokens.segments, lists: lists.shared() },
  }
}

/** Records of the log's calls from number `first` on, as they were captured (bodies aside). Builds each prompt anew: for readers of a few. */
export function* recordsOf(log: SessionLog, first = 0): Generator<CompletionRecord> {
  const { calls, memory, tokens, lists } = opened(log)
  const shared = { memory: memory.chunks, segments: tokens.segments, lists: lists.shared() }
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
    sampledIds: promptIds === null ? sampledIds : null,
    logprobs,
    request: changeOf(log.last.request, {
      ...requestRest,
      ...(!messageList && messages !== undefined && { messages }),
      ...(!toolList && tools !== undefined && { tools }),
    }),
    messages: messageList && listEntry(log.lists, messageList),
    tools: toolList && listEntry(log.lists, toolList),
    response: changeOf(log.last.response, frame),
    answer: answer && referenceTo(log.lists, answer),
    ...differenceFrom(
      originalRequest,
      log.bodies.filter((body): body is KeptBody & WholeBody => body.text !== null),
    ),
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

/** `body`: the whole one where it is at hand. */
function applyCall(log: OpenLog, entry: CallEntry, body: string | null): void {
  if (entry.number !== log.calls.length)
    throw new RolloutError('INTERNAL_BUG', `entry ${entry.number} of ${log.sessionId} comes after ${log.calls.length}`)
  const facts = withChange(log.last.facts, entry.facts)
  const rest = withChange(log.last.request, entry.request)
  const frame = withChange(log.last.response, entry.response)
  const messages = entry.messages && applyList(log.lists, entry.messages)
  const tools = entry.tools && applyList(log.lists, entry.tools)
  const answer = entry.answer === null ? null : log.lists.take(entry.answer).content
  const { prompt, sampledIds } = applyTokens(log, entry)
  const record = recordFrom(facts as unknown as Facts, {
    sessionId: log.sessionId,
    sampledIds,
    logprobs: entry.logprobs && log.memory.keep(entry.logprobs),
    response: answer === null ? frame : joinResponse(frame, answer),
    originalRequest: entry.originalRequest,
    originalLike: entry.originalLike,
  })
  log.bodies = bodiesAfter(log.bodies, entry, body)
  log.last = { facts, request: rest, response: frame }
  log.numbers.set(entry.completionId, log.calls.length)
  log.calls.push({ record, prompt, request: { rest, messages, tools }, delivered: 'unknown' })
  log.sums = {
    turns: log.sums.turns + (record.sideRule === null ? 1 : 0),
    promptTokens: log.sums.promptTokens + record.promptTokens,
    sampledTokens: log.sums.sampledTokens + record.completionTokens,
  }
}

type OwnFields = Omit<LoggedRecord, keyof Facts>
/** Every field that a record always has: the compiler finds the one that is forgotten. */
type EveryField = { readonly [K in Exclude<keyof Required<LoggedRecord>, 'policySpans'>]: LoggedRecord[K] }

/** Field by field: all records then have one shape, where a spread of changes would give each its own, of a kilobyte. */
function recordFrom(facts: Facts, own: OwnFields): LoggedRecord {
  const record: EveryField = {
    completionId: facts.completionId,
    sessionId: own.sessionId,
    sequence: facts.sequence,
    attempt: facts.attempt,
    dialect: facts.dialect,
    modelRequested: facts.modelRequested,
    modelUsed: facts.modelUsed,
    upstream: facts.upstream,
    sampledIds: own.sampledIds,
    logprobs: own.logprobs,
    completionTokens: facts.completionTokens,
    promptTokens: facts.promptTokens,
    cachedTokens: facts.cachedTokens,
    finish: facts.finish,
    engineFinish: facts.engineFinish,
    notTrainable: facts.notTrainable,
    sampling: facts.sampling,
    generationPromptLength: facts.generationPromptLength,
    endTokenId: facts.endTokenId,
    policyVersionStart: facts.policyVersionStart,
    policyVersionEnd: facts.policyVersionEnd,
    replica: facts.replica,
    retryCount: facts.retryCount,
    sideRule: facts.sideRule,
    agentId: facts.agentId,
    startedAtMs: facts.startedAtMs,
    finishedAtMs: facts.finishedAtMs,
    firstTokenAtMs: facts.firstTokenAtMs,
    response: own.response,
    originalRequest: own.originalRequest,
    originalLike: own.originalLike,
    losses: facts.losses,
    rulesApplied: facts.rulesApplied,
  }
  return facts.policySpans === undefined ? record : { ...record, policySpans: facts.policySpans }
}

const applyList = (tree: ListTree, { after, rest }: EntryList): number =>
  rest.reduce<number>((list, reference) => tree.grow(list, tree.take(reference).index), after)

function applyTokens(
  { memory, tokens: tree }: OpenLog,
  { tokens, sampledIds }: CallEntry,
): { prompt: TokenPlace | null; sampledIds: Int32Array | null } {
  if (tokens === null) return { prompt: null, sampledIds: sampledIds && memory.keep(sampledIds) }
  const known = { segment: tokens.segment, length: tokens.shared }
  const end = pathOf(tree, tokens.suffix.length > 0 ? tree.grow(known, memory.keep(tokens.suffix)) : known)
  const { segment } = tokens.prompt === 0 ? ROOT : prefixOf(end, tokens.prompt)
  const prompt = { segment, length: tokens.prompt }
  if (tokens.sampled === null) return { prompt, sampledIds: null }
  // A view on the segment where it is there whole: it goes where the segment goes.
  const last = tree.segments[end.segment]
  if (last && tokens.sampled > 0 && last.start <= tokens.prompt)
    return { prompt, sampledIds: last.ids.subarray(tokens.prompt - last.start, end.length - last.start) }
  return { prompt, sampledIds: memory.keep(idsOf(end, tokens.prompt)) }
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

/** Agents of a session that speak in turns, and what their last bodies may take together, in characters. */
const KEPT_BODIES = 8
const KEPT_CHARACTERS = 4 * 2 ** 20
/** Part of a body that the next one repeats when it goes on from there. */
const REPEATED = 0.98

/** The body of a call takes the place of the one that it goes on from; of too many the longest unused go, but the latest two stay. */
function bodiesAfter(
  bodies: readonly KeptBody[],
  { completionId, originalRequest, originalLike: like }: CallEntry,
  text: string | null,
): readonly KeptBody[] {
  const shared = like ? like.prefix + like.suffix : 0
  const others = bodies.filter(other => other.completionId !== like?.completionId || shared < REPEATED * other.length)
  const kept = [{ completionId, length: shared + originalRequest.length, text }, ...others]
  let characters = 0
  return kept.filter(({ length }, place) => {
    characters += length
    return place < 2 || (place < KEPT_BODIES && characters <= KEPT_CHARACTERS)
  })
}

// A capture on disk -> its sessions, one in memory at a time. What cannot be read is named and the rest goes on.

import type { CompletionRecord } from '../domain/completion.js'
import type { SessionId } from '../domain/ids.js'
import { isObject } from '../domain/json.js'
import { insertCall, sessionLog } from '../ledger/session-log.js'
import type { AuditInput } from './audit-session.js'
import { captureFiles, readLines, readValue, type UnreadableFile } from './capture-files.js'
import { completionOf } from './reference-record.js'
import { isSavedResult, type SavedSession, savedSessionOf } from './saved-result.js'
import { callsOfTraces } from './trace-calls.js'

export interface ReadingReport {
  readonly unreadable: UnreadableFile[]
  ignoredFiles: number
}

/** Where a completion is: in a file of its own, or read already. */
type Source = { readonly path: string } | { readonly path: string; readonly value: unknown }

/** Answers looked at for the end-of-turn id. */
const FINISHED_CALLS = 3

/** Sessions below `path`, a file or a folder; fills `report`. Throws TASK_INVALID when `path` is not there. */
export async function* readCapture(path: string, report: ReadingReport): AsyncGenerator<AuditInput> {
  const { sessions, others } = await captureFiles(path, report.unreadable)
  for (const { taskId, sessionId, result, completions } of sessions) {
    const saved = result === null ? null : await savedAt(result, report)
    const sources = completions.map(path => ({ path }))
    if (saved !== null || sources.length > 0) yield await sessionInput({ taskId, sessionId, saved, sources }, report)
  }
  const loose = new Map<string, { taskId: string; sessionId: string; sources: Source[] }>()
  for (const path of others) {
    let known = 0
    for await (const value of valuesIn(path, report)) {
      const found = sessionsIn(value)
      if (found.length > 0) known++
      for (const { taskId, sessionId, result, completions } of found) {
        if (result !== null) {
          const saved = await attempt(() => savedSessionOf(result), path, report)
          if (saved) yield await sessionInput({ taskId, sessionId, saved, sources: [] }, report)
          continue
        }
        const key = `${taskId} ${sessionId}`
        const group = loose.get(key) ?? { taskId, sessionId, sources: [] }
        loose.set(key, group)
        group.sources.push(
          ...completions.map(one => (one === value && !path.endsWith('.jsonl') ? { path } : { path, value: one })),
        )
      }
    }
    if (known === 0) report.ignoredFiles++
  }
  for (const group of loose.values()) yield await sessionInput({ ...group, saved: null }, report)
}

/** Only the results below `path`, whatever else lies there. Throws as `readCapture`. */
export async function* readResults(path: string, report: ReadingReport): AsyncGenerator<SavedSession> {
  const { sessions, others } = await captureFiles(path, report.unreadable)
  for (const { result } of sessions) {
    const saved = result === null ? null : await savedAt(result, report)
    if (saved !== null) yield saved
  }
  for (const file of others)
    for await (const value of valuesIn(file, report))
      for (const { result } of sessionsIn(value)) {
        const saved = result === null ? null : await attempt(() => savedSessionOf(result), file, report)
        if (saved !== null) yield saved
      }
}

async function* valuesIn(path: string, report: ReadingReport): AsyncGenerator<unknown> {
  if (path.endsWith('.jsonl')) {
    try {
      for await (const value of readLines(path))
        if (value instanceof Error) report.unreadable.push({ path, reason: value.message })
        else yield value
    } catch (cause) {
      report.unreadable.push({ path, reason: (cause as Error).message })
    }
    return
  }
  const read = await attempt(() => readValue(path), path, report)
  if (read !== null) yield read
}

interface Found {
  readonly taskId: string
  readonly sessionId: string
  readonly result: unknown
  readonly completions: readonly unknown[]
}

/** A result, a task's results, a session's completions, or one completion; empty = none of these. */
function sessionsIn(value: unknown): Found[] {
  if (!isObject(value)) return []
  const text = (key: string, of: Record<string, unknown> = value): string =>
    typeof of[key] === 'string' ? of[key] : ''
  if (isSavedResult(value))
    return [{ taskId: text('task_id'), sessionId: text('session_id'), result: value, completions: [] }]
  if (Array.isArray(value['results'])) return value['results'].flatMap(sessionsIn)
  if (Array.isArray(value['completions']))
    return [{ taskId: text('task_id'), sessionId: text('session_id'), result: null, completions: value['completions'] }]
  if (typeof value['completion_id'] !== 'string' || !('response' in value)) return []
  const metadata = isObject(value['metadata']) ? value['metadata'] : {}
  const sessionId = text('session_id') || text('session_id', metadata)
  const taskId = text('task_id') || text('task_id', metadata)
  return [{ taskId, sessionId, result: null, completions: [value] }]
}

const savedAt = (path: string, report: ReadingReport): Promise<SavedSession | null> =>
  attempt(async () => savedSessionOf(await readValue(path)), path, report)

async function attempt<T>(work: () => T | Promise<T>, path: string, report: ReadingReport): Promise<T | null> {
  try {
    return await work()
  } catch (cause) {
    report.unreadable.push({ path, reason: cause instanceof Error ? cause.message : String(cause) })
    return null
  }
}

interface SessionParts {
  readonly taskId: string
  readonly sessionId: string
  readonly saved: SavedSession | null
  readonly sources: readonly Source[]
}

async function sessionInput(
  { taskId, sessionId, saved, sources }: SessionParts,
  report: ReadingReport,
): Promise<AuditInput> {
  const log = sessionLog(sessionId as SessionId) // any text is an id here
  const notes: string[] = []
  let waiting: CompletionRecord[] | null = []
  let endTokenId: number | null = null
  let unread = 0
  let tokensUnknown = 0
  let last: CompletionRecord | null = null
  const insert = (record: CompletionRecord) => insertCall(log, { ...record, endTokenId })
  for (const [sequence, source] of sources.entries()) {
    const value = 'value' in source ? source.value : await attempt(() => readValue(source.path), source.path, report)
    const read = completionOf(value, sessionId, sequence)
    if (read === null) {
      unread++
      if (value !== null)
        report.unreadable.push({ path: source.path, reason: 'no completion: completion_id or response is missing' })
      continue
    }
    if (!read.tokensKnown) tokensUnknown++
    last = read.record
    if (waiting === null) insert(read.record)
    else {
      waiting.push(read.record)
      if (waiting.filter(isFinished).length < FINISHED_CALLS) continue
      endTokenId = commonEnd(waiting)
      waiting.forEach(insert)
      waiting = null
    }
  }
  if (waiting !== null) {
    endTokenId = commonEnd(waiting)
    waiting.forEach(insert)
  }
  if (unread > 0) notes.push(`${unread} of its completion files cannot be read`)
  if (tokensUnknown > 0)
    notes.push(`${tokensUnknown} calls tell neither ids nor usage: what they sampled is not counted`)
  const withoutIds = log.calls.filter(({ record, prompt }) => record.sampledIds === null || prompt === null).length
  if (withoutIds > 0) notes.push(`${withoutIds} calls without token ids`)
  let source: AuditInput['source'] = last === null ? 'result' : 'completions'
  if (last === null && saved !== null) {
    for (const record of callsOfTraces(saved)) insertCall(log, record)
    if (log.calls.length > 0) source = 'traces'
  }
  return { taskId: taskId || (saved?.taskId ?? ''), sessionId, source, log, saved, notes }
}

const isFinished = ({ finish, sampledIds }: CompletionRecord): boolean =>
  (finish === 'stop' || finish === 'tool_calls') && (sampledIds?.length ?? 0) > 0

/** The id that most of the finished answers end in; null = they do not agree. */
function commonEnd(records: readonly CompletionRecord[]): number | null {
  const ends = records.filter(isFinished).map(({ sampledIds }) => sampledIds?.at(-1) ?? -1)
  const most = ends.find(id => ends.filter(other => other === id).length * 2 > ends.length)
  return most ?? null
}

// A session that has no result yet, or none any more, as the store has it: its records, built into traces by the default builder, in
// the form of a saved result, one session in memory at a time. Reads beside a running service, and disturbs it in nothing.

import { existsSync, readdirSync } from 'node:fs'
import { sessionResultJson } from '../api/encode.js'
import { builders } from '../builders/registry.js'
import { type ErrorData, errorData } from '../domain/errors.js'
import type { SessionId, TaskId } from '../domain/ids.js'
import { readResult, type SavedResult } from '../inspect/read.js'
import type { TokenPieces } from '../inspect/turns.js'
import { sealLog } from '../ledger/session-log.js'
import { storeFolder } from '../store/lock.js'
import { openRecordStore } from '../store/record-store.js'
import { restoreSession } from '../store/session-entries.js'

export interface StoredSessions {
  /** Sessions whose id begins so; a whole id counts alone. */
  readonly found: readonly SavedResult[]
  readonly unreadable: readonly UnreadableStored[]
}

/** A shard or a session that could not be read. */
export interface UnreadableStored {
  readonly where: string
  readonly error: ErrorData
}

export async function storedSessions(
  stateDir: string,
  beginning: string,
  pieces: TokenPieces,
): Promise<StoredSessions> {
  const unreadable: UnreadableStored[] = []
  const found: SavedResult[] = []
  for await (const { text, sessionId, isOver } of storedResults(stateDir, beginning, pieces, unreadable))
    found.push({ ...readResult(text, sessionId), status: isOver ? 'FINISHED' : 'OPEN' })
  return { found, unreadable }
}

/** JSON of a result made of stored records. */
export interface StoredResultText {
  readonly sessionId: string
  readonly text: string
  /** Its own result is on disk elsewhere; else it goes on, or ended without one. */
  readonly isOver: boolean
}

/** True where `path` is the state directory of a service that keeps records. */
export const hasStore = (path: string): boolean => shardsOf(path).length > 0

/** The sessions whose id begins so, of every shard; fills `unreadable`. */
export async function* storedResults(
  stateDir: string,
  beginning: string,
  pieces: TokenPieces,
  unreadable: UnreadableStored[],
): AsyncGenerator<StoredResultText> {
  for (const shard of shardsOf(stateDir)) {
    try {
      const store = await openRecordStore({ stateDir, shard, mode: 'reader', maxBytes: 0, retentionMs: 0 })
      try {
        const fitting = store.sessions().filter(({ sessionId }) => sessionId.startsWith(beginning))
        const exact = fitting.filter(({ sessionId }) => sessionId === beginning)
        for (const { sessionId, finishedAtMs } of exact.length > 0 ? exact : fitting) {
          try {
            const log = restoreSession(store, sessionId as SessionId)?.log
            if (log === undefined) continue
            yield { sessionId, text: await built(sealLog(log), pieces), isOver: finishedAtMs !== null }
          } catch (cause) {
            unreadable.push({ where: `session ${sessionId}`, error: errorData(cause) })
          }
        }
      } finally {
        await store.close()
      }
    } catch (cause) {
      unreadable.push({ where: `shard ${shard}`, error: errorData(cause) })
    }
  }
}

function shardsOf(stateDir: string): readonly number[] {
  const folder = storeFolder(stateDir)
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .flatMap(name => (/^shard-\d+$/.test(name) ? [Number(name.slice('shard-'.length))] : []))
    .sort((a, b) => a - b)
}

async function built(ledger: ReturnType<typeof sealLog>, pieces: TokenPieces): Promise<string> {
  const { sessionId } = ledger
  const decode = async (ids: Int32Array) => pieces([...ids])?.join('') ?? null
  const context = { sessionId, taskId: 'in the store', taskMetadata: {}, decode }
  const trajectory = await builders.prefix_merging.build(ledger, {}, context)
  return sessionResultJson({
    sessionId,
    taskId: context.taskId as TaskId,
    sampleIndex: 0,
    status: 'ERROR',
    trajectory,
    agentResult: null,
    evaluation: null,
    timing: {},
    nodeId: 'store',
    error: null,
    failureClass: null,
    truncated: null,
    metadata: {},
  })
}

// A session that has no result yet, or none any more, as the store has it: its records, built into traces by the default builder, in
// the form of a saved result. Reads beside a running service, and disturbs it in nothing.

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
  /** Shards and sessions that could not be read. */
  readonly unreadable: readonly { readonly where: string; readonly error: ErrorData }[]
}

export async function storedSessions(
  stateDir: string,
  beginning: string,
  pieces: TokenPieces,
): Promise<StoredSessions> {
  const found: SavedResult[] = []
  const unreadable: { where: string; error: ErrorData }[] = []
  for (const shard of shardsOf(stateDir)) {
    try {
      const store = await openRecordStore({ stateDir, shard, mode: 'reader', maxBytes: 0, retentionMs: 0 })
      try {
        const fitting = store.sessions().filter(({ sessionId }) => sessionId.startsWith(beginning))
        const exact = fitting.filter(({ sessionId }) => sessionId === beginning)
        for (const { sessionId, finishedAtMs } of exact.length > 0 ? exact : fitting) {
          try {
            const log = restoreSession(store, sessionId as SessionId)?.log
            if (log !== undefined) found.push(await built(sealLog(log), finishedAtMs !== null, pieces))
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
  return { found, unreadable }
}

function shardsOf(stateDir: string): readonly number[] {
  const folder = storeFolder(stateDir)
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .flatMap(name => (/^shard-\d+$/.test(name) ? [Number(name.slice('shard-'.length))] : []))
    .sort((a, b) => a - b)
}

async function built(ledger: ReturnType<typeof sealLog>, isOver: boolean, pieces: TokenPieces): Promise<SavedResult> {
  const { sessionId } = ledger
  const decode = async (ids: Int32Array) => pieces([...ids])?.join('') ?? null
  const context = { sessionId, taskId: 'in the store', taskMetadata: {}, decode }
  const trajectory = await builders.prefix_merging.build(ledger, {}, context)
  const text = sessionResultJson({
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
  return { ...readResult(text, sessionId), status: isOver ? 'FINISHED' : 'OPEN' }
}

// Result files: saveDir/task_<task id>/ses_<session id>.json, the complete SessionResult in compact JSON (contract 4.14), and beside it
// the same in binary (.sxr). Written to a temporary name, synced and renamed, the folder synced after: a reader never sees half a
// result, and a path that was returned survives a power cut. Written here and not by a library: write-file-atomic writes once and
// takes no notice of a short write, so a full disk left a cut file under the final name.

import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import * as z from 'zod'
import { RolloutError } from '../../src/domain/errors.js'
import { isSafeId } from '../../src/domain/ids.js'
import type { KeptResult } from '../../src/store/control-records.js'

/** Path of a result file. Throws RUNTIME_PATH_REFUSED for ids that are no path elements, wherever they came from. */
export function resultPath(
  saveDir: string,
  taskId: string,
  sessionId: string,
  extension: 'json' | 'sxr' = 'json',
): string {
  for (const id of [taskId, sessionId])
    if (!isSafeId(id))
      throw new RolloutError('RUNTIME_PATH_REFUSED', `id ${JSON.stringify(id)} may not be part of a path`)
  return join(saveDir, `task_${taskId}`, `ses_${sessionId}.${extension}`)
}

/** Of the binary form, which stands beside the JSON. */
export const binaryPath = (jsonPath: string): string => jsonPath.replace(/\.json$/, '.sxr')

export interface ResultFile {
  readonly json: string
  /** null = no binary file. */
  readonly binary: Uint8Array | null
}

/** Writes both forms, the JSON last, and returns its path. Rejects with Node's own error; what stood there before is then unchanged. */
export async function writeResult(
  saveDir: string,
  taskId: string,
  sessionId: string,
  file: ResultFile,
): Promise<string> {
  const path = resultPath(saveDir, taskId, sessionId)
  const folder = dirname(path)
  const made = await mkdir(folder, { recursive: true, mode: 0o700 })
  if (made !== undefined)
    for (let at = folder; at.length >= made.length; at = dirname(at)) await syncFolder(dirname(at))
  if (file.binary !== null) await replaceFile(resultPath(saveDir, taskId, sessionId, 'sxr'), file.binary)
  await replaceFile(path, file.json)
  await syncFolder(folder)
  return path
}

/** One writer per path: a session has one result. A name that a killed process left is used again. */
async function replaceFile(path: string, data: string | Uint8Array): Promise<void> {
  const temporary = `${path}.tmp`
  try {
    const file = await open(temporary, 'w', 0o600)
    try {
      await file.writeFile(data)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, path)
  } catch (cause) {
    await rm(temporary, { force: true }).catch(() => undefined)
    throw cause
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
/** What the result file of a session says, where a service was killed between writing it and telling its store; null = there is none. */
export async function writtenResult(
  saveDir: string | null,
  { taskId, sessionId }: { readonly taskId: string; readonly sessionId: string },
): Promise<KeptResult | null> {
  if (saveDir === null) return null
  const path = resultPath(saveDir, taskId, sessionId)
  try {
    const result: unknown = JSON.parse(await readFile(path, 'utf8'))
    const { mtimeMs: atMs } = await stat(path)
    const read = writtenSchema.parse(result)
    const { calls, tokens } = read.trajectory.metadata.ledger
    const usable = read.status === 'COMPLETED' && tokens.trained > 0
    return { status: read.status, calls, sampledTokens: tokens.sampled, usable, path, atMs }
  } catch {
    // Not there, or no result of ours: then the session ends with what it captured.
    return null
  }
}

const writtenSchema = z.object({
  status: z.enum(['COMPLETED', 'ERROR', 'TIMEOUT']),
  trajectory: z.object({
    metadata: z.object({
      ledger: z.object({ calls: z.number(), tokens: z.object({ sampled: z.number(), trained: z.number() }) }),
    }),
  }),
})

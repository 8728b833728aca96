// Result files: saveDir/task_<task id>/ses_<session id>.json, the complete SessionResult in compact JSON (contract 4.14). Written to a
// temporary file, synced and renamed, so that a reader never sees half a result.

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import writeFileAtomic from 'write-file-atomic'
import { RolloutError } from '../../src/domain/errors.js'
import { isSafeId } from '../../src/domain/ids.js'

/** Path of a result file. Throws RUNTIME_PATH_REFUSED for ids that are no path elements, wherever they came from. */
export function resultPath(saveDir: string, taskId: string, sessionId: string): string {
  for (const id of [taskId, sessionId])
    if (!isSafeId(id))
      throw new RolloutError('RUNTIME_PATH_REFUSED', `id ${JSON.stringify(id)} may not be part of a path`)
  return join(saveDir, `task_${taskId}`, `ses_${sessionId}.json`)
}

/** Writes `text` and returns the path. */
export async function writeResult(saveDir: string, taskId: string, sessionId: string, text: string): Promise<string> {
  const path = resultPath(saveDir, taskId, sessionId)
  await mkdir(join(path, '..'), { recursive: true, mode: 0o700 })
  await writeFileAtomic(path, text, { mode: 0o600 })
  return path
}

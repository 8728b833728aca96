// Whether what a task wants to upload is there, asked once before the task is taken (contract 4.13, A-33): better a refused task than as
// many failed sessions as it has samples. Asynchronous; the file system may still change before a session copies.

import { stat } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import type { PrepareAction, RuntimeSpec } from '../domain/task.js'

/** One line per upload that cannot work, with its path below the body; empty = all are there. */
export async function missingAssets(runtime: RuntimeSpec): Promise<readonly string[]> {
  const lists: readonly (readonly [string, readonly PrepareAction[]])[] = [
    ['runtime.prepare', runtime.prepare],
    ['runtime.eval_prepare', runtime.eval_prepare ?? []],
  ]
  const checks = lists.flatMap(([name, actions]) =>
    actions.map((action, index) => problemOf(action, `${name}[${index}].source`)),
  )
  return (await Promise.all(checks)).filter(problem => problem !== null)
}

async function problemOf(action: PrepareAction, path: string): Promise<string | null> {
  if (action.type === 'exec') return null
  if (!isAbsolute(action.source)) return `${path}: ${action.source} is not absolute`
  const wanted = action.type === 'upload_dir' ? 'folder' : 'file'
  try {
    const found = await stat(action.source)
    const fits = wanted === 'folder' ? found.isDirectory() : found.isFile()
    return fits ? null : `${path}: ${action.source} is no ${wanted}`
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code === 'ENOENT' ? 'does not exist' : 'cannot be read'
    return `${path}: ${action.source} ${reason}`
  }
}

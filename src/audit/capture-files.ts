// Which files of a folder are a capture, and what is in one of them. Layouts: task_<task>/ses_<session>.json (or .sxr) for results,
// task_<task>/sessions/<session>/completions/*.json for calls, and any other .json or .jsonl file that holds a result, a task's
// results, or completions. Links are not followed.

import { createReadStream } from 'node:fs'
import { lstat, readdir, readFile } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { createInterface } from 'node:readline'
import { binaryResultJson } from '../api/result-binary.js'
import { RolloutError } from '../domain/errors.js'
import { isContainer } from '../wire/columns.js'

export interface SessionFiles {
  readonly taskId: string
  readonly sessionId: string
  result: string | null
  /** Sorted by name, which is the order of finish. */
  readonly completions: string[]
}

export interface CaptureFiles {
  readonly sessions: readonly SessionFiles[]
  readonly others: readonly string[]
}

export interface UnreadableFile {
  readonly path: string
  readonly reason: string
}

/** Longer ones do not fit one string of V8. */
const MOST_BYTES = 512 * 1024 * 1024 - 64

const RESULT = /^(.*[/\\]task_([^/\\]+))[/\\]ses_([^/\\]+)\.(json|sxr)$/
const COMPLETION = /^(.*[/\\]task_([^/\\]+))[/\\]sessions[/\\]([^/\\]+)[/\\]completions[/\\][^/\\]+\.json$/

/** Names folders that cannot be read in `unreadable`. Throws TASK_INVALID when `path` is not there. */
export async function captureFiles(path: string, unreadable: UnreadableFile[]): Promise<CaptureFiles> {
  const sessions = new Map<string, SessionFiles>()
  const others: string[] = []
  for await (const file of filesBelow(resolve(path), unreadable)) {
    const result = RESULT.exec(file)
    const [, folder = '', taskId = '', sessionId = ''] = result ?? COMPLETION.exec(file) ?? []
    if (folder === '') {
      if (/\.(json|jsonl|sxr)$/.test(file)) others.push(file)
      continue
    }
    const key = `${folder}${sep}${sessionId}`
    const session = sessions.get(key) ?? { taskId, sessionId, result: null, completions: [] }
    sessions.set(key, session)
    if (!result) session.completions.push(file)
    else if (session.result === null || file.endsWith('.json')) session.result = file
  }
  return { sessions: [...sessions.values()], others }
}

async function* filesBelow(path: string, unreadable: UnreadableFile[]): AsyncGenerator<string> {
  const status = await lstat(path).catch(() => {
    throw new RolloutError('TASK_INVALID', `there is no ${path}`)
  })
  if (status.isFile()) yield path
  if (!status.isDirectory()) return
  const entries = await readdir(path, { withFileTypes: true }).catch((cause: Error) => {
    unreadable.push({ path, reason: cause.message })
    return []
  })
  entries.sort((left, right) => (left.name < right.name ? -1 : 1))
  for (const entry of entries) {
    if (entry.isFile()) yield join(path, entry.name)
    else if (entry.isDirectory()) yield* filesBelow(join(path, entry.name), unreadable)
  }
}

/** The JSON value of a file, binary results included. Throws TASK_INVALID, which says what is wrong. */
export async function readValue(path: string): Promise<unknown> {
  const { size } = await lstat(path)
  if (size > MOST_BYTES) throw new RolloutError('TASK_INVALID', `${size} bytes, at most ${MOST_BYTES} can be read`)
  const bytes = await readFile(path)
  return parsed(isContainer(bytes) ? binaryResultJson(bytes, 'binary result') : bytes.toString('utf8'))
}

/** The values of a JSONL file, one line in memory at a time; an Error in place of a line that is no JSON. */
export async function* readLines(path: string): AsyncGenerator<unknown> {
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })
  let number = 0
  for await (const line of lines) {
    number++
    if (line.trim() === '') continue
    try {
      yield parsed(line)
    } catch (cause) {
      yield new RolloutError('TASK_INVALID', `line ${number}: ${(cause as Error).message}`)
    }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new RolloutError('TASK_INVALID', `no JSON: ${(cause as Error).message}`)
  }
}

// A log file that a command's output is appended to: below the session folder, no links followed, capped.

import { constants } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { OutputFile } from '../launch.js'
import { openRegular, resolveWithin } from './confined-path.js'

/** `path`: absolute, below `root`. Missing folders are made again: the agent may have deleted them. `cap` in bytes. */
export async function openOutputFile(root: string, path: string, cap: number): Promise<OutputFile> {
  const resolved = resolveWithin(root, root, path)
  const handle = await openRegular(root, resolved, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT)
  return outputFile(handle, (await handle.stat()).size, cap)
}

function outputFile(handle: FileHandle, size: number, cap: number): OutputFile {
  let written = size
  let unwritten = 0
  let closed = false
  return {
    async append(chunk) {
      const room = Math.max(0, cap - written)
      const part = chunk.length > room ? chunk.subarray(0, room) : chunk
      unwritten += chunk.length - part.length
      if (part.length === 0 || closed) return
      written += part.length
      await handle.appendFile(part)
    },
    unwritten: () => unwritten,
    async close() {
      if (closed) return
      closed = true
      await handle.close()
    },
  }
}

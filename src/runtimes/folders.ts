// What becomes of a session's folder at its end: artifacts and logs stay until they expire, the rest goes. Links are never followed.

import { chmod, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** What outlives a session. */
const KEPT = ['artifacts', 'logs']

/** Removes all but artifacts and logs; returns how many entries went. A missing folder is fine. */
export async function removeWorkFolders(sessionDir: string): Promise<number> {
  const names = await readdir(sessionDir).catch(() => [])
  const gone = names.filter(name => !KEPT.includes(name))
  for (const name of gone) await removeTree(join(sessionDir, name))
  return gone.length
}

/** Also removes folders whose modes forbid it. Never follows links. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3 })
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code !== 'EACCES' && code !== 'EPERM') throw cause
    await openFolders(path)
    await rm(path, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function openFolders(path: string): Promise<void> {
  await chmod(path, 0o700)
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await openFolders(join(path, entry.name))
  }
}

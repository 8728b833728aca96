// Takes a session's key out of its stored logs: they outlive the session, the key must not be in them.

import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Larger logs are left alone: the runtime caps a log at `limits.sessionBytes`, and the key opens nothing after the session. */
const MAX_LOG_BYTES = 64 * 1024 * 1024

/** Replaces `secret` in every regular file below `folder`; returns how many files held it. Links are not followed. */
export async function redactLogs(folder: string, secret: string): Promise<number> {
  let found = 0
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) found += await redactLogs(path, secret)
    if (!entry.isFile()) continue
    if ((await stat(path)).size > MAX_LOG_BYTES) continue
    const bytes = await readFile(path)
    if (!bytes.includes(secret)) continue
    await writeFile(path, bytes.toString('latin1').replaceAll(secret, '[session key]'), 'latin1')
    found += 1
  }
  return found
}

// One sweep over what dead sessions left below `stateDir/sessions`: their processes are killed, their work folders removed,
// and whole folders once their artifacts have expired. Live sessions and other services' folders are never touched.

import { readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../src/domain/clock.js'
import { isSafeId } from '../../src/domain/ids.js'
import { removeTree, removeWorkFolders } from '../../src/runtimes/folders.js'
import { endProcesses, findLeftovers } from '../../src/runtimes/processes.js'
import type { SweepReport } from '../protocol/reaper.js'

export interface SweepInput {
  /** `stateDir/sessions`; need not exist. */
  readonly sessionsDir: string
  /** Asked again at each look, since sessions begin while a sweep runs. */
  readonly isLive: (sessionId: string) => boolean
  /** Age of an ended session's folder at which it goes, milliseconds. */
  readonly artifactsMs: number
  readonly clock: Clock
}

export async function sweep({ sessionsDir, isLive, artifactsMs, clock }: SweepInput): Promise<SweepReport> {
  const root = await realpath(sessionsDir).catch(() => null)
  if (root === null) return { type: 'sweep-report', processes: 0, proven: true, folders: 0, expired: 0 }
  const isDead = (sessionId: string) => !isLive(sessionId)
  const first = await findLeftovers(root, isDead)
  const ended = first === null ? null : await endProcesses(() => findLeftovers(root, isDead), [], clock)
  let folders = 0
  let expired = 0
  for (const name of await readdir(root)) {
    if (!isSafeId(name) || isLive(name)) continue
    const folder = join(root, name)
    const stats = await stat(folder).catch(() => null)
    if (!stats?.isDirectory()) continue
    if (clock.now() - stats.mtimeMs >= artifactsMs) {
      await removeTree(folder)
      expired += 1
    } else if ((await removeWorkFolders(folder)) > 0) folders += 1
  }
  return { type: 'sweep-report', processes: ended?.killed ?? 0, proven: ended?.proven ?? null, folders, expired }
}

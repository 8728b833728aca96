// One service at a time writes below a stateDir: `stateDir/store/owner` names the process. A file that a killed service left is taken over.

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RolloutError } from '../domain/errors.js'
import { startTimeOf } from '../runtimes/processes.js'
import { storeError } from './errors.js'

export interface StoreLock {
  /** `stateDir/store`. */
  readonly folder: string
  /** Idempotent. */
  release(): void
}

export const storeFolder = (stateDir: string): string => join(stateDir, 'store')

/** Throws STORE_IN_USE naming the process that holds it, STORE_UNWRITABLE when it cannot be written. */
export function lockStore(stateDir: string, pid: number = process.pid): StoreLock {
  const folder = storeFolder(stateDir)
  const path = join(folder, 'owner')
  const mine = `${pid} ${startTimeOf(pid) ?? ''}\n`
  // Written beside and linked: whoever reads `owner` reads all of it.
  const draft = join(folder, `owner.${pid}`)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writeFileSync(draft, mine, { mode: 0o600 })
    try {
      for (let attempt = 0; attempt < 3; attempt += 1) {
        if (link(draft, path)) return { folder, release: () => release(path, mine) }
        const holder = read(path)
        if (holder === null) continue
        if (isAlive(holder)) {
          throw new RolloutError(
            'STORE_IN_USE',
            `${folder} is in use by the service with process id ${holder.trim().split(' ')[0]}; stop it, or name another stateDir`,
          )
        }
        removeStale(path, holder, `${draft}.stale`)
      }
    } finally {
      rmSync(draft, { force: true })
    }
  } catch (cause) {
    throw storeError(cause, `be locked in ${folder}`)
  }
  throw new RolloutError('STORE_IN_USE', `${folder} is being taken by several services at once; start them again`)
}

function link(draft: string, path: string): boolean {
  try {
    linkSync(draft, path)
    return true
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw cause
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

/** Between the look and the removal another service may have taken it: what was moved away is looked at again, and put back. */
function removeStale(path: string, stale: string, aside: string): void {
  try {
    renameSync(path, aside)
  } catch {
    return
  }
  if (read(aside) !== stale) link(aside, path)
  rmSync(aside, { force: true })
}

function release(path: string, mine: string): void {
  if (read(path) === mine) rmSync(path, { force: true })
}

function isAlive(owner: string): boolean {
  const [pid = '', startTime = ''] = owner.trim().split(' ')
  if (!/^\d+$/.test(pid)) return false
  try {
    process.kill(Number(pid), 0)
    return startTime === '' || startTimeOf(Number(pid)) === startTime
  } catch (cause) {
    // EPERM: the process is there and someone else's.
    return (cause as NodeJS.ErrnoException).code === 'EPERM'
  }
}

// What a service keeps below stateDir: the control token, where it can be reached, and a sessions folder of its own. Folders are 0700
// and files 0600: on a shared machine loopback is no wall.

import { randomBytes } from 'node:crypto'
import { chmodSync, closeSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { RolloutError } from '../domain/errors.js'
import { isObject } from '../domain/json.js'
import { startTimeOf } from '../runtimes/processes.js'
import type { Plan } from './plan.js'

export const tokenFileOf = (stateDir: string): string => join(stateDir, 'control-token')
const endpointFileOf = (stateDir: string): string => join(stateDir, 'control.json')

export interface ControlToken {
  readonly token: string
  /** null = configured, not written anywhere. */
  readonly file: string | null
}

/** The configured token, else the one in `stateDir/control-token`, made when there is none that is ours alone to read. */
export function controlToken(plan: Pick<Plan, 'stateDir' | 'security'>): ControlToken {
  if (plan.security.token !== null) return { token: plan.security.token, file: null }
  makeFolder(plan.stateDir)
  const file = tokenFileOf(plan.stateDir)
  const kept = keptToken(file)
  if (kept !== null) return { token: kept, file }
  const token = randomBytes(32).toString('base64url')
  writePrivate(file, `${token}\n`)
  return { token, file }
}

function keptToken(file: string): string | null {
  try {
    const isPrivate = (statSync(file).mode & 0o077) === 0
    const text = readFileSync(file, 'utf8').trim()
    return isPrivate && /^[A-Za-z0-9_-]{43}$/.test(text) ? text : null
  } catch {
    return null
  }
}

/** Where the service of a stateDir can be reached, for commands on the same machine. */
export interface Endpoint {
  readonly url: string
  readonly pid: number
}

export function writeEndpoint(stateDir: string, endpoint: Endpoint): void {
  writePrivate(endpointFileOf(stateDir), `${JSON.stringify(endpoint)}\n`)
}

/** null = no service has written one, or it is gone. */
export function readEndpoint(stateDir: string): Endpoint | null {
  try {
    const value: unknown = JSON.parse(readFileSync(endpointFileOf(stateDir), 'utf8'))
    if (!isObject(value) || typeof value['url'] !== 'string' || typeof value['pid'] !== 'number') return null
    return { url: value['url'], pid: value['pid'] }
  } catch {
    return null
  }
}

/** Removes what `writeEndpoint` wrote, unless another service has written since. */
export function removeEndpoint(stateDir: string, pid: number): void {
  if (readEndpoint(stateDir)?.pid === pid) rmSync(endpointFileOf(stateDir), { force: true })
}

export interface SessionsFolder {
  /** `stateDir/sessions`, or `sessions-2` ... when services that live hold the former ones. */
  readonly path: string
  release(): void
}

/** Services that may share one stateDir. */
const MOST_SERVICES = 64

/**
 * Takes the first sessions folder that no living process holds. Two services never share one: the reaper of each kills what sessions
 * it does not know. The folder of a service that was killed is taken by the next one, which removes what is left in it.
 */
export function claimSessionsFolder(stateDir: string, pid: number = process.pid): SessionsFolder {
  makeFolder(stateDir)
  for (let number = 1; number <= MOST_SERVICES; number += 1) {
    const path = join(stateDir, number === 1 ? 'sessions' : `sessions-${number}`)
    const owner = `${path}.owner`
    if (!claim(owner, pid)) continue
    makeFolder(path)
    return { path, release: () => rmSync(owner, { force: true }) }
  }
  throw new RolloutError(
    'CONFIG_INVALID',
    `stateDir ${stateDir} is in use by ${MOST_SERVICES} services; name another one`,
  )
}

function claim(owner: string, pid: number): boolean {
  const mine = `${pid} ${startTimeOf(pid) ?? ''}\n`
  for (let attempt = 0; attempt < 2; attempt += 1) {
    try {
      writePrivate(owner, mine, 'wx')
      return true
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
    }
    if (isHeld(owner)) return false
    rmSync(owner, { force: true })
  }
  return false
}

function isHeld(owner: string): boolean {
  try {
    const [pid = '', startTime = ''] = readFileSync(owner, 'utf8').trim().split(' ')
    if (!/^\d+$/.test(pid)) return false
    process.kill(Number(pid), 0)
    return startTime === '' || startTimeOf(Number(pid)) === startTime
  } catch (cause) {
    // EPERM: the process is there and someone else's.
    return (cause as NodeJS.ErrnoException).code === 'EPERM'
  }
}

export function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw new RolloutError('CONFIG_INVALID', `folder ${path} cannot be made: ${(cause as Error).message}`, { cause })
  }
}

function writePrivate(path: string, text: string, flags: 'w' | 'wx' = 'w'): void {
  const file = openSync(path, flags, 0o600)
  try {
    // The mode above is only for a file that was not there.
    if (flags === 'w') chmodSync(path, 0o600)
    writeSync(file, text)
  } finally {
    closeSync(file)
  }
}

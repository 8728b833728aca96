// Finds and ends the processes of a session by a scan of /proc. A process belongs to it when its environment carries the
// session's marker, its cwd lies in the session's folder, or it descends from one that does: a group kill misses `setsid`.
// A pid is signalled only while its start time is the one that was seen.

import { readFileSync } from 'node:fs'
import { readdir, readFile, readlink, realpath } from 'node:fs/promises'
import type { Clock } from '../domain/clock.js'
import type { TeardownReport } from './base.js'
import { isWithin } from './shared/confined-path.js'

/** Marker of every process of a session. */
export const SESSION_MARKER = 'SEXTANT_SESSION'
/** `agent` or `eval`. */
export const ROLE_MARKER = 'SEXTANT_ROLE'
/** One per command, so that its time-out ends it and leaves services of earlier commands alone. */
export const EXEC_MARKER = 'SEXTANT_EXEC'

const GRACE_MS = 2_000
const PROOF_LIMIT_MS = 15_000
const SCAN_INTERVAL_MS = 50

export interface FoundProcess {
  readonly pid: number
  readonly parent: number
  /** Field 22 of /proc/<pid>/stat, in clock ticks since boot. */
  readonly startTime: string
  /** Value of the session marker; null when found by its folder or its parent. */
  readonly sessionId: string | null
}

/** Which processes belong. A process matches by all of `markers`, or by its cwd below `folder`. */
export interface ProcessMatch {
  readonly markers: Readonly<Record<string, string>>
  /** Absolute, links resolved. */
  readonly folder?: string
}

/** Processes that match, and their descendants; never this process. null = this system has no /proc. */
export async function findProcesses(match: ProcessMatch): Promise<readonly FoundProcess[] | null> {
  const wanted = Object.entries(match.markers).map(([name, value]) => `\0${name}=${value}\0`)
  return await scan((environment, cwd) => {
    if (wanted.length > 0 && wanted.every(entry => environment.includes(entry))) return true
    return match.folder !== undefined && cwd !== null && isWithin(match.folder, cwd)
  })
}

/**
 * Processes of any session whose folder lies below `stateDir` and for which `isDead(sessionId)`: what a crashed service left.
 * Sessions of another service with another state folder are not touched. null = this system has no /proc.
 */
export async function findLeftovers(
  stateDir: string,
  isDead: (sessionId: string) => boolean,
): Promise<readonly FoundProcess[] | null> {
  const roots = [stateDir, await realpath(stateDir).catch(() => stateDir)]
  return await scan(environment => {
    const sessionId = variable(environment, SESSION_MARKER)
    const folder = variable(environment, 'SESSION_DIR')
    return sessionId !== null && folder !== null && roots.some(root => isWithin(root, folder)) && isDead(sessionId)
  })
}

/**
 * TERM, up to two seconds, then KILL until two consecutive scans are empty.
 * `find` is called again and again; `groups` are killed as process groups where there is no /proc.
 * Not proven after 15 seconds: `proven` false. Never throws for a process that is gone already.
 */
export async function endProcesses(
  find: () => Promise<readonly FoundProcess[] | null>,
  groups: readonly number[],
  clock: Clock,
): Promise<TeardownReport> {
  const first = await find()
  if (first === null) return await endGroups(groups, clock)
  const seen = new Set(first.map(key))
  let living = first
  for (const found of living) signalIfSame(found, 'SIGTERM')
  const graceEnds = clock.now() + GRACE_MS
  while (living.length > 0 && clock.now() < graceEnds) {
    await clock.sleep(SCAN_INTERVAL_MS)
    living = (await find()) ?? []
  }
  const proofEnds = clock.now() + PROOF_LIMIT_MS
  let emptyScans = 0
  while (emptyScans < 2) {
    living = (await find()) ?? []
    emptyScans = living.length === 0 ? emptyScans + 1 : 0
    for (const found of living) {
      seen.add(key(found))
      signalIfSame(found, 'SIGKILL')
    }
    if (emptyScans >= 2) break
    if (clock.now() >= proofEnds) return { proven: false, killed: seen.size, method: 'proc-scan' }
    await clock.sleep(living.length > 0 ? SCAN_INTERVAL_MS : 5)
  }
  return { proven: true, killed: seen.size, method: 'proc-scan' }
}

/** Start time of a living process; null without /proc or when it is gone. */
export function startTimeOf(pid: number): string | null {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.startTime ?? null
  } catch {
    return null
  }
}

/** Signals the group of `pid`, if `pid` is still the process that was started. Gone is fine. */
export function signalGroup(pid: number, startTime: string | null, signal: NodeJS.Signals): void {
  const current = startTimeOf(pid)
  if (startTime !== null && current !== null && current !== startTime) return
  quietKill(-pid, signal)
}

type Wanted = (environment: string, cwd: string | null) => boolean

async function scan(wanted: Wanted): Promise<readonly FoundProcess[] | null> {
  const names = await readdir('/proc').catch(() => null)
  const pids = names?.filter(name => /^\d+$/.test(name)).map(Number) ?? []
  if (pids.length === 0) return null
  const living = new Map<number, FoundProcess>()
  const belongs = new Set<number>()
  for (const pid of pids) {
    if (pid === process.pid) continue
    const stat = parseStat(await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => ''))
    if (stat === null || stat.state === 'Z' || stat.state === 'X') continue
    const raw = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => null)
    const environment = raw === null ? '' : `\0${raw}\0`
    const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => null)
    living.set(pid, {
      pid,
      parent: stat.parent,
      startTime: stat.startTime,
      sessionId: variable(environment, SESSION_MARKER),
    })
    if (wanted(environment, cwd)) belongs.add(pid)
  }
  addDescendants(living, belongs)
  return [...belongs].flatMap(pid => living.get(pid) ?? [])
}

function addDescendants(living: ReadonlyMap<number, FoundProcess>, belongs: Set<number>): void {
  for (let grew = true; grew; ) {
    grew = false
    for (const { pid, parent } of living.values()) {
      if (belongs.has(parent) && !belongs.has(pid)) {
        belongs.add(pid)
        grew = true
      }
    }
  }
}

/** The command name in field 2 may hold spaces and parentheses, so fields are counted after the last one. */
function parseStat(text: string): { state: string; parent: number; startTime: string } | null {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, parent, startTime] = [fields[0], fields[1], fields[19]]
  if (!state || parent === undefined || startTime === undefined) return null
  return { state, parent: Number(parent), startTime }
}

function variable(environment: string, name: string): string | null {
  const start = environment.indexOf(`\0${name}=`)
  if (start < 0) return null
  const from = start + name.length + 2
  return environment.slice(from, environment.indexOf('\0', from))
}

async function endGroups(groups: readonly number[], clock: Clock): Promise<TeardownReport> {
  let living = groups.filter(groupLives)
  const killed = living.length
  for (const group of living) quietKill(-group, 'SIGTERM')
  const graceEnds = clock.now() + GRACE_MS
  while (living.length > 0 && clock.now() < graceEnds) {
    await clock.sleep(SCAN_INTERVAL_MS)
    living = living.filter(groupLives)
  }
  for (const group of living) quietKill(-group, 'SIGKILL')
  return { proven: false, killed, method: 'process-group' }
}

/** True while any process of the group lives. */
export const groupLives = (group: number): boolean => quietKill(-group, 0)

const key = (found: FoundProcess): string => `${found.pid}@${found.startTime}`

function signalIfSame(found: FoundProcess, signal: NodeJS.Signals): void {
  if (startTimeOf(found.pid) === found.startTime) quietKill(found.pid, signal)
}

/** False when there is no such process (or it is not ours). */
function quietKill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

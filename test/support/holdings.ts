// What this process and its sessions hold: threads, listening ports, processes, folders. Taken before a service starts and compared
// after it has stopped, it shows what leaked. Reads /proc: Linux only.

import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { findLeftovers, findProcesses } from '../../src/runtimes/processes.js'
import { agentTask, type RunningService } from './service.js'

export interface Holdings {
  /** Threads of this process; those of Node itself are all up. */
  readonly threads: number
  /** TCP ports that this process listens on, in order. */
  readonly ports: readonly number[]
}

export async function holdings(): Promise<Holdings> {
  // Node starts the threads of its file pool when they are first needed.
  await Promise.all(Array.from({ length: 16 }, () => readdir('/proc/self')))
  return { threads: readdirSync('/proc/self/task').length, ports: listeningPorts() }
}

const LISTENS = '0A'

function listeningPorts(): readonly number[] {
  const own = new Set(readdirSync('/proc/self/fd').map(socketOf))
  const lines = ['/proc/self/net/tcp', '/proc/self/net/tcp6'].flatMap(linesOf)
  const ports = lines
    .map(line => line.trim().split(/\s+/))
    .filter(fields => fields[3] === LISTENS && own.has(`socket:[${fields[9]}]`))
    .map(fields => Number.parseInt(fields[1]?.split(':')[1] ?? '', 16))
  return ports.sort((a, b) => a - b)
}

function linesOf(file: string): readonly string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').slice(1)
  } catch {
    // No IPv6 on this host.
    return []
  }
}

function socketOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    // The descriptor of the listing itself is closed by now.
    return ''
  }
}

/** A further session on the same service works; then everything stops, and nothing is left that was not there `before`. */
export async function nextWorksAndNothingIsLeft(t: Test, running: RunningService, before: Holdings): Promise<void> {
  const { connection, service } = running
  await connection.submit(agentTask({ task_id: 'task-next' }))
  const next = await connection.task('task-next', 120)
  t.match(next.results, [{ status: 'COMPLETED', error: null }], 'the next session works')
  await nothingIsLeft(t, running, before)
  await t.rejects(fetch(`${service.gatewayUrl}/v1/models`), 'the model port is closed')
}

export async function nothingIsLeft(t: Test, running: RunningService, before: Holdings): Promise<void> {
  const { connection, service, folder } = running
  const state = join(folder, 'state')
  const sessions = realpathSync(join(state, 'sessions'))
  const marked = await findLeftovers(state, () => true)
  t.strictSame(marked, [], 'no process bears the marker of a session')
  t.strictSame((await service.stop()).missed, [], 'everything stops in time')
  await connection.close()
  t.strictSame(await findProcesses({ markers: {}, folder: sessions }), [], 'no process is in a session folder')
  for (const session of readdirSync(sessions)) {
    const left = readdirSync(join(sessions, session)).filter(name => name !== 'artifacts' && name !== 'logs')
    t.strictSame(left, [], 'of a session only its artifacts and logs are left')
  }
  t.strictSame(await holdings(), before, 'no thread and no port is left')
}

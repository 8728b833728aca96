// A service as a process of its own that is there to be killed: started on the same folders again and again.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Connection, connectionTo } from '../../src/cli/connection.js'
import type { FailpointName } from '../../src/observability/failpoints.js'

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url))
const TOKEN = 'chaos-token-0123456789'

export interface KillableService {
  /** null = it ended before it was ready. */
  readonly ready: Promise<Connection | null>
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  /** What it said on stderr, for the report of a failure. */
  said(): string
  kill(signal: 'SIGKILL' | 'SIGTERM'): void
}

export interface ServiceFolders {
  readonly home: string
  readonly stateDir: string
  /** Where harnesses are installed; absent = below `home`. */
  readonly cacheDir?: string
}

/** `engine`: URL of an inference server of vLLM's wire; null = the embedded simulation. */
export function startKillable(
  { home, stateDir, cacheDir }: ServiceFolders,
  engine: string | null,
  failpoint: FailpointName | `${FailpointName}@${number}` | null = null,
): KillableService {
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const config = join(home, 'cluster.json')
  const upstreams = [{ id: 'main', urls: [engine], modelServed: 'policy', probe: 'off', contextWindow: 32_768 }]
  writeFileSync(
    config,
    JSON.stringify({
      control: { port: 0 },
      stages: { init: 2, ready: 2, running: 4, postrun: 1 },
      ...(engine === null ? { simulation: { decodeMsPerToken: 1 } } : { upstreams }),
      stateDir,
      ...(cacheDir !== undefined && { cacheDir }),
      security: { token: TOKEN },
      debug: { failpoint },
    }),
  )
  const child: ChildProcess = spawn(process.execPath, [MAIN, 'serve', '--config', config, '--log-level', 'warn'], {
    env: { PATH: process.env['PATH'] ?? '', HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', part => {
    stderr = `${stderr}${part}`.slice(-20_000)
  })
  const ended = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
  let connection: Connection | null = null
  const ready = new Promise<Connection | null>(resolve => {
    if (child.stdout === null) return resolve(null)
    createInterface({ input: child.stdout }).on('line', line => {
      const url = /^sextant is ready: control (\S+),/.exec(line)?.[1]
      if (url === undefined) return
      connection = connectionTo(url, TOKEN)
      resolve(connection)
    })
    void ended.then(() => resolve(null))
  })
  void ended.then(() => connection?.close())
  return { ready, ended, said: () => stderr, kill: signal => void child.kill(signal) }
}

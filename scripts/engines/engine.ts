// A real inference server as a child process on a free loopback port: started, waited for, ended with all that it started.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { realClock } from '../../actors/system/clock.js'
import { NotHere } from './run.js'

/** Context window in tokens that each engine is started with. */
export const WINDOW = 16_384
const START_MS = 15 * 60_000

export interface EngineCommand {
  readonly program: string
  readonly argv: (port: number) => readonly string[]
  /** Beside PATH and HOME. */
  readonly env: Readonly<Record<string, string>>
  /** File that gets all it says. */
  readonly log: string
}

export interface RunningEngine {
  readonly url: string
  readonly startSeconds: number
  stop(): Promise<void>
}

/** Resolves when `/health` answers 200. Throws NotHere with the end of its log when it does not come up. */
export async function startEngine({ program, argv, env, log }: EngineCommand): Promise<RunningEngine> {
  const port = await freePort()
  const output = openSync(log, 'w')
  const startedAt = performance.now()
  const child = spawn('nice', ['-n', '10', program, ...argv(port)], {
    stdio: ['ignore', output, output],
    // A group of its own: an engine has worker processes.
    detached: true,
    env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...env },
  })
  closeSync(output)
  const ended = once(child, 'exit')
  const stop = async (): Promise<void> => {
    const isRunning = child.exitCode === null && child.signalCode === null
    if (isRunning && child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
    await ended
  }
  const url = `http://127.0.0.1:${port}`
  const clock = realClock()
  for (;;) {
    const isUp = await fetch(`${url}/health`).then(
      response => response.status === 200,
      () => false,
    )
    if (isUp) return { url, startSeconds: Math.round((performance.now() - startedAt) / 1000), stop }
    if (child.exitCode !== null || child.signalCode !== null || performance.now() - startedAt > START_MS) {
      await stop()
      const said = readFileSync(log, 'utf8').trim().split('\n').slice(-3).join(' | ').slice(0, 400)
      throw new NotHere(`it did not start: ${said}`)
    }
    await clock.sleep(500)
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  await new Promise(resolve => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

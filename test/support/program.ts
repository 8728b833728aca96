// The compiled program as a child process, with a home of its own.

import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url))

interface Teardown {
  teardown(run: () => unknown): unknown
}

export interface Program {
  readonly child: ChildProcess
  /** Resolves with the first line of standard output that matches; rejects with everything said when the program ends before. */
  line(pattern: RegExp): Promise<string>
  readonly ended: Promise<Ended>
}

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** `home`: HOME of the program, below which its default folders lie. */
export function program(t: Teardown, home: string, args: readonly string[], command = process.execPath): Program {
  const argv = command === process.execPath ? [MAIN, ...args] : [...args]
  const child = spawn(command, argv, {
    env: { PATH: process.env['PATH'] ?? '', HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  let stdout = ''
  let stderr = ''
  const waiting = new Set<() => void>()
  createInterface({ input: child.stdout }).on('line', line => {
    stdout += `${line}\n`
    for (const look of waiting) look()
  })
  child.stderr.setEncoding('utf8').on('data', part => {
    stderr += part
  })
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject).on('close', code => resolve({ code, stdout, stderr }))
  })
  return {
    child,
    ended,
    line: pattern =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = stdout.split('\n').find(line => pattern.test(line))
          if (found === undefined) return
          waiting.delete(look)
          resolve(found)
        }
        waiting.add(look)
        look()
        ended.then(
          ({ code }) => reject(new Error(`ended with ${code} before ${pattern}:\n${stdout}\n${stderr}`)),
          reject,
        )
      }),
  }
}

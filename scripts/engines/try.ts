// `sextant try` as a program against a server, and whether its verdict is the right one.

import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { ProbeReport } from '../../src/upstreams/probe.js'
import type { Check } from './checks.js'

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url))
/** What a user may have to wait for the verdict, with a session. */
const LIMIT_SECONDS = 120

export interface Wanted {
  readonly verdict: ProbeReport['verdict']
  /** Each of these must be among the reasons; none = no reason at all. */
  readonly reasons: readonly string[]
}

/** What `sextant try --json` prints. */
interface Tried {
  readonly report: ProbeReport
  readonly proof: {
    readonly harness: string
    readonly row: {
      readonly status: string
      readonly calls: number
      readonly sampled: number
      readonly trained: number
    } | null
    readonly reason: string | null
  } | null
}

const EXIT_CODES: Readonly<Record<ProbeReport['verdict'], number>> = {
  trainable: 0,
  evaluation_only: 3,
  unreachable: 1,
}

export interface TryTarget {
  readonly url: string
  readonly profile?: string
  /** `none` = the probe alone. */
  readonly harness: string
  /** Folder for the state of the service that the session runs in. */
  readonly stateFolder: string
}

export async function tryCheck(
  { url, profile = 'vllm', harness, stateFolder }: TryTarget,
  wanted: Wanted,
): Promise<Check> {
  const startedAt = performance.now()
  const argv = ['try', '--upstream', url, '--profile', profile, '--harness', harness, '--json']
  const { code, stdout, stderr } = await sextant(argv, stateFolder)
  const seconds = (performance.now() - startedAt) / 1000
  const name = [
    'sextant try',
    profile !== 'vllm' && `--profile ${profile}`,
    harness !== 'none' && `--harness ${harness}`,
  ]
    .filter(part => part !== false)
    .join(' ')
  const told = resultOf(stdout)
  if (told === null)
    return { name, isGood: false, detail: `exit code ${code}: ${stderr.trim().split('\n').at(-1) ?? ''}` }
  const { report, proof } = told
  const isVerdictRight =
    report.verdict === wanted.verdict &&
    wanted.reasons.every(reason => report.reasons.includes(reason)) &&
    (wanted.reasons.length > 0 || report.reasons.length === 0)
  const row = proof?.row ?? null
  const isProven =
    harness === 'none'
      ? proof === null
      : row !== null && proof?.reason === null && row.calls > 0 && row.trained > 0 === (wanted.verdict === 'trainable')
  const detail = [
    `${WORDS[report.verdict]}${report.reasons.length === 0 ? '' : ` (${report.reasons.join(', ')})`}`,
    `exit code ${code}, ${report.calls} small calls, ${seconds.toFixed(0)} s`,
    ...(proof === null
      ? []
      : [
          row === null
            ? `no session: ${proof.reason}`
            : `session ${row.status}, ${row.calls} calls, ${row.trained} of ${row.sampled} tokens trained`,
        ]),
    ...(proof?.reason ? [proof.reason] : []),
  ].join('; ')
  return {
    name,
    isGood: isVerdictRight && isProven && code === EXIT_CODES[wanted.verdict] && seconds <= LIMIT_SECONDS,
    detail,
  }
}

const WORDS: Readonly<Record<ProbeReport['verdict'], string>> = {
  trainable: 'TRAINABLE',
  evaluation_only: 'EVALUATION ONLY',
  unreachable: 'NOT REACHED',
}

function sextant(
  argv: readonly string[],
  stateFolder: string,
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  const child = spawn(process.execPath, [MAIN, ...argv], {
    env: { ...process.env, XDG_STATE_HOME: stateFolder },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', part => {
    stdout += part
  })
  child.stderr.setEncoding('utf8').on('data', part => {
    stderr += part
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject).on('close', code => resolve({ code, stdout, stderr }))
  })
}

/** null where the program printed no result. */
function resultOf(stdout: string): Tried | null {
  try {
    return JSON.parse(stdout) as Tried // the program's own output
  } catch {
    return null
  }
}

// `sextant try`: can this inference server be trained on? A probe, then one session of a real harness as proof, in under two minutes.
// Exit code 0 = trainable, 3 = evaluation only, 1 = it could not be reached.

import { type Command, InvalidArgumentError, Option } from 'commander'
import { realClock } from '../../../actors/system/clock.js'
import { readEnvironment } from '../../config/load.js'
import { RolloutError } from '../../domain/errors.js'
import { harnesses } from '../../harnesses/registry.js'
import { createHttpClient } from '../../http/client.js'
import type { LogLevel } from '../../observability/logger.js'
import type { UpstreamProfile } from '../../upstreams/base.js'
import { type ProbeReport, probeUpstream } from '../../upstreams/probe.js'
import { upstreams } from '../../upstreams/registry.js'
import { exitCodeOf, findingsText, type Proof, proofText, verdictText } from './report.js'
import { proofSession } from './session.js'

/** Measured: the lightest of the six CLIs that runs on Node 20 as it is. */
const DEFAULT_HARNESS = 'gemini_cli'
const NO_HARNESS = 'none'
/** Exit code of an interrupted run, as shells give it. */
const INTERRUPTED = 130

interface TryFlags {
  readonly upstream: readonly string[]
  readonly profile: keyof typeof upstreams
  readonly model?: string
  readonly apiKeyEnv?: string
  readonly harness: string
  readonly json: boolean
  readonly logLevel: LogLevel
}

const url = (text: string, before: readonly string[] = []): readonly string[] => {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new InvalidArgumentError('wanted an http or https URL, like http://127.0.0.1:8000')
  return [...before, text.replace(/\/+$/, '')]
}

export function tryCommand(program: Command): void {
  const names = Object.entries(harnesses).flatMap(([id, preset]) => (preset.install === null ? [] : [id]))
  program
    .command('try')
    .description('find out whether an inference server can be trained on, and what to change if not')
    .requiredOption('--upstream <url>', 'its base URL; again for each further replica', url)
    .addOption(new Option('--profile <name>', 'kind of server').choices(Object.keys(upstreams)).default('vllm'))
    .option('--model <name>', 'model name it serves; default: the first it lists')
    .option('--api-key-env <name>', 'environment variable that holds the key of the server (its --api-key)')
    .addOption(
      new Option('--harness <name>', 'agent CLI of the session that proves it; none = the probe alone')
        .choices([...names, NO_HARNESS])
        .default(DEFAULT_HARNESS),
    )
    .option('--json', 'print report and session as one JSON line', false)
    .addOption(
      new Option('--log-level <level>', 'of the service').choices(['error', 'warn', 'info', 'debug']).default('error'),
    )
    .action(async (flags: TryFlags) => {
      const stopping = new AbortController()
      const stop = (): void => stopping.abort(new Error('interrupted'))
      process.on('SIGINT', stop)
      process.on('SIGTERM', stop)
      try {
        process.exitCode = await tried(flags, stopping.signal)
      } catch (cause) {
        if (!stopping.signal.aborted) throw cause
        process.exitCode = INTERRUPTED
      } finally {
        process.off('SIGINT', stop)
        process.off('SIGTERM', stop)
      }
    })
}

async function tried(flags: TryFlags, signal: AbortSignal): Promise<number> {
  const say = (text: string): void => void process.stderr.write(`${text}\n`)
  const print = (text: string): void => void (flags.json || process.stdout.write(`${text}\n`))
  const apiKey = secretOf(flags.apiKeyEnv)
  const report = await probed(flags, apiKey, say, signal)
  print(findingsText(report))
  let proof: Proof | null = null
  if (report.verdict !== 'unreachable' && flags.harness !== NO_HARNESS) {
    say(`one session of ${flags.harness} ...`)
    const { harness, logLevel, apiKeyEnv = null } = flags
    proof = await proofSession(report, { harness, logLevel, apiKeyEnv, say, signal })
    print(`\n${proofText(proof)}`)
  }
  print(`\n${verdictText(report, proof)}`)
  if (flags.json) process.stdout.write(`${JSON.stringify({ report, proof })}\n`)
  return exitCodeOf(report, proof)
}

/** Throws CONFIG_INVALID when the variable is not set. */
function secretOf(name: string | undefined): string | null {
  if (name === undefined) return null
  const secret = readEnvironment().secret?.(name) ?? null
  if (secret === null) throw new RolloutError('CONFIG_INVALID', `the environment variable ${name} is missing or empty`)
  return secret
}

async function probed(
  flags: TryFlags,
  apiKey: string | null,
  say: (text: string) => void,
  signal: AbortSignal,
): Promise<ProbeReport> {
  const client = createHttpClient({ connections: 8, connectTimeoutMs: 10_000 })
  const profile: UpstreamProfile = upstreams[flags.profile]
  try {
    return await probeUpstream(
      { urls: flags.upstream, profile, model: flags.model ?? null, apiKey, sampling: {}, contextWindow: null },
      { client, clock: realClock(), signal, onStep: step => say(`probe: ${step} ...`) },
    )
  } finally {
    await client.close()
  }
}

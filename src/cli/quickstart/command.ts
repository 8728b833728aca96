// `sextant quickstart`: options, signals and the exit code around run.ts.

import { type Command, InvalidArgumentError } from 'commander'
import { harnesses } from '../../harnesses/registry.js'
import { quickstart } from './run.js'

/** Measured: the lightest of the six CLIs that runs on Node 20 as it is. */
const DEFAULT_HARNESS = 'gemini_cli'
const DEFAULT_SEED = 7

const whole =
  (least: number) =>
  (text: string): number => {
    const value = Number(text)
    if (!Number.isInteger(value) || value < least)
      throw new InvalidArgumentError(`wanted a whole number of at least ${least}`)
    return value
  }

/** `--drift` alone: the form whose break every harness shows. */
const DEFAULT_DRIFT = ['compact_json']

export function quickstartCommand(program: Command): void {
  const names = Object.entries(harnesses).flatMap(([id, preset]) => (preset.install === null ? [] : [id]))
  program
    .command('quickstart')
    .description('run a real agent harness on the bundled task against the embedded inference server')
    .option('--harness <name>', `one of ${names.join(', ')}`, DEFAULT_HARNESS)
    .option('--samples <count>', 'sessions of the task', whole(1), 4)
    .option('--seed <number>', 'base seed of the samples', whole(0), DEFAULT_SEED)
    .option('--drift [names]', 'let the policy break prefixes (comma-separated names)')
    .option('--kill', "kill the proxy's thread in mid-run", false)
    .option('--json', 'print the figures as one JSON line', false)
    .option('--log-level <level>', 'error, warn, info or debug', 'error')
    .action(async flags => {
      const stopping = new AbortController()
      const stop = (): void => stopping.abort(new Error('interrupted'))
      process.on('SIGINT', stop)
      process.on('SIGTERM', stop)
      const drift =
        flags.drift === undefined ? [] : flags.drift === true ? DEFAULT_DRIFT : String(flags.drift).split(',')
      process.exitCode = await quickstart(
        {
          harness: flags.harness,
          samples: flags.samples,
          seed: flags.seed,
          drift,
          kill: flags.kill,
          json: flags.json,
          logLevel: flags.logLevel,
        },
        stopping.signal,
      )
    })
}

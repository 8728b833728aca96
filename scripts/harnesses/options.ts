// The command line of `npm run e2e:harnesses`.

import { parseArgs } from 'node:util'

export interface Options<Cli extends string> {
  readonly clis: readonly Cli[]
  readonly scenarios: readonly string[]
  /** Cells that run side by side. */
  readonly jobs: number
  /** Files the table is written to besides: `.json`, else Markdown. */
  readonly reports: readonly string[]
  /** Leaves every cell's folder, with all it saw, for a look. */
  readonly isKept: boolean
}

/** Throws Error with a line to print. Names after `--only` or alone: of CLIs and of scenarios, both mixed, with commas or spaces. */
export function optionsOf<Cli extends string>(
  args: readonly string[],
  clis: readonly Cli[],
  scenarios: readonly string[],
): Options<Cli> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      only: { type: 'string', multiple: true, default: [] },
      jobs: { type: 'string', default: '2' },
      report: { type: 'string', multiple: true, default: [] },
      keep: { type: 'boolean', default: false },
    },
  })
  const wanted = [...values.only, ...positionals].flatMap(text => text.split(','))
  const known: readonly string[] = [...clis, ...scenarios]
  for (const name of wanted)
    if (!known.includes(name)) throw new Error(`unknown name ${name}: wanted one of ${known.join(', ')}`)
  const jobs = Number(values.jobs)
  if (!Number.isSafeInteger(jobs) || jobs < 1) throw new Error(`--jobs ${values.jobs}: wanted a number from 1`)
  const some = <T extends string>(all: readonly T[]): readonly T[] => {
    const chosen = all.filter(name => wanted.includes(name))
    return chosen.length > 0 ? chosen : all
  }
  return { clis: some(clis), scenarios: some(scenarios), jobs, reports: values.report, isKept: values.keep }
}

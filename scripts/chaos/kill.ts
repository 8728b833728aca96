// `npm run chaos:kill`: the service is killed with SIGKILL at every named transition, then at random instants, with harness sessions at
// work, and started again on the same stateDir. After each chain of kills all that must hold is verified (verify.ts).
// `--rounds N` (200), `--seed S` (random, printed), `--no-failpoints`, `--chain N` lives before a verification (10).

import { existsSync, readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { FAILPOINTS } from '../../src/observability/failpoints.js'
import { type Chain, type ChainOptions, openChain } from './chain.js'
import { failpointNames, killAt, killAtRandom, seeded } from './plan.js'
import type { Figures } from './verify.js'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '200' },
    chain: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    'no-failpoints': { type: 'boolean', default: false },
  },
})
const rounds = Number(values.rounds)
const length = Number(values.chain)
/** Of a real CLI, whose sessions take seconds. */
const HARNESS_LIVES = 5
const isGeminiCli = (name: string): boolean => name.startsWith('gemini_cli@')
const random = seeded(Number(values.seed))
const startedAt = performance.now()
const total: Record<string, number> = {}
console.log(`seed ${values.seed}`)

const seconds = (): string => `${((performance.now() - startedAt) / 1000).toFixed(0)} s`

async function chained(
  what: string,
  lives: readonly ((chain: Chain) => Promise<void>)[],
  options: Partial<ChainOptions> = {},
): Promise<void> {
  const chain = await openChain({ random, ...options })
  try {
    for (const live of lives) await live(chain)
    const figures: Figures = await chain.settle()
    for (const [name, count] of Object.entries(figures)) total[name] = (total[name] ?? 0) + count
    console.log(`${what}: ${JSON.stringify(figures)} after ${seconds()}`)
  } finally {
    await chain.close()
  }
}

const slices = <T>(list: readonly T[]): readonly (readonly T[])[] =>
  Array.from({ length: Math.ceil(list.length / length) }, (_, at) => list.slice(at * length, (at + 1) * length))

if (!values['no-failpoints']) {
  for (const names of slices(failpointNames)) {
    await chained(
      `failpoints ${names.join(' ')}`,
      names.map(name => async chain => {
        await killAt(chain, name, random)
        console.log(`  killed at ${name}: ${FAILPOINTS[name]}`)
      }),
    )
  }
  console.log(`${failpointNames.length} of ${failpointNames.length} failpoints`)
}
const numbers = Array.from({ length: rounds }, (_, at) => at + 1)
for (const some of slices(numbers)) {
  await chained(
    `rounds ${some[0]} to ${some.at(-1)}`,
    some.map(() => chain => killAtRandom(chain, random)),
  )
}
const cacheDir = join(homedir(), '.cache/sextant')
if (existsSync(join(cacheDir, 'harnesses')) && readdirSync(join(cacheDir, 'harnesses')).some(isGeminiCli)) {
  const lives = Array.from(
    { length: HARNESS_LIVES },
    () => (chain: Chain) => chain.killedAt(random() * 6_000, { answers: 0 }),
  )
  await chained(`${HARNESS_LIVES} rounds of gemini_cli`, lives, { harness: { id: 'gemini_cli', cacheDir } })
} else console.log('gemini_cli is not in the cache: its rounds are left out')
console.log(`${rounds} rounds, 0 lost, 0 duplicated: ${JSON.stringify(total)} in ${seconds()}`)

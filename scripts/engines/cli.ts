// One session of a real harness CLI (pi) against the engine, through the whole service. The model babbles, so the task fails; what
// must hold is that its calls are recorded, trainable and accounted for.

import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { startService } from '../../actors/service.js'
import { realClock } from '../../actors/system/clock.js'
import { connectionTo } from '../../src/cli/connection.js'
import { installHarness } from '../../src/harnesses/install.js'
import { harnesses } from '../../src/harnesses/registry.js'
import { projectRoot } from '../../test/support/paths.js'
import { servicePlan } from '../../test/support/service.js'
import { recordingLogger } from '../../test/support/test-system.js'
import type { Check } from './checks.js'
import { WINDOW } from './vllm.js'

const LIMIT_SECONDS = 240

export async function cliCheck(
  t: { teardown(run: () => unknown): unknown },
  url: string,
  say: (line: string) => void,
): Promise<Check> {
  const base = join(homedir(), '.local', 'state')
  mkdirSync(base, { recursive: true })
  const folder = mkdtempSync(join(base, 'sextant-engines-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const cacheDir = join(homedir(), '.cache', 'sextant')
  say('installing pi')
  await installHarness({ preset: harnesses.pi, cacheDir, env: process.env, clock: realClock() })
  const upstream = { id: 'engine', profile: 'vllm', urls: [url], modelServed: 'tiny', contextWindow: WINDOW }
  const plan = servicePlan(folder, { cacheDir, upstreams: [upstream] })
  const service = await startService(plan, { threads: 'real', log: recordingLogger(), logLevel: 'warn' })
  const connection = connectionTo(service.controlUrl, service.token)
  t.teardown(async () => {
    await connection.close()
    await service.stop()
  })
  const example = join(projectRoot, 'docs', 'examples', 'fix-calculator')
  const text = readFileSync(join(example, 'task.json'), 'utf8').replaceAll(/\$\{exampleDir\}/g, example)
  say('running pi')
  await connection.submit({
    ...(JSON.parse(text) as object),
    num_samples: 1,
    agent: { harness: 'pi' },
    timeout_seconds: LIMIT_SECONDS,
  })
  const task = await connection.task('fix-calculator', LIMIT_SECONDS + 60)
  const result = (task.results[0] ?? {}) as { status?: string; error?: unknown; trajectory?: Told } // the contract's shape
  const ledger = result.trajectory?.metadata.ledger
  const aside = Object.values(ledger?.tokens.set_aside ?? {}).reduce((sum, count) => sum + count, 0)
  const isGood =
    result.status === 'COMPLETED' &&
    ledger !== undefined &&
    ledger.calls > 0 &&
    ledger.tokens.sampled > 0 &&
    ledger.tokens.sampled === ledger.tokens.trained + aside
  const detail = ledger
    ? `${result.status}, ${ledger.calls} calls, ${ledger.tokens.sampled} sampled = ${ledger.tokens.trained} trained + ${aside} set aside ${JSON.stringify(ledger.tokens.set_aside)}`
    : `${result.status}: ${JSON.stringify(result.error ?? null)}`
  return { name: 'pi, a session', isGood, detail }
}

interface Told {
  readonly metadata: {
    readonly ledger: {
      readonly calls: number
      readonly tokens: {
        readonly sampled: number
        readonly trained: number
        readonly set_aside: Readonly<Record<string, number>>
      }
    }
  }
}

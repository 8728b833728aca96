// One session of a real harness CLI (pi) against an engine, through the whole service: first the service's own probe, then the session.
// The model babbles, so the task fails; what must hold is that its calls are recorded, accounted for, and trained on exactly when the
// probe has passed.

import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { startService } from '../../actors/service.js'
import { realClock } from '../../actors/system/clock.js'
import { connectionTo } from '../../src/cli/connection.js'
import { installHarness } from '../../src/harnesses/install.js'
import { harnesses } from '../../src/harnesses/registry.js'
import type { ProbeVerdict } from '../../src/upstreams/probe.js'
import { projectRoot } from '../../test/support/paths.js'
import { servicePlan } from '../../test/support/service.js'
import { recordingLogger } from '../../test/support/test-system.js'
import type { Check, Teardown } from './checks.js'
import { WINDOW } from './engine.js'

const LIMIT_SECONDS = 240
/** Longer than a probe takes at most. */
const PROBE_SECONDS = 150

export interface CliTarget {
  readonly url: string
  readonly profile: string
  readonly verdict: ProbeVerdict
}

export async function cliChecks(
  t: Teardown,
  { url, profile, verdict }: CliTarget,
  say: (line: string) => void,
): Promise<readonly Check[]> {
  const base = join(homedir(), '.local', 'state')
  mkdirSync(base, { recursive: true })
  const folder = mkdtempSync(join(base, 'sextant-engines-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const cacheDir = join(homedir(), '.cache', 'sextant')
  say('installing pi')
  await installHarness({ preset: harnesses.pi, cacheDir, env: process.env, clock: realClock() })
  const upstream = { id: 'engine', profile, urls: [url], modelServed: 'tiny', contextWindow: WINDOW }
  const plan = servicePlan(folder, { cacheDir, upstreams: [upstream] })
  const service = await startService(plan, { threads: 'real', log: recordingLogger(), logLevel: 'warn' })
  const connection = connectionTo(service.controlUrl, service.token)
  t.teardown(async () => {
    await connection.close()
    await service.stop()
  })
  say("the service's own probe")
  const standing = await probed(service.controlUrl)
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
  return [
    {
      name: "the service's own probe",
      isGood: standing.verdict === verdict,
      detail: `${standing.verdict} ${standing.reasons.join(', ')}`.trim(),
    },
    sessionCheck((task.results[0] ?? {}) as Result, verdict), // the contract's shape
  ]
}

function sessionCheck({ status, error, trajectory }: Result, verdict: ProbeVerdict): Check {
  const ledger = trajectory?.metadata.ledger
  const name = 'pi, a session'
  if (ledger === undefined) return { name, isGood: false, detail: `${status}: ${JSON.stringify(error ?? null)}` }
  const { sampled, trained, set_aside: setAside } = ledger.tokens
  const aside = Object.values(setAside).reduce((sum, count) => sum + count, 0)
  const isGood =
    status === 'COMPLETED' &&
    ledger.calls > 0 &&
    sampled > 0 &&
    sampled === trained + aside &&
    trained > 0 === (verdict === 'trainable')
  const why = Object.keys(setAside).length === 0 ? '' : ` ${JSON.stringify(setAside)}`
  return {
    name,
    isGood,
    detail: `${status}, ${ledger.calls} calls, ${sampled} sampled = ${trained} trained + ${aside} set aside${why}`,
  }
}

/** Waits until the service has probed its one upstream. */
async function probed(controlUrl: string): Promise<Standing> {
  const clock = realClock()
  for (let second = 0; ; second += 1) {
    const health = (await (await fetch(`${controlUrl}/health`)).json()) as { readonly upstreams: readonly Standing[] } // ours
    const standing = health.upstreams[0] ?? { verdict: 'none', reasons: [] }
    if (standing.verdict !== 'not_probed' || second >= PROBE_SECONDS) return standing
    await clock.sleep(1_000)
  }
}

interface Standing {
  readonly verdict: string
  readonly reasons: readonly string[]
}

interface Result {
  readonly status?: string
  readonly error?: unknown
  readonly trajectory?: {
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
}

// One real harness CLI through the whole service: installed from the registry, run on the bundled task against the embedded
// simulation, graded in a fresh copy. Slow and needs the npm registry, so it runs only where SEXTANT_E2E_HARNESSES asks for it.

import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { startService } from '../../actors/service.js'
import { connectionTo } from '../../src/cli/connection.js'
import { type InstalledHarness, installHarness } from '../../src/harnesses/install.js'
import { type HarnessId, harnesses } from '../../src/harnesses/registry.js'
import { findLeftovers } from '../../src/runtimes/processes.js'
import { projectRoot } from './paths.js'
import { servicePlan } from './service.js'
import { recordingLogger } from './test-system.js'
import { wallClock } from './wall-clock.js'

const LIMIT_MS = 10 * 60_000

/** `SEXTANT_E2E_HARNESSES`: `all`, or names separated by commas. */
export function harnessJourney(id: HarnessId): void {
  const wanted = process.env.SEXTANT_E2E_HARNESSES ?? ''
  if (wanted !== 'all' && !wanted.split(',').includes(id)) {
    const reason = `${id}: set SEXTANT_E2E_HARNESSES=${id} (or all) to install the real CLI and run it`
    t.comment(`skipped: ${reason}`)
    t.test(`${id} solves the bundled task`, { skip: reason }, () => {})
    return
  }
  t.setTimeout(LIMIT_MS)
  t.test(`${id} solves the bundled task, token for token, and leaves nothing running`, async t => {
    // Not below the system's temporary folder: Codex refuses a HOME there.
    const base = join(homedir(), '.local', 'state')
    mkdirSync(base, { recursive: true })
    const folder = mkdtempSync(join(base, 'sextant-e2e-'))
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const cacheDir = join(homedir(), '.cache', 'sextant')
    const installed = await install(id, cacheDir)
    const window = { contextWindow: 131_072, solveProbability: 1 }
    const plan = servicePlan(folder, { cacheDir, simulation: window })
    const service = await startService(plan, { threads: 'real', log: recordingLogger(), logLevel: 'warn' })
    const connection = connectionTo(service.controlUrl, service.token)
    t.teardown(async () => {
      await connection.close()
      await service.stop()
    })
    await connection.submit(taskFor(id))
    const task = await connection.task('fix-calculator', 300)
    t.equal(task.results.length, 1)
    const result = task.results[0] as Record<string, unknown>
    const { traces, metadata } = result['trajectory'] as {
      traces: { loss_mask: number[]; reward: number | null }[]
      metadata: Record<string, Record<string, unknown>>
    }
    const ledger = metadata['ledger'] as { calls: number; tokens: Tokens; joins: Record<string, number> }
    t.match(result, { status: 'COMPLETED', error: null })
    t.match(metadata, { agent_result: { status: 'completed', return_code: 0 } })
    t.equal(traces.at(-1)?.reward, 1, 'solved')
    t.ok(ledger.calls >= 3, `${ledger.calls} calls`)
    const aside = Object.values(ledger.tokens.set_aside).reduce((sum, count) => sum + count, 0)
    t.equal(ledger.tokens.sampled, ledger.tokens.trained + aside)
    t.strictSame(Object.keys(ledger.joins), ['exact'])
    t.comment(JSON.stringify({ id, disk: installed.diskBytes, ledger, timing: result['timing'] }))
    t.strictSame(await findLeftovers(folder, () => true), [])
  })
}

interface Tokens {
  readonly sampled: number
  readonly trained: number
  readonly set_aside: Record<string, number>
}

const install = async (id: HarnessId, cacheDir: string): Promise<InstalledHarness> =>
  await installHarness({ preset: harnesses[id], cacheDir, env: process.env, clock: wallClock })

function taskFor(id: HarnessId): Record<string, unknown> {
  const example = join(projectRoot, 'docs', 'examples', 'fix-calculator')
  const text = readFileSync(join(example, 'task.json'), 'utf8').replaceAll(/\$\{exampleDir\}/g, example)
  return { ...(JSON.parse(text) as object), num_samples: 1, agent: { harness: id } }
}

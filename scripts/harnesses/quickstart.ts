// The first column: the quickstart as a user starts it, with one CLI, judged by its own figures.

import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { isAccounted, type SessionRow } from '../../src/cli/quickstart/view.js'
import type { Outcome } from './outcome.js'
import type { CliId } from './scenarios.js'

const ENTRY = fileURLToPath(new URL('../../main.js', import.meta.url))
const BASIS = 'harness book, section 1 (a run with tools ends well); the issue (all joins exact)'
const LIMIT_MS = 5 * 60_000

/** Exit code 0 = at least one solved sample, all accounts balanced; every join of every sample must be exact besides. */
export async function runQuickstart(harness: CliId, signal: AbortSignal): Promise<Outcome> {
  const startedAt = performance.now()
  const { code, stdout, stderr } = await output(harness, signal)
  const line = stdout.trim().split('\n').at(-1) ?? ''
  const rows = line.startsWith('{') ? (JSON.parse(line) as { rows: SessionRow[] }).rows : []
  const joins = rows.flatMap(row => Object.keys(row.joins)).filter(join => join !== 'exact')
  const calls = rows.reduce((sum, row) => sum + row.calls, 0)
  const problems = [
    ...(code === 0 ? [] : [`exit code ${code}: ${stderr.slice(-300)}`]),
    ...(rows.every(isAccounted) ? [] : ['accounts do not balance']),
    ...(joins.length > 0 ? [`joins: ${joins.join(', ')}`] : []),
  ]
  return {
    harness,
    scenario: 'quickstart',
    skipped: null,
    problems,
    // Its calls are counted, not compared: the other columns do that.
    agreement: { matched: 0, total: 0, ways: {}, problems: [] },
    rows,
    facts: {
      turns: 0,
      traces: rows.reduce((sum, row) => sum + row.traces, 0),
      joins: rows.reduce((sum, row) => sum + joined(row.joins), 0),
      side: {},
      exact: rows.reduce((sum, row) => sum + (row.joins['exact'] ?? 0), 0),
    },
    basis: BASIS,
    note: `${rows.length} samples, ${calls} calls, rewards ${rows.map(row => row.reward ?? 'none').join(' ')}`,
    seconds: (performance.now() - startedAt) / 1000,
    folder: null,
  }
}

const joined = (joins: SessionRow['joins']): number => Object.values(joins).reduce((sum, count) => sum + count, 0)

function output(
  harness: CliId,
  signal: AbortSignal,
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [ENTRY, 'quickstart', '--harness', harness, '--json'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      signal: AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)]),
      killSignal: 'SIGTERM',
    })
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', chunk => {
      stdout += String(chunk)
    })
    child.stderr.on('data', chunk => {
      stderr += String(chunk)
    })
    child.on('error', reject)
    child.on('close', code => resolve({ code: code ?? 1, stdout, stderr }))
  })
}

// `sextant export PATH...`: saved results as JSON lines for a trainer, on standard output or in a file. A state directory gives its results
// and, with --include-masked, what its durable store has of other sessions, also while the service runs. Exit code 1 = some could not be read (they are named, the rest is written); 2 =
// wrong use, or no result there.

import { createWriteStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { type ReadingReport, readResults } from '../audit/read-capture.js'
import { type SavedSession, savedSessionOf } from '../audit/saved-result.js'
import { type TrainingSettings, type TrainingView, trainingLines } from '../audit/training-lines.js'
import { RolloutError } from '../domain/errors.js'
import { tokenPieces } from './inspect.js'
import { hasStore, storedResults, type UnreadableStored } from './stored-session.js'

interface ExportOptions {
  readonly view: TrainingView
  readonly minReward?: number
  readonly includeMasked: boolean
  readonly out?: string
  readonly tokenizer?: string
}

export function exportCommand(program: Command): void {
  program
    .command('export')
    .description('write saved results as JSON lines, one a trace, as token ids or as messages')
    .argument('<paths...>', 'result files (.json, .sxr, .jsonl), folders of them, or the state directory of a service')
    .addOption(new Option('--view <view>', 'what a line holds').choices(['tokens', 'messages']).default('tokens'))
    .option('--min-reward <number>', 'leave out traces with a lower reward, or none', finite)
    .option('--include-masked', 'keep traces of which nothing may be trained', false)
    .option('--tokenizer <name>', 'of the sessions in a state directory: folder of the model’s, or qwen3', 'qwen3')
    .option('--out <file>', 'write there (default: standard output)')
    .action(async (paths: string[], options: ExportOptions) => {
      const { sessions, lines, unreadable } = await runExport(paths, options)
      for (const { path, reason } of unreadable) console.error(`sextant export: ${path}: ${reason}`)
      console.error(`sextant export: ${lines} traces of ${sessions} sessions`)
      if (unreadable.length > 0) process.exitCode = 1
    })
}

export interface ExportReport {
  readonly sessions: number
  readonly lines: number
  readonly unreadable: ReadingReport['unreadable']
}

/** One session in memory at a time. Throws TASK_INVALID where there is no result. */
export async function runExport(paths: readonly string[], options: ExportOptions): Promise<ExportReport> {
  const { view, includeMasked, minReward = null, out } = options
  const settings: TrainingSettings = { view, includeMasked, minReward }
  const report: ReadingReport = { unreadable: [], ignoredFiles: 0 }
  let sessions = 0
  let lines = 0
  async function* text(): AsyncGenerator<string> {
    for (const path of paths)
      for await (const saved of savedAt(path, report, options)) {
        sessions++
        for (const line of trainingLines(saved, settings)) {
          lines++
          yield `${line}\n`
        }
      }
  }
  const target = out === undefined ? process.stdout : createWriteStream(out, { mode: 0o600 })
  try {
    await pipeline(Readable.from(text()), target, { end: out !== undefined })
  } catch (cause) {
    // Whoever reads has had enough (`| head`).
    if ((cause as NodeJS.ErrnoException).code !== 'EPIPE') throw cause
  }
  if (sessions === 0 && report.unreadable.length === 0)
    throw new RolloutError('TASK_INVALID', `${paths.join(', ')}: no result there`)
  return { sessions, lines, unreadable: report.unreadable }
}

/**
 * Sessions below `path`. Of a session that is in the store only nobody knows yet how it ends: it comes masked, without a reward, with
 * status ERROR.
 */
async function* savedAt(
  path: string,
  report: ReadingReport,
  { tokenizer = 'qwen3', includeMasked }: ExportOptions,
): AsyncGenerator<SavedSession> {
  if (!hasStore(path)) {
    yield* readResults(path, report)
    return
  }
  const results = join(path, RESULTS)
  const known = new Set<string>()
  if (existsSync(results)) {
    for await (const saved of readResults(results, report)) {
      known.add(saved.sessionId)
      yield saved
    }
  }
  if (!includeMasked) return
  const unreadable: UnreadableStored[] = []
  for await (const { text, sessionId } of storedResults(path, '', tokenPieces(tokenizer), unreadable))
    if (!known.has(sessionId)) yield masked(savedSessionOf(JSON.parse(text)))
  report.unreadable.push(
    ...unreadable.map(({ where, error }) => ({ path: `${path}, ${where}`, reason: error.message })),
  )
}

const masked = (session: SavedSession): SavedSession => ({
  ...session,
  traces: session.traces.map(trace => ({ ...trace, lossMask: new Uint8Array(trace.lossMask.length) })),
})

/** Default of `saveDir`, below the state directory. */
const RESULTS = 'results'

function finite(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('wanted a number')
  return value
}

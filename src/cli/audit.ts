// `sextant audit PATH`: what a capture lost, trained twice, or trained behind a context that the model did not see. Needs no service and
// no config. Exit code 0 = no such token; 1 = there are some; 2 = wrong use, or no capture there; 3 = none found, but files are unreadable.

import { type Command, InvalidArgumentError } from 'commander'
import { writeResult } from '../../actors/rollout/files.js'
import { sessionResultJson } from '../api/encode.js'
import { sessionResultBinary } from '../api/result-binary.js'
import { auditSession } from '../audit/audit-session.js'
import { hasFaults, type SessionAudit, totalOf } from '../audit/figures.js'
import { type ReadingReport, readCapture } from '../audit/read-capture.js'
import { repairedResult } from '../audit/repair.js'
import { auditJson, auditText } from '../audit/report.js'
import { RolloutError } from '../domain/errors.js'
import type { DecodeIds } from '../ledger/decode.js'
import { loadTokenizer } from '../tokenizer/tokenizer.js'

export interface AuditOptions {
  readonly json: boolean
  readonly repair?: string
  readonly tokenizer?: string
  readonly endToken?: number
  readonly sessions: number
}

const FAULTS = 1
const UNREADABLE = 3

export function auditCommand(program: Command): void {
  program
    .command('audit')
    .description('count what a capture lost, trained twice, or trained in a context that the model did not see')
    .argument(
      '<path>',
      'folder or file: results and completion files of the reference system, or results of this program',
    )
    .option('--json', 'print the report as JSON', false)
    .option('--repair <folder>', 'write the faithful traces there, one result a session, in the layout of saveDir')
    .option(
      '--tokenizer <name>',
      'folder of the model’s tokenizer, or qwen3: tells re-tokenised answers from rewritten ones',
    )
    .option('--end-token <id>', 'id of the end-of-turn token (default: told from the answers)', wholeNumber)
    .option('--sessions <n>', 'sessions to list, those with the most faults first', wholeNumber, 20)
    .addHelpText(
      'after',
      '\nExit code: 0 nothing lost, trained twice or out of context; 1 something is; 2 wrong use or no capture; 3 nothing found, but files are unreadable.',
    )
    .action(async (path: string, options: AuditOptions) => {
      process.exitCode = await runAudit(path, options, text => process.stdout.write(text))
    })
}

/** Audits `path`, writes the report to `print`, and returns the exit code. Throws TASK_INVALID when there is no capture. */
export async function runAudit(path: string, options: AuditOptions, print: (text: string) => void): Promise<number> {
  const report: ReadingReport = { unreadable: [], ignoredFiles: 0 }
  const settings = { decode: decoderOf(options.tokenizer ?? null), endTokenId: options.endToken ?? null }
  const sessions: SessionAudit[] = []
  for await (const input of readCapture(path, report)) {
    const { audit: figures, faithful } = await auditSession(input, settings)
    sessions.push(figures)
    if (options.repair === undefined || faithful === null) continue
    const result = repairedResult(figures, faithful, input.saved)
    const file = { json: sessionResultJson(result), binary: await sessionResultBinary(result) }
    await writeResult(options.repair, figures.taskId || 'unknown', figures.sessionId, file).catch(cause => {
      throw new RolloutError(
        'TASK_INVALID',
        `session ${figures.sessionId} cannot be written to ${options.repair}: ${(cause as Error).message}`,
      )
    })
  }
  if (sessions.length === 0 && report.unreadable.length === 0)
    throw new RolloutError('TASK_INVALID', `${path} holds no results and no completion files`)
  const whole = { sessions, total: totalOf(sessions), ...report }
  print(options.json ? `${JSON.stringify(auditJson(whole))}\n` : auditText(whole, options.sessions))
  if (sessions.some(hasFaults)) return FAULTS
  return report.unreadable.length > 0 ? UNREADABLE : 0
}

/** Text of ids by the named tokenizer; without one no text can be told. */
function decoderOf(name: string | null): DecodeIds {
  if (name === null) return async () => null
  const tokenizer = loadTokenizer(name)
  return async ids => {
    try {
      return tokenizer.decode(ids)
    } catch (cause) {
      if (cause instanceof RangeError) return null // an id of another model
      throw cause
    }
  }
}

function wholeNumber(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 0) throw new InvalidArgumentError('wanted a whole number from 0')
  return value
}

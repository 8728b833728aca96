// `sextant inspect <session id or path>`: shows a saved result on the terminal, or writes it as one HTML page. A session without a
// result file is read from the store, also while the service runs it.
// Exit code 1 when its accounts do not add up.

import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { binaryResultJson } from '../api/result-binary.js'
import { loadPlan } from '../config/load.js'
import { errorData, RolloutError } from '../domain/errors.js'
import { checkResult } from '../inspect/checks.js'
import { resultPage } from '../inspect/page.js'
import { readResult, type SavedResult } from '../inspect/read.js'
import { resultText } from '../inspect/text.js'
import type { TokenPieces } from '../inspect/turns.js'
import { loadTokenizer } from '../tokenizer/tokenizer.js'
import { upstreams } from '../upstreams/registry.js'
import { isContainer } from '../wire/columns.js'
import { storedSessions } from './stored-session.js'

interface InspectOptions {
  readonly html?: string
  readonly saveDir?: string
  readonly config?: string
  readonly tokenizer?: string
  readonly trace?: number
  readonly full: boolean
  readonly color: boolean
}

export function inspectCommand(program: Command): void {
  program
    .command('inspect')
    .description('show a saved session result as a person reads it')
    .argument('<session>', 'session id (or its beginning), or the path of a result file')
    .option('--html <file>', 'write one self-contained HTML page instead')
    .option('--save-dir <folder>', 'where result files lie (default: saveDir of the config)')
    .option('--config <file>', 'cluster config whose saveDir and tokenizer to use')
    .option('--tokenizer <name>', 'folder of the model’s tokenizer, or qwen3 (default: of --config, else qwen3)')
    .option('--trace <n>', 'only this trace, from 1', positive)
    .option('--full', 'show long messages in full', false)
    .option('--no-color', 'no colours')
    .action(inspect)
}

async function inspect(session: string, options: InspectOptions): Promise<void> {
  const plan = loadPlan({ path: options.config ?? null, profiles: Object.keys(upstreams) })
  const pieces = tokenPieces(
    options.tokenizer ?? plan.upstreams.find(one => one.tokenizer !== null)?.tokenizer ?? 'qwen3',
  )
  const result = await resultOf(session, options.saveDir ?? plan.saveDir ?? '.', plan.stateDir, pieces)
  if (options.html !== undefined) {
    const page = resolve(options.html)
    writeFileSync(page, resultPage(result, pieces))
    console.log(page)
  } else {
    const colour = options.color && process.stdout.isTTY === true
    process.stdout.write(resultText(result, { pieces, colour, full: options.full, trace: options.trace ?? null }))
  }
  const wrong = checkResult(result).filter(check => !check.ok)
  for (const { name, detail } of wrong) console.error(`sextant inspect: does not hold: ${name} (${detail})`)
  if (wrong.length > 0) process.exitCode = 1
}

/** The saved result, else what the store has of the session. Throws TASK_UNKNOWN, or what makes the session unreadable. */
async function resultOf(session: string, folder: string, stateDir: string, pieces: TokenPieces): Promise<SavedResult> {
  try {
    const path = findResult(session, folder)
    const bytes = readFileSync(path)
    return readResult(isContainer(bytes) ? binaryResultJson(bytes, path) : bytes.toString('utf8'), path)
  } catch (cause) {
    if (errorData(cause).code !== 'TASK_UNKNOWN') throw cause
    const { found, unreadable } = await storedSessions(stateDir, session, pieces)
    for (const { where, error } of unreadable) console.error(`sextant inspect: ${where}: ${error.message}`)
    const [only, ...more] = found
    if (only === undefined) throw cause
    if (more.length === 0) return only
    throw new RolloutError('TASK_UNKNOWN', `${found.length} sessions in the store begin so`)
  }
}

/**
 * The result file of `session`: a path, else `task_*` + `/ses_<id>.json` below `folder`, where a beginning of the id that
 * fits one file is enough. Throws TASK_UNKNOWN naming what was looked for, or the files that fit.
 */
export function findResult(session: string, folder: string): string {
  if (existsSync(session) && statSync(session).isFile()) return session
  const found = existsSync(folder)
    ? readdirSync(folder)
        .filter(name => name.startsWith('task_') && statSync(join(folder, name)).isDirectory())
        .flatMap(name => readdirSync(join(folder, name)).map(file => join(folder, name, file)))
        .filter(path => path.includes(`/ses_${session}`) && path.endsWith('.json'))
    : []
  const exact = found.find(path => path.endsWith(`/ses_${session}.json`))
  if (exact) return exact
  const [only, ...more] = found
  if (only !== undefined && more.length === 0) return only
  const reason =
    more.length > 0
      ? `${found.length} results begin so: ${found.slice(0, 5).join(', ')}`
      : `no file ${session} and no ${join(folder, 'task_*', `ses_${session}*.json`)}`
  throw new RolloutError('TASK_UNKNOWN', reason)
}

/** Text of each id by the named tokenizer; null for ids that are not in its vocabulary. */
export function tokenPieces(name: string): TokenPieces {
  const tokenizer = loadTokenizer(name)
  return ids => {
    if (ids.some(id => id < 0 || id >= tokenizer.size)) return null
    const decoder = tokenizer.decoder()
    return ids.map(id => {
      try {
        return decoder.push(id)
      } catch (cause) {
        if (cause instanceof RangeError) return `⟨${id}⟩` // a gap in the vocabulary
        throw cause
      }
    })
  }
}

function positive(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('wanted a whole number from 1')
  return value
}

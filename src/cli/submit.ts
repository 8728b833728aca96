// `sextant submit <task.json>`: sends a task; with `--wait` shows its end. Exit code by A-120.

import { readFileSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import { type ParseError, parse, printParseErrorCode } from 'jsonc-parser'
import { RolloutError } from '../domain/errors.js'
import { type Connection, type ConnectionFlags, connect, withConnectionFlags } from './connection.js'
import { exitCodeOf, isEnded, taskText } from './task-report.js'

/** Seconds of one long poll. */
const POLL_SECONDS = 60

const seconds = (text: string): number => {
  const value = Number(text)
  if (!(value >= 0.1 && value <= 300)) throw new InvalidArgumentError('wanted seconds from 0.1 to 300')
  return value
}

export function submitCommand(program: Command): void {
  withConnectionFlags(program.command('submit <file>'))
    .description('submit a task from a JSON file ("-" = standard input)')
    .option('--wait', 'wait for its end; exit code 1 when no session completed', false)
    .option('--poll-interval <seconds>', 'longest wait of one question to the service', seconds, POLL_SECONDS)
    .option('--json', 'print the answer as JSON', false)
    .action(async (file: string, flags: ConnectionFlags & { wait: boolean; json: boolean; pollInterval: number }) => {
      const task = readTask(file)
      const connection = connect(flags)
      try {
        const answer = await connection.submit(task)
        const taskId = String(answer['task_id'])
        if (!flags.wait) return void console.log(flags.json ? JSON.stringify(answer) : `task ${taskId} is running`)
        const ended = await waitForEnd(connection, taskId, flags.pollInterval)
        console.log(flags.json ? JSON.stringify(ended) : taskText(ended))
        process.exitCode = exitCodeOf(ended)
      } finally {
        await connection.close()
      }
    })
}

async function waitForEnd(connection: Connection, taskId: string, pollSeconds: number) {
  for (;;) {
    const task = await connection.task(taskId, pollSeconds)
    if (isEnded(task)) return task
  }
}

function readTask(file: string): unknown {
  const text = readFileSync(file === '-' ? 0 : file, 'utf8')
  const errors: ParseError[] = []
  const task: unknown = parse(text, errors, { allowTrailingComma: true })
  const [first] = errors
  if (first === undefined) return task
  const line = text.slice(0, first.offset).split('\n').length
  throw new RolloutError('TASK_INVALID', `${file} is no JSON: line ${line}: ${printParseErrorCode(first.error)}`)
}

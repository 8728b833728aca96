// The commands of the program. One file each; this one registers them and turns errors into text and exit codes.

import { Command } from 'commander'
import { errorData } from '../domain/errors.js'
import { auditCommand } from './audit.js'
import { cancelCommand } from './cancel.js'
import { exportCommand } from './export.js'
import { inspectCommand } from './inspect.js'
import { quickstartCommand } from './quickstart/command.js'
import { serveCommand } from './serve.js'
import { statusCommand } from './status.js'
import { submitCommand } from './submit.js'
import { treeCommand } from './tree.js'
import { tryCommand } from './try/command.js'
import { watchCommand } from './watch.js'

const REGISTER = [
  serveCommand,
  quickstartCommand,
  tryCommand,
  submitCommand,
  statusCommand,
  watchCommand,
  cancelCommand,
  inspectCommand,
  auditCommand,
  exportCommand,
  treeCommand,
]

/** Exit code of what the operator or the author of a task must mend. */
const USAGE = 2

/** Runs the command that `argv` (without node and script) names. Sets process.exitCode. */
export async function runCommand(argv: readonly string[], version: string): Promise<void> {
  const program = new Command('sextant')
    .description('token-faithful rollouts for reinforcement learning of LLM agents, over any agent harness')
    .version(version)
    .showHelpAfterError()
  for (const register of REGISTER) register(program)
  try {
    await program.parseAsync([...argv], { from: 'user' })
  } catch (cause) {
    const error = errorData(cause)
    console.error(
      error.code === 'INTERNAL_BUG' && cause instanceof Error ? (cause.stack ?? error.message) : error.message,
    )
    process.exitCode = error.code === 'CONFIG_INVALID' || error.code === 'TASK_INVALID' ? USAGE : 1
  }
}

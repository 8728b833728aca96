// `sextant cancel <task>`: cancels a task and shows what it had. Exit code 0 when it is cancelled afterwards, or had ended before.

import type { Command } from 'commander'
import { type ConnectionFlags, connect, withConnectionFlags } from './connection.js'
import { isEnded, taskText } from './task-report.js'

export function cancelCommand(program: Command): void {
  withConnectionFlags(program.command('cancel <task>'))
    .description('cancel a task; answers when its sessions have ended')
    .option('--register-if-missing', 'refuse the task for 5 minutes when it is not known yet', false)
    .option('--json', 'print the answer as JSON', false)
    .action(async (taskId: string, flags: ConnectionFlags & { registerIfMissing: boolean; json: boolean }) => {
      const connection = connect(flags)
      try {
        const task = await connection.cancel(taskId, flags.registerIfMissing)
        console.log(flags.json ? JSON.stringify(task) : taskText(task))
        process.exitCode = isEnded(task) ? 0 : 1
      } finally {
        await connection.close()
      }
    })
}

// `sextant watch [task]`: events as lines, as they happen; of one task until it ends.

import type { Command } from 'commander'
import { type ConnectionFlags, connect, type PublicEvent, withConnectionFlags } from './connection.js'
import { exitCodeOf, isEnded } from './task-report.js'

export function watchCommand(program: Command): void {
  withConnectionFlags(program.command('watch [task]'))
    .description('show what happens, as it happens; with a task, until it ends')
    .option('--json', 'print each event as one JSON line', false)
    .action(async (taskId: string | undefined, flags: ConnectionFlags & { json: boolean }) => {
      const connection = connect(flags)
      const stop = new AbortController()
      try {
        for await (const event of connection.events(stop.signal)) {
          // Looked at once the stream stands, so that an end before it is not waited for.
          if (event.type === 'hello' && taskId !== undefined && isEnded(await connection.task(taskId))) break
          if (taskId !== undefined && event.data['task_id'] !== taskId) continue
          if (event.type === 'hello' || event.type === 'ping') continue
          console.log(flags.json ? JSON.stringify(event) : eventText(event))
          if (taskId !== undefined && event.type === 'task.completed') break
        }
        if (taskId !== undefined) process.exitCode = exitCodeOf(await connection.task(taskId))
      } finally {
        stop.abort()
        await connection.close()
      }
    })
}

function eventText({ ts, type, data }: PublicEvent): string {
  const fields = Object.entries(data).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return `${ts.slice(11, 19)} ${type} ${fields.join(' ')}`
}

// `sextant status [task]`: one task, or all of them and what the stages hold.

import type { Command } from 'commander'
import { isObject } from '../domain/json.js'
import { type ConnectionFlags, connect, withConnectionFlags } from './connection.js'
import { exitCodeOf, taskText } from './task-report.js'

export function statusCommand(program: Command): void {
  withConnectionFlags(program.command('status [task]'))
    .description('show a task, or all tasks and the stages')
    .option('--json', 'print the answer as JSON', false)
    .action(async (taskId: string | undefined, flags: ConnectionFlags & { json: boolean }) => {
      const connection = connect(flags)
      try {
        if (taskId === undefined) {
          const status = await connection.status()
          console.log(flags.json ? JSON.stringify(status) : statusText(status))
        } else {
          const task = await connection.task(taskId)
          console.log(flags.json ? JSON.stringify(task) : taskText(task))
          process.exitCode = exitCodeOf(task)
        }
      } finally {
        await connection.close()
      }
    })
}

function statusText(status: Readonly<Record<string, unknown>>): string {
  const tasks = Object.entries(objectOf(status['tasks'])).map(([taskId, state]) => `  ${taskId}: ${String(state)}`)
  const nodes = objectOf(status['nodes'])['nodes']
  const lines = (Array.isArray(nodes) ? nodes : []).map(node => {
    const { node_id, metrics, draining } = objectOf(node)
    const counts = Object.entries(objectOf(metrics)).map(([name, count]) => `${name} ${String(count)}`)
    return `  ${String(node_id)}: ${counts.join(', ')}${draining === true ? ', draining' : ''}`
  })
  const pending = objectOf(status['pipeline'])['pending_sessions']
  return [
    'tasks:',
    ...(tasks.length > 0 ? tasks : ['  none']),
    `pending sessions: ${String(pending)}`,
    'nodes:',
    ...lines,
  ].join('\n')
}

const objectOf = (value: unknown): Readonly<Record<string, unknown>> => (isObject(value) ? value : {})

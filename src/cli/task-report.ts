// A task as text for people, and the exit code that stands for it. Pure.

import Table from 'cli-table3'
import { isObject } from '../domain/json.js'
import type { TaskStatus } from './connection.js'

const TERMINAL: readonly string[] = ['completed', 'failed', 'cancelled']
export const isEnded = (task: Pick<TaskStatus, 'status'>): boolean => TERMINAL.includes(task.status)

/** 0 = completed with at least one COMPLETED session; 1 = failed, cancelled, or none. A task that goes on is 0. */
export function exitCodeOf(task: TaskStatus): number {
  if (!isEnded(task)) return 0
  return task.status === 'completed' && task.results.some(result => result['status'] === 'COMPLETED') ? 0 : 1
}

/** One line for the task and one row a session that ended. */
export function taskText(task: TaskStatus): string {
  const head = `task ${task.task_id}: ${task.status}, ${task.completed_sessions} of ${task.total_sessions} sessions ended`
  if (task.results.length === 0) return head
  const table = new Table({
    head: ['session', 'status', 'reward', 'traces', 'seconds', 'error'],
    style: { head: [], border: [] },
  })
  for (const result of task.results) {
    const trajectory = isObject(result['trajectory']) ? result['trajectory'] : {}
    const traces = Array.isArray(trajectory['traces']) ? trajectory['traces'] : []
    const last: unknown = traces.at(-1)
    const reward = isObject(last) && typeof last['reward'] === 'number' ? String(last['reward']) : '-'
    const timing = isObject(result['timing']) ? result['timing'] : {}
    const seconds = typeof timing['e2e_ms'] === 'number' ? (timing['e2e_ms'] / 1000).toFixed(1) : '-'
    table.push([
      String(result['session_id']),
      String(result['status']),
      reward,
      String(traces.length),
      seconds,
      typeof result['error'] === 'string' ? result['error'].slice(0, 60) : '',
    ])
  }
  return `${head}\n${table.toString()}`
}

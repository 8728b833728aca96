// What spawn.ts and the first file of a thread say to each other.

import type { MessagePort } from 'node:worker_threads'
import type { LogLevel } from '../../src/observability/logger.js'

export interface BootData {
  readonly name: string
  readonly entry: string
  readonly logLevel: LogLevel
  readonly systemPort: MessagePort
  readonly controlPort: MessagePort
}

/** To the thread's own port: it ends in its next turn. */
export const END = 'end'

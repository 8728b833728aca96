// The file every worker thread of ours starts with: takes what spawn.ts sent, loads the thread's own entry and runs it.

import { parentPort, workerData } from 'node:worker_threads'
import { EVENTS } from '../../src/observability/events.js'
import { createLogger } from '../../src/observability/logger.js'
import { realClock } from '../system/clock.js'
import { type BootData, END } from './boot-data.js'
import { loadThread, runThread } from './entry.js'

// spawn.ts is the only one to start a thread with this file, and makes this object.
const { name, entry, logLevel, systemPort, controlPort } = workerData as BootData
const log = createLogger({ level: logLevel, fields: { system: name } })

parentPort?.on('message', message => {
  if (message === END) process.exit(1)
})
// What keeps a thread alive is its control port.
parentPort?.unref()

runThread({
  name,
  body: await loadThread(new URL(entry)),
  systemPort,
  controlPort,
  clock: realClock(),
  log,
  onFailure(error) {
    log.error(EVENTS.threadExit, { error })
    // In a worker this ends the thread, not the process; the host starts it again.
    process.exit(1)
  },
})

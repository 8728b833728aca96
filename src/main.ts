// The program: `node dist/main.js [command] ...`. Without a command it runs the service.

import { readFileSync } from 'node:fs'
import { runCommand } from './cli/commands.js'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}
await runCommand(process.argv.slice(2), version)

// Compiles to dist/ and writes dist/main.js, the one-line entry that the command line names.
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const tsc = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url))
const { status } = spawnSync(process.execPath, [tsc, '-p', root], { stdio: 'inherit' })
if (status !== 0) process.exit(status ?? 1)
mkdirSync(`${root}/dist`, { recursive: true })
writeFileSync(`${root}/dist/main.js`, "#!/usr/bin/env node\nimport './src/main.js'\n", { mode: 0o755 })

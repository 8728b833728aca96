// First thing that runs on a fresh machine, so Node built-ins only: installs when the lock file changed, builds when a
// source changed, then runs the command (quickstart, test, e2e ...) as a child that gets every signal.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '')
const [command = 'test', ...args] = process.argv.slice(2)

const COMMANDS = {
  quickstart: ['dist/main.js', 'quickstart', ...args],
  test: ['scripts/test.mjs', ...args],
  e2e: ['scripts/test.mjs', '--e2e', ...args],
  'test-soak': ['dist/scripts/soak.js', ...args],
  'perf-ledger': ['--expose-gc', 'dist/scripts/perf/ledger.js', ...args],
  'perf-store': ['dist/scripts/perf/store.js', ...args],
  'chaos-kill': ['dist/scripts/chaos/kill.js', ...args],
  'perf-proxy': ['dist/scripts/perf/proxy.js', ...args],
  'e2e-harnesses': ['dist/scripts/e2e-harnesses.js', ...args],
  'e2e-engines': ['dist/scripts/e2e-engines.js', ...args],
}
if (!(command in COMMANDS)) fail(`unknown command ${command}: wanted one of ${Object.keys(COMMANDS).join(', ')}`)
if (Number(process.versions.node.split('.')[0]) < 20) fail(`Node 20 or newer is needed; this is ${process.version}`)

// npm forwards nothing to a grandchild: hold SIGINT (a terminal sends it to the whole group), pass SIGTERM on, and end
// the child when npm itself is gone.
let child = null
process.on('SIGINT', () => {})
process.on('SIGTERM', () => child?.kill('SIGTERM'))
process.on('SIGHUP', () => child?.kill('SIGTERM'))
const parent = process.ppid
setInterval(() => {
  if (process.ppid !== parent) child?.kill('SIGTERM')
}, 500).unref()

await install()
await build()
process.exit(await run(process.execPath, COMMANDS[command]))

async function install() {
  const wanted = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .update(readFileSync(join(root, '.taprc')))
    .digest('hex')
  const marker = join(root, 'node_modules/.sextant-installed.json')
  if (existsSync(marker) && JSON.parse(readFileSync(marker, 'utf8')).lock === wanted) return
  const cache = process.env.npm_config_cache ?? join(homedir(), '.npm')
  const before = sizeOf(join(cache, '_cacache'))
  const startedAt = Date.now()
  process.stderr.write('installing npm packages (once) ...\n')
  const code = await run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'])
  if (code !== 0) fail(`npm ci failed with exit code ${code}`, code)
  // Without it tap loads the plugins that .taprc leaves out, TypeScript's loader among them, into every test and its children.
  const tap = join(root, 'node_modules/tap/dist/esm/run.mjs')
  if ((await run(process.execPath, [tap, 'build'])) !== 0) fail('tap build failed')
  const report = {
    lock: wanted,
    downloadedBytes: Math.max(0, sizeOf(join(cache, '_cacache')) - before),
    ms: Date.now() - startedAt,
  }
  writeFileSync(marker, JSON.stringify(report))
}

async function build() {
  const stamp = join(root, 'dist/.built')
  const newest = Math.max(
    ...['src', 'actors', 'test', 'scripts', 'tsconfig.json'].map(entry => newestChange(join(root, entry))),
  )
  if (existsSync(stamp) && statSync(stamp).mtimeMs >= newest) return
  process.stderr.write('building ...\n')
  const code = await run(process.execPath, ['scripts/build.mjs'])
  if (code !== 0) fail(`the build failed with exit code ${code}`, code)
  mkdirSync(join(root, 'dist'), { recursive: true })
  writeFileSync(stamp, '')
}

function run(program, argv) {
  return new Promise((resolve, reject) => {
    child = spawn(program, argv, { cwd: root, stdio: 'inherit', env: process.env })
    child.on('error', reject)
    child.on('exit', (code, signal) => resolve(code ?? (signal === 'SIGINT' ? 130 : 143)))
  })
}

function newestChange(path) {
  const stat = statSync(path)
  if (!stat.isDirectory()) return stat.mtimeMs
  return Math.max(stat.mtimeMs, ...readdirSync(path).map(name => newestChange(join(path, name))))
}

function sizeOf(path) {
  if (!existsSync(path)) return 0
  const stat = statSync(path)
  return stat.isDirectory() ? readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0) : stat.size
}

function fail(message, code = 1) {
  process.stderr.write(`${message}\n`)
  process.exit(code)
}

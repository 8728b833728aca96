// The whole check, in the order in which it fails soonest: format and lint, import rules, tests.
// Ends with the plain line `N passed, N failed`; `--e2e` runs test/e2e only; further arguments are test files (compiled paths).
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '')
const args = process.argv.slice(2)
const files = args.filter(arg => !arg.startsWith('--'))
const bin = name => join(root, 'node_modules/.bin', name)
const tapFile = join(root, '.tap/all.tap')

let child = null
process.on('SIGINT', () => {})
process.on('SIGTERM', () => child?.kill('SIGTERM'))

removeStale()
let failedChecks = 0
let passedChecks = 0
if (files.length === 0 && !args.includes('--e2e')) {
  for (const [name, program, argv] of [
    ['biome', bin('biome'), ['check', '.', '--error-on-warnings']],
    ['dependency-cruiser', bin('depcruise'), ['--config', '.dependency-cruiser.cjs', 'src', 'actors']],
  ]) {
    process.stdout.write(`== ${name}\n`)
    if ((await run(program, argv)) === 0) passedChecks += 1
    else failedChecks += 1
  }
}

process.stdout.write('== tap\n')
rmSync(tapFile, { force: true })
mkdirSync(join(root, '.tap'), { recursive: true })
const chosen = files.length > 0 ? files : args.includes('--e2e') ? compiled('dist/test/e2e') : []
const status = await run(process.execPath, [
  join(root, 'node_modules/tap/dist/esm/run.mjs'),
  'run',
  '--reporter=terse',
  `--output-file=${tapFile}`,
  ...chosen,
])
const { passed, failed, skipped, reasons, notes } = count(tapFile)
for (const reason of reasons) process.stdout.write(`skipped: ${reason}\n`)
for (const note of notes) process.stdout.write(`${note}\n`)
const allFailed = failed + failedChecks + (status !== 0 && failed === 0 ? 1 : 0)
process.stdout.write(
  `\n${passed + passedChecks} passed, ${allFailed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`,
)
process.exit(allFailed === 0 ? 0 : 1)

/** Counts the assertions of every level; a skip is listed with its reason, as are lines that say how many cases of the book are shown. */
function count(path) {
  const result = { passed: 0, failed: 0, skipped: 0, reasons: [], notes: [] }
  if (!existsSync(path)) return result
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const note = /^ +# (cases: \d+ of \d+)$/.exec(line)
    if (note) result.notes.push(note[1])
    const match = /^ {4,}(not )?ok \d+(?: - (.*))?$/.exec(line)
    if (!match) continue
    const text = match[2] ?? ''
    if (/# SKIP/i.test(text)) {
      result.skipped += 1
      result.reasons.push(text)
    } else if (match[1]) result.failed += 1
    else result.passed += 1
  }
  return result
}

/** Compiled tests and modules whose source is gone would be run for ever. */
function removeStale() {
  const walk = folder => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) walk(path)
      else if (
        path.endsWith('.js') &&
        !existsSync(join(root, relative(join(root, 'dist'), path)).replace(/\.js$/, '.ts'))
      ) {
        rmSync(path)
        rmSync(`${path}.map`, { force: true })
      }
    }
  }
  for (const room of ['test', 'src', 'actors']) if (existsSync(join(root, 'dist', room))) walk(join(root, 'dist', room))
}

function compiled(folder) {
  return readdirSync(join(root, folder), { recursive: true })
    .filter(name => name.endsWith('.test.js'))
    .map(name => join(folder, name))
}

function run(program, argv) {
  return new Promise((resolve, reject) => {
    child = spawn(program, argv, { cwd: root, stdio: 'inherit', env: process.env })
    child.on('error', reject)
    child.on('exit', (code, signal) => resolve(code ?? (signal ? 130 : 1)))
  })
}

// The house rules that no compiler checks: documents tell the truth, files stay readable, registries are complete.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ERROR_CODES } from '../../src/domain/errors.js'
import { projectRoot } from '../support/paths.js'

const read = (path: string): string => readFileSync(join(projectRoot, path), 'utf8')

function sources(folder: string): string[] {
  return readdirSync(join(projectRoot, folder), { recursive: true })
    .map(name => join(folder, String(name)))
    .filter(path => path.endsWith('.ts'))
}

t.test('every path named in ARCHITECTURE.md and README.md exists', t => {
  for (const document of ['ARCHITECTURE.md', 'README.md']) {
    const paths = [...read(document).matchAll(/`((?:src|actors|test|scripts|docs)\/[A-Za-z0-9_./*{},-]*)`/g)].map(
      match => match[1] ?? '',
    )
    t.ok(paths.length > 0, `${document} names paths`)
    const missing = paths.filter(path => !/[*{]/.test(path) && !existsSync(join(projectRoot, path)))
    t.strictSame(missing, [], `${document} names no path that is gone`)
  }
  t.end()
})

t.test('every error code stands in the table of ARCHITECTURE.md', t => {
  const text = read('ARCHITECTURE.md')
  const missing = Object.keys(ERROR_CODES).filter(code => !text.includes(`\`${code}\``))
  t.strictSame(missing, [])
  t.end()
})

t.test('every invariant of ARCHITECTURE.md names a test that exists', t => {
  const rows = read('ARCHITECTURE.md')
    .split('\n')
    .filter(line => /^\| I\d+ \|/.test(line))
  t.ok(rows.length >= 8, 'the invariants are listed')
  for (const row of rows) {
    const tests = [...row.matchAll(/`(test\/[^`]+)`/g)].map(match => match[1] ?? '')
    t.ok(tests.length > 0 && tests.every(path => existsSync(join(projectRoot, path))), row.slice(0, 60))
  }
  t.end()
})

t.test('ARCHITECTURE.md can be read in ten minutes', t => {
  t.ok(read('ARCHITECTURE.md').split('\n').length <= 450)
  t.end()
})

t.test('no source file is over 500 lines', t => {
  const long = [...sources('src'), ...sources('actors'), ...sources('scripts')]
    .map(path => ({ path, lines: read(path).split('\n').length }))
    .filter(file => file.lines > 500)
  t.strictSame(long, [])
  t.end()
})

t.test('every source file says first what it is for', t => {
  const silent = [...sources('src'), ...sources('actors'), ...sources('scripts')].filter(
    path => !/^(#!.*\n)?(\/\/|\/\*)/.test(read(path)),
  )
  t.strictSame(silent, [])
  t.end()
})

t.test('every plugin file stands in its registry', t => {
  // Files that are no plugins are those that the import rules open to others.
  const open = /\(base\|registry\|([a-z|]+)\)/g
  const rules = [...read('.dependency-cruiser.cjs').matchAll(open)].flatMap(match => (match[1] ?? '').split('|'))
  const others = new Set(['base', 'registry', ...rules])
  for (const room of ['dialects', 'upstreams', 'harnesses', 'runtimes', 'builders', 'evaluators']) {
    const registry = read(`src/${room}/registry.ts`)
    const plugins = readdirSync(join(projectRoot, 'src', room))
      .filter(name => name.endsWith('.ts'))
      .map(name => name.replace(/\.ts$/, ''))
      .filter(name => !others.has(name))
    t.strictSame(
      plugins.filter(name => !registry.includes(`'./${name}.js'`)),
      [],
      `src/${room}`,
    )
  }
  t.end()
})

t.test('README names the two commands, and CI runs the second', t => {
  t.match(read('README.md'), /npm run quickstart/)
  t.match(read('README.md'), /npm test/)
  t.match(read('.ci/run'), /^npm test$/m)
  t.end()
})

t.test('nothing marks unfinished work or switches types off', t => {
  const marks = new RegExp(
    ['TO', 'DO|FIX', 'ME|not imple', 'mented|@ts-ig', 'nore|biome-ig', 'nore|: an', 'y\\b'].join(''),
  )
  const marked = [...sources('src'), ...sources('actors'), ...sources('scripts')].filter(path => marks.test(read(path)))
  t.strictSame(marked, [])
  t.end()
})

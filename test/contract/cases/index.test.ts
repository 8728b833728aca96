// All case numbers of the groups of the case book that are about the wire, and for each the test over HTTP that names it. A number that no
// test names is a failure; the last line says how many of how many.

import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

/** Group -> number of its cases. */
const GROUPS = {
  'anthropic-request': 16,
  'anthropic-response': 10,
  'responses-request': 14,
  'responses-response': 5,
  'chat-wire': 8,
  history: 3,
  gemini: 6,
  capture: 8,
} as const

const wanted = Object.entries(GROUPS).flatMap(([group, count]) =>
  Array.from({ length: count }, (_, index) => `${group}-${index + 1}`),
)

/** A string literal of a compiled test that starts with case numbers: `'gemini-1: ...'`, `'history-1, history-2: ...'`. */
const TITLE = new RegExp(`['"\`]((?:(?:${Object.keys(GROUPS).join('|')})-\\d+(?:, )?)+): `, 'g')

/** Of the supports of a test, those that serve HTTP. */
const OVER_HTTP = /support\/(pair|cases|stage-world|service)\.js'/

t.test('every case of the wire groups is named by a test over HTTP', async t => {
  const folder = fileURLToPath(new URL('../..', import.meta.url))
  const named = new Map<string, string>()
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.test.js')) continue
    const text = readFileSync(join(folder, file), 'utf8')
    if (!OVER_HTTP.test(text)) continue
    for (const [, numbers = ''] of text.matchAll(TITLE)) {
      for (const number of numbers.split(', ')) if (!named.has(number)) named.set(number, relative('.', file))
    }
  }
  const missing = wanted.filter(number => !named.has(number))
  t.strictSame(missing, [], 'cases without a test')
  t.strictSame(
    [...named.keys()].filter(number => !wanted.includes(number)),
    [],
    'tests of cases that do not exist',
  )
  for (const [group, count] of Object.entries(GROUPS)) {
    const files = new Set(
      wanted.filter(number => number.replace(/-\d+$/, '') === group).flatMap(number => named.get(number) ?? []),
    )
    t.comment(`${group}: ${count} in ${[...files].join(', ')}`)
  }
  t.comment(`cases: ${wanted.length - missing.length} of ${wanted.length}`)
})

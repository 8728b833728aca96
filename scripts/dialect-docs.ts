// Writes docs/dialects.md from the rows in test/fixtures/dialects/fields: `node dist/scripts/dialect-docs.js`. With `--rows` it first
// brings the rows up to date with the SDKs' types and with what the dialects do, keeping the notes; read the difference before you keep it.

import { readFileSync, writeFileSync } from 'node:fs'
import { dialects } from '../src/dialects/registry.js'
import type { DialectId } from '../src/domain/conversation.js'
import { CLIENT_ONLY, type Fate, fateOf } from './dialect-fates.js'
import { sdkFields } from './dialect-fields.js'

export interface Row {
  readonly fate: Fate | 'client'
  readonly note?: string
}

export type Rows = Readonly<Record<string, Row>>

const SDKS: Readonly<Record<DialectId, string>> = {
  anthropic_messages: '@anthropic-ai/sdk',
  openai_chat: 'openai',
  openai_responses: 'openai',
  google_generate: '@google/genai',
}

export const IDS = Object.keys(SDKS) as DialectId[]

const WORDS: Readonly<Record<Row['fate'], string>> = {
  carried: 'carried',
  loss: 'dropped, recorded as a `loss`',
  refused: 'refused with a typed 400',
  none: 'no effect on prompt or sampling',
  client: "the SDK's own, not in the body",
}

export const rowsFile = (id: DialectId): string => `test/fixtures/dialects/fields/${id}.json`

// Written by this script, and checked against the types and the dialects by test/contract/fields.test.ts.
export const readRows = (id: DialectId): Rows => JSON.parse(readFileSync(rowsFile(id), 'utf8')) as Rows

/** The path of the nearest row above `path`. */
export function rowAbove(path: string, rows: Rows): string | null {
  let best: string | null = null
  for (const above of Object.keys(rows)) {
    const isAbove = path.startsWith(above) && /^[.[{]/.test(path.slice(above.length))
    if (isAbove && (best === null || above.length > best.length)) best = above
  }
  return best
}

/** What a field inside another may be, so that the other's row speaks for both. */
const COVERED: Readonly<Record<Row['fate'], readonly Fate[]>> = {
  carried: [],
  loss: ['loss', 'none'],
  refused: ['refused'],
  none: ['none'],
  client: ['carried', 'loss', 'refused', 'none'],
}

export const covers = (row: Row | undefined, fate: Fate): boolean =>
  row !== undefined && COVERED[row.fate].includes(fate)

export const isClientOnly = (path: string): boolean => CLIENT_ONLY.includes(path.replace(/^config\./, ''))

export function dialectsMarkdown(): string {
  const { dependencies, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  const versions = { ...dependencies, ...devDependencies }
  const parts = IDS.map(id => {
    const rows = readRows(id)
    const counts = Object.values(rows).reduce<Record<string, number>>((sums, { fate }) => {
      sums[fate] = (sums[fate] ?? 0) + 1
      return sums
    }, {})
    const lines = Object.entries(rows).map(
      ([path, { fate, note }]) => `| \`${path}\` | ${WORDS[fate]} | ${note ?? ''} |`,
    )
    const sum = Object.entries(counts)
      .map(([fate, count]) => `${count} ${fate}`)
      .join(', ')
    return [
      `## ${dialects[id].summary}`,
      '',
      `Fields of \`${SDKS[id]}\` ${versions[SDKS[id]]}: ${sum}.`,
      '',
      '| field | what happens to it | note |',
      '| --- | --- | --- |',
      ...lines,
    ].join('\n')
  })
  return `${INTRODUCTION}\n${parts.join('\n\n')}\n`
}

const INTRODUCTION = `# Dialects, field by field

<!-- Written by \`node dist/scripts/dialect-docs.js\`; do not edit. -->

What the gateway does with each field of a request. The list is generated from the request types of the pinned official SDKs, down to blocks,
items and tools; \`npm test\` fails on a field without a row and on a row without a field, sends every field and checks what its row says.

- **carried**: it reaches the canonical request, and from there the engine or the answer.
- **dropped, recorded as a \`loss\`**: the engine has no counterpart. The record of the call names path and reason.
- **refused with a typed 400**: leaving it out would answer another question; the message names the field.
- **no effect**: ids, caching, billing, tracing. The same request with and without it.

Square brackets are elements of lists, braces alternatives; the name inside is the alternative's \`type\` or \`role\`. A row also speaks for the
fields inside it that have no row. A field that no SDK declares and no decoder reads is a loss, however deep it stands. Some are read though
no type declares them any more, or yet: sampling parameters of older clients, \`chat_template_kwargs\`, Codex's own items.
`

/** Rows as the types and the dialects are today, with the notes of before. */
function freshRows(id: DialectId, known: Rows, fields: ReturnType<typeof sdkFields>[DialectId]): Rows {
  const rows: Record<string, Row> = {}
  for (const field of fields) {
    const { path } = field
    const fate = isClientOnly(path) ? 'client' : fateOf(id, field)
    const above = rowAbove(path, rows)
    if (fate !== 'client' && above !== null && covers(rows[above], fate)) continue
    const note = known[path]?.note
    rows[path] = { fate, ...(note !== undefined && { note }) }
  }
  return rows
}

function main(): void {
  if (process.argv.includes('--rows')) {
    const fields = sdkFields()
    for (const id of IDS) {
      let known: Rows = {}
      try {
        known = readRows(id)
      } catch {
        process.stderr.write(`${rowsFile(id)} is new\n`)
      }
      const lines = Object.entries(freshRows(id, known, fields[id])).map(
        ([path, row]) => `  ${JSON.stringify(path)}: ${JSON.stringify(row)}`,
      )
      writeFileSync(rowsFile(id), `{\n${lines.join(',\n')}\n}\n`)
    }
  }
  writeFileSync('docs/dialects.md', dialectsMarkdown())
}

if (process.argv[1]?.endsWith('dialect-docs.js')) main()

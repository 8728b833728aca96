// docs/dialects.md against the types of the official SDKs and against the dialects: every field has a row, every row a field, and sending
// the field shows what the row says.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { covers, dialectsMarkdown, IDS, isClientOnly, readRows, rowAbove } from '../../scripts/dialect-docs.js'
import { decoded, fateOf } from '../../scripts/dialect-fates.js'
import { sdkFields } from '../../scripts/dialect-fields.js'
import { RolloutError } from '../../src/domain/errors.js'

const fields = sdkFields()

for (const id of IDS) {
  t.test(`${id}: every field of the SDK's request type is told, and sending it shows what is told`, async t => {
    const rows = readRows(id)
    const paths = new Set(fields[id].map(({ path }) => path))
    t.ok(paths.size > 100, `${paths.size} fields`)
    t.strictSame(
      Object.keys(rows).filter(path => !paths.has(path)),
      [],
      'rows without a field',
    )
    const untold: string[] = []
    const wrong: string[] = []
    for (const field of fields[id]) {
      const { path } = field
      const above = rowAbove(path, rows)
      const row = rows[path]
      if (isClientOnly(path)) {
        if (row?.fate !== 'client') wrong.push(`${path}: never in the body, told ${row?.fate}`)
        continue
      }
      const fate = fateOf(id, field)
      if (row === undefined) {
        if (above === null || !covers(rows[above], fate)) untold.push(`${path}: ${fate}`)
      } else if (row.fate !== fate) wrong.push(`${path}: told ${row.fate}, is ${fate}`)
    }
    t.strictSame(untold, [], 'fields without a row')
    t.strictSame(wrong, [], 'rows that say something else than what happens')
  })

  t.test(`${id}: a refusal names the field or what it stands in`, async t => {
    const rows = readRows(id)
    for (const field of fields[id]) {
      if (rows[field.path]?.fate !== 'refused') continue
      const refusal = decoded(id, field.body)
      if (!(refusal instanceof RolloutError)) return t.fail(`${field.path} is not refused`)
      const [name = ''] = field.path.replace(/^config\./, '').split(/[.[{]/)
      t.match(refusal.message, name)
      t.equal(refusal.status, 400)
    }
  })
}

t.test('docs/dialects.md is what its rows give', async t => {
  t.equal(readFileSync('docs/dialects.md', 'utf8'), dialectsMarkdown(), 'node dist/scripts/dialect-docs.js writes it')
})

t.test('a field that no SDK knows is a loss, however deep it stands', async t => {
  const unknown = { surprise: 'x' }
  const losses = (id: (typeof IDS)[number], body: object) => {
    const request = decoded(id, body as never)
    return request instanceof RolloutError ? request.message : request.losses.map(({ path }) => path)
  }
  t.strictSame(
    losses('openai_chat', {
      ...unknown,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'a', ...unknown }], ...unknown }],
    }),
    ['surprise', 'messages[0].content[0].surprise', 'messages[0].surprise'],
  )
  t.strictSame(losses('openai_responses', { input: [{ role: 'user', content: 'a', ...unknown }] }), [
    'input[0].surprise',
  ])
  t.strictSame(
    losses('anthropic_messages', {
      messages: [{ role: 'user', content: [{ type: 'text', text: 'a', ...unknown }] }],
      tools: [{ name: 'f', input_schema: { surprise: 'free JSON is not looked into' }, ...unknown }],
    }),
    ['messages[0].content[0].surprise', 'tools[0].surprise'],
  )
  t.strictSame(
    losses('google_generate', { contents: [{ parts: [{ text: 'a', ...unknown }] }], generation_config: {} }),
    ['contents[0].parts[0].surprise'],
  )
})

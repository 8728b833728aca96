// What `sextant inspect` shows of a saved result, on the terminal and as a page.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Command } from 'commander'
import t from 'tap'
import { sessionResultJson } from '../../../src/api/encode.js'
import { findResult, inspectCommand, tokenPieces } from '../../../src/cli/inspect.js'
import type { CapturedCall } from '../../../src/domain/completion.js'
import { checkResult } from '../../../src/inspect/checks.js'
import { resultPage } from '../../../src/inspect/page.js'
import { readResult, type SavedResult } from '../../../src/inspect/read.js'
import { resultText } from '../../../src/inspect/text.js'
import { visible } from '../../../src/inspect/visible.js'
import { recordOf } from '../../support/ledger-fixtures.js'
import { sessionResult, twoTraces } from '../../support/traces.js'

const NASTY = '<script>alert("x")</script>\u001b[31m & \'q\''

/** A fork: `f2` continues c1 as c2 does, so that c1 stands in two traces and is trained in one. */
const fork: CapturedCall = {
  record: recordOf({
    id: 'f2',
    prompt: [1, 2, 3, 10, 11, 99, 60],
    sampled: [30, 99],
    startedAtMs: 4,
    over: {
      request: { messages: [{ role: 'user', content: NASTY }] },
      response: {
        choices: [
          {
            message: {
              role: 'assistant',
              content: null,
              tool_calls: [
                { id: 'x', type: 'function', function: { name: NASTY, arguments: `{"a":"${'long '.repeat(400)}"}` } },
              ],
            },
          },
        ],
      },
    },
  }),
  delivered: 'yes',
}

const saved = async (): Promise<string> => sessionResultJson(sessionResult(await twoTraces({}, [fork])))
const pieces = (ids: readonly number[]): string[] => ids.map(id => (id === 99 ? '<end>\n' : `w${id} `))

t.test('the text form shows turns, joins, accounts and colours by loss mask', async t => {
  const result = readResult(await saved(), 'x')
  const text = resultText(result, { pieces, colour: true, full: false, trace: null })
  t.match(text, '11 sampled = 11 trained + 0 set aside')
  t.match(text, '✓ 11 = 11 + 0')
  t.match(text, 'trace 2 of 3')
  t.match(text, 'join exact · f2 · 1 context token · 2 sampled, trained')
  t.match(text, 'trained in another trace')
  t.match(text, '\u001b[32mw40 <end>\u001b[39m')
  t.match(text, '\u001b[33mw10 w11 <end>\u001b[39m')
  const plain = resultText(result, { pieces, colour: false, full: false, trace: 2 })
  t.notMatch(plain, '\u001b')
  t.notMatch(plain, 'trace 1 of 3')
  t.match(plain, '^[[31m')
  t.match(plain, 'characters more (--full shows them)')
  const full = resultText(result, { pieces, colour: false, full: true, trace: null })
  t.notMatch(full, 'characters more')
})

t.test('the page escapes everything and needs nothing from outside', async t => {
  const page = resultPage(readResult(await saved(), 'x'), pieces)
  t.notMatch(page, '<script')
  t.notMatch(page, /(src|href)\s*=/)
  t.notMatch(page, /url\(|@import/)
  t.match(page, '&#60;script&#62;alert(&#34;x&#34;)')
  t.match(page, 'the accounts add up')
  t.match(page, /<span class="token t\d" title="40 · logprob -0\.100, p 90\.5 %">w40 <\/span>/)
  t.match(page, /<span class="token off" title="10 · not trained">w10 <\/span>/)
  t.match(page, 'prefers-color-scheme: dark')
})

t.test('a vocabulary that does not fit is said, and ids are shown instead', async t => {
  const text = resultText(readResult(await saved(), 'x'), { pieces: () => null, colour: false, full: false, trace: 1 })
  t.match(text, 'the text of the ids is not known here')
  t.match(text, '⟨10⟩⟨11⟩⟨99⟩')
})

t.test('a result of another server is read without our own fields', async t => {
  const bare = {
    session_id: 's',
    task_id: 't',
    status: 'COMPLETED',
    trajectory: {
      status: 'COMPLETED',
      traces: [{ prompt_ids: [1], response_ids: [2, 3], loss_mask: [1, 0], response_logprobs: [-1, 0] }],
    },
  }
  const result = readResult(JSON.stringify(bare), 'bare.json')
  t.ok(checkResult(result).every(check => check.ok))
  t.match(resultText(result, { pieces, colour: false, full: false, trace: null }), 'w2 w3')
})

t.test('a file that is no result names the field', t => {
  t.throws(() => readResult('{', 'a.json'), { code: 'TASK_INVALID', message: /a\.json is no JSON/ })
  t.throws(() => readResult('{"session_id":"s","task_id":"t","status":"x"}', 'a.json'), { message: /trajectory: / })
  t.end()
})

const broken: readonly [title: string, spoil: (result: SavedResult) => void, name: string][] = [
  [
    'a lost token is found',
    result => {
      const tokens = result.trajectory.metadata.ledger?.tokens
      if (tokens) tokens.sampled++
    },
    'sampled = trained + set aside',
  ],
  [
    'a mask that is too long is found',
    result => result.trajectory.traces[0]?.loss_mask.push(0),
    'ids, masks and logprobs are equally long',
  ],
  [
    'a token trained twice is found',
    result => {
      for (const trace of result.trajectory.traces)
        for (const call of trace.metadata.completion_metadata) call.trained = true
    },
    'no call is trained twice',
  ],
  [
    'a mask on context is found',
    result => {
      result.trajectory.traces[0]?.loss_mask.fill(1)
    },
    'mask 1 on sampled answers and nowhere else',
  ],
  [
    'a missing logprob is found',
    result => {
      const [first] = result.trajectory.traces
      if (first) first.response_logprobs = null
    },
    'every trained token has its logprob',
  ],
]
for (const [title, spoil, name] of broken)
  t.test(title, async t => {
    const result = readResult(await saved(), 'x')
    t.ok(checkResult(result).every(check => check.ok))
    spoil(result)
    t.ok(
      checkResult(result).some(check => check.name === name && !check.ok),
      name,
    )
  })

t.test('a result is found by path, by id and by the beginning of an id', t => {
  const folder = t.testdir({
    task_a: { 'ses_s-111.json': '{}', 'ses_s-122.json': '{}' },
    task_b: { 'ses_s-3.json': '{}' },
  })
  t.equal(findResult(`${folder}/task_a/ses_s-111.json`, '/nowhere'), `${folder}/task_a/ses_s-111.json`)
  t.equal(findResult('s-122', folder), `${folder}/task_a/ses_s-122.json`)
  t.equal(findResult('s-3', folder), `${folder}/task_b/ses_s-3.json`)
  t.throws(() => findResult('s-1', folder), { code: 'TASK_UNKNOWN', message: /2 results begin so/ })
  t.throws(() => findResult('s-9', folder), { code: 'TASK_UNKNOWN', message: /no file s-9/ })
  t.throws(() => findResult('s-9', `${folder}/none`), { code: 'TASK_UNKNOWN' })
  t.end()
})

t.test('the command writes a page, and exits with 1 when the accounts do not add up', async t => {
  const folder = t.testdir({ task_t: {} })
  mkdirSync(`${folder}/task_t`, { recursive: true })
  const text = await saved()
  writeFileSync(`${folder}/task_t/ses_s-good.json`, text)
  writeFileSync(`${folder}/task_t/ses_s-bad.json`, text.replace('"sampled":11', '"sampled":12'))
  const before = process.exitCode
  t.teardown(() => {
    process.exitCode = before
  })
  const said: string[] = []
  t.capture(console, 'log', (line: string) => said.push(line))
  t.capture(console, 'error', (line: string) => said.push(line))
  const run = async (...args: string[]) => {
    process.exitCode = 0
    const program = new Command()
    inspectCommand(program)
    await program.parseAsync(['inspect', ...args, '--save-dir', folder], { from: 'user' })
    return process.exitCode
  }
  t.equal(await run('s-good', '--html', `${folder}/page.html`), 0)
  t.match(readFileSync(`${folder}/page.html`, 'utf8'), '<!doctype html>')
  t.equal(await run('s-bad', '--html', `${folder}/page.html`), 1)
  t.match(said.join('\n'), 'does not hold: sampled = trained + set aside (12 = 11 + 0)')
  await t.rejects(run('s-none'), { code: 'TASK_UNKNOWN', message: /no file s-none/ })
})

t.test('the bundled tokenizer gives one piece an id, and knows foreign ids', t => {
  const text = tokenPieces('qwen3')
  t.equal(text([151644, 872, 198])?.join(''), '<|im_start|>user\n')
  t.equal(text([9_999_999]), null)
  t.end()
})

t.test('control characters cannot drive a terminal', t => {
  t.equal(visible('a\tb\r\nc\u001b]0;x\u0007\u007f\u009b\u202e'), 'a\tb\nc^[]0;x^G^?\ufffd\ufffd')
  t.end()
})

// `npm run e2e:harnesses`: what is expected of a cell is told from what came, and the table says so.

import t from 'tap'
import { type Expectation, expectationProblems, NO_FACTS } from '../../../scripts/harnesses/expect.js'
import { optionsOf } from '../../../scripts/harnesses/options.js'
import { failed, type Outcome, skipped } from '../../../scripts/harnesses/outcome.js'
import { SCENARIOS } from '../../../scripts/harnesses/scenarios.js'
import {
  jsonReport,
  markdownReport,
  outcomeText,
  terminalTable,
  totalsOf,
  totalsText,
} from '../../../scripts/harnesses/table.js'
import { sessionRow } from '../../../src/cli/quickstart/view.js'

const CLIS = ['pi', 'codex'] as const

t.test('names of CLIs and scenarios choose both ways', async t => {
  const names = ['turns', 'cut']
  const all = { clis: ['pi', 'codex'], scenarios: names, jobs: 2, reports: [], isKept: false }
  t.strictSame(optionsOf([], CLIS, names), all)
  t.strictSame(optionsOf(['--only', 'cut,pi'], CLIS, names), { ...all, clis: ['pi'], scenarios: ['cut'] })
  t.strictSame(optionsOf(['--only', 'codex', 'turns', '--jobs', '1', '--report', 'a.md', '--keep'], CLIS, names), {
    clis: ['codex'],
    scenarios: ['turns'],
    jobs: 1,
    reports: ['a.md'],
    isKept: true,
  })
  for (const wrong of [['--only', 'nobody'], ['--jobs', '0'], ['--jobs', 'x'], ['--what']])
    t.throws(() => optionsOf(wrong, CLIS, names))
})

const expected: Expectation = {
  basis: 'a book',
  status: 'COMPLETED',
  failureClass: null,
  failed: [0, 0],
  calls: 2,
  turns: 0,
  main: [1, 1],
  sub: [0, 0],
  side: {},
  joins: 'exact',
}

/** Of a session with one main trace and one join, changed by `ledger`. */
function problems(over: Partial<Expectation> = {}, ledger: object = {}, session: object = {}): readonly string[] {
  const result = {
    status: 'COMPLETED',
    error: null,
    metadata: { failure_class: null },
    trajectory: {
      traces: [{ metadata: { agent: 'main' } }],
      metadata: { ledger: { calls: 2, failed_calls: 0, joins: { exact: 1 }, breaks: {}, side_calls: {}, ...ledger } },
    },
    ...session,
  }
  return expectationProblems({ ...expected, ...over }, sessionRow(result), [], result)
}

t.test('every part of an expectation can fail', async t => {
  t.strictSame(problems(), [])
  t.match(problems({ turns: 1 }), [/turns: wanted 1/])
  t.match(problems({ calls: 3 }), [/calls: wanted 3/])
  t.match(problems({ main: [2, 2] }), [/main traces: wanted 2 to 2, got 1/])
  t.match(problems({ sub: [1, 1] }), [/sub traces/])
  t.match(problems({}, { failed_calls: 1 }), [/failed calls/])
  t.match(problems({}, { side_calls: { title: 1 } }), [/side calls title: wanted 0 to 0, got 1/])
  t.match(problems({ side: { compaction: [1, 1] } }), [/side calls compaction: wanted 1 to 1, got 0/])
  t.strictSame(problems({ side: { compaction: [1, 1] } }, { side_calls: { compaction: 1 } }), [])
  const error = { status: 'ERROR', error: 'it fell', metadata: { failure_class: 'harness' } }
  t.match(problems({}, {}, error), [/status: wanted COMPLETED, got ERROR \(it fell\)/, /failure_class/])
  t.strictSame(problems({ mayFail: /fell/ }, {}, error), [])
  t.equal(problems({ mayFail: /rose/ }, {}, error).length, 2)
})

t.test('a break must have a name, and none may be where all joins are exact', async t => {
  const joins = { exact: 1, rewritten: 1 }
  t.match(problems({}, { joins, breaks: { answer_edited: 1 } }), [/1 joins not exact: \{"answer_edited":1\}/])
  t.strictSame(problems({ joins: null }, { joins, breaks: { answer_edited: 1 } }), [])
  t.match(problems({ joins: null }, { joins }), [/1 of 1 breaks have no name/])
  t.match(problems({ joins: null }, { joins, breaks: { unknown: 1 } }), [/no name/])
})

t.test('each cell says where its expectation stands', async t => {
  for (const { name, expect, skip } of SCENARIOS)
    for (const id of ['codex', 'claude_code', 'gemini_cli', 'qwen_code', 'opencode', 'pi'] as const)
      if (skip?.[id] === undefined) t.match(expect(id).basis, /harness book|decisions|issue|measured/, `${name} ${id}`)
})

t.test('the table holds every cell in order, the total counts each once', async t => {
  const row = sessionRow({
    status: 'COMPLETED',
    metadata: {},
    trajectory: {
      traces: [{}],
      metadata: { ledger: { calls: 32, failed_calls: 1, joins: { exact: 30 }, breaks: {} } },
    },
  })
  const passed: Outcome = {
    ...skipped('pi', 'long-loop', ''),
    skipped: null,
    rows: [row],
    agreement: { matched: 31, total: 31, ways: { 'next request': 30, 'final output': 1 }, problems: [] },
    facts: { ...NO_FACTS, turns: 30, traces: 1, joins: 30, exact: 30, side: { utility: 1 } },
    basis: 'the issue',
    note: 'as told',
  }
  const outcomes = [
    passed,
    skipped('pi', 'sub-agent', 'it has none'),
    failed('codex', 'long-loop', performance.now(), 'it hangs', '/somewhere'),
  ]
  t.equal(totalsText(totalsOf(outcomes)), '1 passed, 1 failed, 1 skipped')
  t.match(
    outcomeText(passed),
    /^pass pi long-loop .*: 31 of 31 calls, 30 turns, 1 main trace, 30\/30 exact, 1 side call: utility, 1 failed/,
  )
  t.match(
    outcomes.map(outcomeText).join('\n'),
    /- {4}pi sub-agent: it has none\nFAIL codex long-loop .*\n.*it hangs\n.*somewhere/,
  )
  const table = terminalTable(outcomes)
  t.ok(table.indexOf('pi') < table.indexOf('codex'))
  const facts = {
    commit: 'abc',
    startedAt: '2026-01-01 00:00',
    seconds: 61,
    jobs: 2,
    node: '20.0.0',
    processors: 2,
    command: 'npm run e2e:harnesses',
  }
  const markdown = markdownReport(outcomes, facts)
  t.match(markdown, '1 min 1 s. **1 passed, 1 failed, 1 skipped**')
  t.match(
    markdown,
    '| pi | pass<br>31 of 31 calls<br>30 turns<br>1 main trace<br>30/30 exact<br>1 side call: utility<br>1 failed | - |',
  )
  t.match(markdown, '| codex | FAIL |  |')
  t.match(markdown, '- pi, sub-agent: it has none')
  t.match(markdown, '- long-loop: the issue')
  t.match(JSON.parse(jsonReport(outcomes, facts)), {
    passed: 1,
    commit: 'abc',
    cells: [{ verdict: 'pass' }, { verdict: '-', skipped: 'it has none' }, { verdict: 'FAIL' }],
  })
})

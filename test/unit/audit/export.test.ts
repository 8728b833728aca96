// Saved results as training lines: both views, masked traces, reward limits, weights, and the command around them.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sessionResultJson } from '../../../src/api/encode.js'
import { sessionResultBinary } from '../../../src/api/result-binary.js'
import { savedSessionOf } from '../../../src/audit/saved-result.js'
import { type TrainingSettings, trainingLines } from '../../../src/audit/training-lines.js'
import { runExport } from '../../../src/cli/export.js'
import type { SessionResult } from '../../../src/domain/session.js'
import { applyOutcome } from '../../../src/ledger/masking.js'
import { agentResult, evaluation, sessionResult, twoTraces } from '../../support/traces.js'

const tokens: TrainingSettings = { view: 'tokens', minReward: null, includeMasked: false }

const resultOf = async (status: 'COMPLETED' | 'ERROR', reward = 1): Promise<SessionResult> =>
  sessionResult(
    applyOutcome({
      trajectory: await twoTraces(),
      status,
      agentResult: agentResult(),
      evaluation: evaluation({ outcomeReward: reward }),
      evaluationTimedOut: false,
      truncated: null,
      containmentProven: true,
    }),
    { status },
  )

const linesOf = (result: SessionResult, settings: TrainingSettings) =>
  trainingLines(savedSessionOf(JSON.parse(sessionResultJson(result))), settings).map(line => JSON.parse(line))

t.test('tokens: what a trainer needs of each trace, and nothing else', async t => {
  const [main, sub, ...more] = linesOf(await resultOf('COMPLETED'), tokens)
  t.strictSame(more, [])
  const { response_logprobs: logprobs, calls, ...rest } = main
  t.strictSame(rest, {
    schema_version: 1,
    task_id: 'task-1',
    session_id: 's-00000000-0000-4000-8000-000000000000',
    trace_index: 0,
    sample_index: 0,
    group_id: 'g-1',
    status: 'COMPLETED',
    agent: 'main',
    reward: 1,
    weight: 0.5,
    finish_reason: 'stop',
    policy_version: 12,
    policy_versions: null,
    prompt_ids: [1, 2, 3],
    response_ids: [10, 11, 99, 50, 20, 21, 22, 99],
    loss_mask: [1, 1, 1, 0, 1, 1, 1, 1],
  })
  t.strictSame(logprobs.map(Math.fround), [-0.1, -0.11, -0.12, 0, -0.1, -0.11, -0.12, -0.13].map(Math.fround))
  t.match(calls, [
    { completion_id: 'c1', start: 0, end: 3, policy_version_start: null },
    { completion_id: 'c2', start: 4, end: 8 },
  ])
  t.match(sub, { trace_index: 1, agent: 'sub', prompt_ids: [4, 5], response_ids: [40, 99], weight: 0.5 })
})

t.test('what may not be trained is left out, or comes with its mask of zeros', async t => {
  const failed = await resultOf('ERROR')
  t.strictSame(linesOf(failed, tokens), [])
  const [first] = linesOf(failed, { ...tokens, includeMasked: true })
  t.match(first, { status: 'ERROR', reward: 0, loss_mask: [0, 0, 0, 0, 0, 0, 0, 0] })
  t.equal(linesOf(await resultOf('COMPLETED', 0.4), { ...tokens, minReward: 0.5 }).length, 0)
  t.equal(linesOf(await resultOf('COMPLETED', 0.5), { ...tokens, minReward: 0.5 }).length, 2)
})

t.test('messages: the text of a trace, and which answers in it are trained', async t => {
  const result = await resultOf('COMPLETED')
  const [trace] = result.trajectory.traces
  if (!trace) return t.fail('a trace wanted')
  const user = { role: 'user', content: 'hi' }
  const answers = [
    { role: 'assistant', content: 'a' },
    { role: 'tool', content: 'b' },
    { role: 'assistant', content: 'c' },
  ]
  const told = {
    ...trace,
    promptMessages: [user],
    responseMessages: answers,
    tools: [{ type: 'function' }],
    calls: trace.calls.map((call, i) => ({ ...call, messageIndex: i * 2 })),
  }
  const [line] = linesOf(
    { ...result, trajectory: { ...result.trajectory, traces: [told] } },
    { ...tokens, view: 'messages' },
  )
  t.match(line, { messages: [user, ...answers], trained: [1, 3], tools: [{ type: 'function' }], weight: 1, reward: 1 })
  t.notOk('prompt_ids' in line)
  return
})

t.test('the command: files and folders in either form, unreadable ones named', async t => {
  const folder = t.testdir({ in: { 'task_task-1': {} }, empty: {} })
  const result = await resultOf('COMPLETED')
  const place = join(folder, 'in', 'task_task-1')
  writeFileSync(join(place, 'ses_one.json'), sessionResultJson(result))
  writeFileSync(join(place, 'ses_one.sxr'), await sessionResultBinary(result))
  writeFileSync(join(place, 'ses_two.sxr'), await sessionResultBinary(result))
  writeFileSync(join(place, 'ses_bad.json'), '{"session_id":"x"')
  const out = join(folder, 'out.jsonl')
  const report = await runExport([join(folder, 'in')], { view: 'tokens', includeMasked: false, out })
  t.match(report, { sessions: 2, lines: 4, unreadable: [{ path: /ses_bad\.json$/, reason: /no JSON/ }] })
  const lines = readFileSync(out, 'utf8').trimEnd().split('\n')
  t.strictSame(lines.slice(0, 2), lines.slice(2), 'both forms give the same lines')
  t.equal(JSON.parse(lines[0] ?? '').trace_index, 0)
  await t.rejects(runExport([join(folder, 'empty')], { view: 'tokens', includeMasked: false, out }), {
    code: 'TASK_INVALID',
  })
})

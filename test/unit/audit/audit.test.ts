// An audit of a capture with known faults says exactly what they are, and its repaired export keeps the invariants of the ledger.

import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { sessionResultJson } from '../../../src/api/encode.js'
import { sessionResultBinary } from '../../../src/api/result-binary.js'
import { auditSession } from '../../../src/audit/audit-session.js'
import { hasFaults, type RuleFigures, type SessionAudit, totalOf } from '../../../src/audit/figures.js'
import { type ReadingReport, readCapture } from '../../../src/audit/read-capture.js'
import { repairedResult } from '../../../src/audit/repair.js'
import { perRequest } from '../../../src/builders/per-request.js'
import { type AuditOptions, runAudit } from '../../../src/cli/audit.js'
import type { DecodeIds } from '../../../src/ledger/decode.js'
import { decoderOf, ledgerOf, recordOf, SESSION } from '../../support/ledger-fixtures.js'
import { completionFile, FAULTY, logprobOf, writeReferenceCapture } from '../../support/reference-capture.js'
import { sessionResult, twoTraces } from '../../support/traces.js'

const noText: DecodeIds = async () => null

async function auditOf(path: string, decode = noText) {
  const report: ReadingReport = { unreadable: [], ignoredFiles: 0 }
  const sessions: SessionAudit[] = []
  const repaired = new Map<string, ReturnType<typeof repairedResult>>()
  for await (const input of readCapture(path, report)) {
    const { audit, faithful } = await auditSession(input, { decode, endTokenId: null })
    sessions.push(audit)
    if (faithful) repaired.set(audit.sessionId, repairedResult(audit, faithful, input.saved))
  }
  return { sessions: new Map(sessions.map(one => [one.sessionId, one])), total: totalOf(sessions), repaired, report }
}

/** traces, trained, set aside, lost, not seen, other ids, twice, not sampled. */
const row = (figures: RuleFigures | undefined): (number | null)[] | null =>
  figures
    ? [
        figures.traces,
        figures.trained,
        figures.setAside,
        figures.lost,
        figures.unseen,
        figures.otherIds,
        figures.twice,
        figures.foreign,
      ]
    : null

t.test('every fault of a reference capture is counted, under every rule', async t => {
  const folder = t.testdir({})
  writeReferenceCapture(folder, FAULTY)
  const { sessions, total, report } = await auditOf(folder)
  t.strictSame(report, { unreadable: [], ignoredFiles: 0 })
  const rows = (session: string) => {
    const { rules, sampled } = sessions.get(session) ?? { rules: {}, sampled: null }
    return {
      sampled,
      exported: row(rules.exported),
      reference: row(rules.reference),
      per_request: row(rules.per_request),
      prompt_prefix: row(rules.prompt_prefix),
      faithful: row(rules.faithful),
    }
  }
  t.strictSame(rows('clean'), {
    sampled: 5,
    exported: [1, 5, 0, 0, 0, 0, 0, 0],
    reference: [1, 5, 0, 0, 0, 0, 0, 0],
    per_request: [2, 5, 0, 0, 0, 0, 0, 0],
    prompt_prefix: [1, 5, 0, 0, 0, 0, 0, 0],
    faithful: [1, 5, 0, 0, 0, 0, 0, 0],
  })
  t.strictSame(rows('stripped'), {
    sampled: 12,
    exported: [1, 12, 0, 0, 7, 0, 0, 0],
    reference: [1, 12, 0, 0, 7, 0, 0, 0],
    per_request: [3, 12, 0, 0, 0, 0, 0, 0],
    prompt_prefix: [1, 12, 0, 0, 7, 0, 0, 0],
    faithful: [3, 12, 0, 0, 0, 0, 0, 0],
  })
  t.strictSame(rows('drift'), {
    sampled: 5,
    exported: [1, 5, 0, 0, 2, 0, 0, 0],
    reference: [1, 5, 0, 0, 2, 0, 0, 0],
    per_request: [2, 5, 0, 0, 0, 0, 0, 0],
    prompt_prefix: [1, 5, 0, 0, 2, 0, 0, 0],
    faithful: [2, 5, 0, 0, 0, 0, 0, 0],
  })
  t.strictSame(rows('retry'), {
    sampled: 8,
    exported: [1, 2, 0, 6, 0, 0, 0, 0],
    reference: [1, 2, 0, 6, 0, 0, 0, 0],
    per_request: [3, 6, 2, 0, 0, 0, 0, 0],
    prompt_prefix: [1, 6, 2, 0, 0, 0, 0, 0],
    faithful: [1, 6, 2, 0, 0, 0, 0, 0],
  })
  t.strictSame(rows('branches'), {
    sampled: 10,
    exported: [2, 8, 0, 2, 0, 0, 3, 0],
    reference: [3, 10, 0, 0, 0, 0, 0, 0],
    per_request: [4, 10, 0, 0, 0, 0, 0, 0],
    prompt_prefix: [3, 10, 0, 0, 0, 0, 0, 0],
    faithful: [3, 10, 0, 0, 0, 0, 0, 0],
  })
  t.strictSame(rows('no-ids'), {
    sampled: 13,
    exported: [2, 6, 0, 7, 2, 0, 0, 1],
    reference: [3, 4, 0, 9, 0, 0, 0, 0],
    per_request: [2, 4, 9, 0, 0, 0, 0, 0],
    prompt_prefix: [1, 4, 9, 0, 0, 0, 0, 0],
    faithful: [1, 4, 9, 0, 0, 0, 0, 0],
  })
  t.match(sessions.get('no-ids')?.notes, ['2 calls without token ids'])
  t.strictSame(rows('no-result').exported, null)
  t.strictSame(
    [...sessions.values()]
      .filter(hasFaults)
      .map(one => one.sessionId)
      .sort(),
    ['branches', 'drift', 'no-ids', 'retry', 'stripped'],
  )
  t.equal(total.sampled, 55)
  t.equal(total.calls, 20)
  t.equal(total.ruleSessions.exported, 6)
  t.strictSame(row(total.rules.exported), [8, 38, 0, 15, 11, 0, 3, 1])
  t.strictSame(row(total.rules.reference), [11, 40, 0, 15, 9, 0, 0, 0])
  t.strictSame(row(total.rules.faithful), [12, 44, 11, 0, 0, 0, 0, 0])
  t.strictSame(total.setAside, { abandoned_retry: 2, no_token_ids: 9 })
})

t.test('with text, an answer that came back in other ids is told from one that was rewritten', async t => {
  const folder = t.testdir({})
  writeReferenceCapture(
    folder,
    FAULTY.filter(one => one.session === 'drift'),
  )
  const { sessions } = await auditOf(folder, decoderOf({ '7': 'fi', '8': 'sh', '78': 'fish' }))
  t.strictSame(row(sessions.get('drift')?.rules.faithful), [1, 5, 0, 0, 0, 2, 0, 0])
  t.strictSame(sessions.get('drift')?.joins, { retokenised: 1 })
})

t.test('the repaired export keeps the invariants of the ledger', async t => {
  const folder = t.testdir({})
  writeReferenceCapture(folder, FAULTY)
  const { repaired } = await auditOf(folder)
  t.equal(repaired.size, FAULTY.length)
  for (const { session, calls, reward = 1, traces: exported } of FAULTY) {
    const result = JSON.parse(sessionResultJson(repaired.get(session) ?? (t.fail(session) as never)))
    const { ledger } = result.trajectory.metadata
    const setAside = Object.values(ledger.tokens.set_aside as Record<string, number>).reduce((sum, n) => sum + n, 0)
    t.equal(ledger.tokens.sampled, ledger.tokens.trained + setAside, `${session}: nothing is lost`)
    const trained: string[] = []
    for (const trace of result.trajectory.traces) {
      t.equal(trace.loss_mask.length, trace.response_ids.length)
      t.equal(trace.response_logprobs.length, trace.response_ids.length)
      t.equal(trace.reward, exported === null ? null : reward)
      const ids = [...trace.prompt_ids, ...trace.response_ids]
      const wanted = trace.response_ids.map(() => 0)
      const logprobs = trace.response_ids.map(() => 0)
      for (const { completion_id, start, end, trained: isTrained } of trace.metadata.completion_metadata) {
        const index = calls.findIndex(one => one.id === completion_id)
        const call = calls[index]
        t.strictSame(
          ids.slice(0, trace.prompt_ids.length + start),
          call?.prompt,
          `${completion_id}: what the model saw`,
        )
        t.strictSame(trace.response_ids.slice(start, end), call?.sampled, `${completion_id}: what it sampled`)
        if (!isTrained) continue
        trained.push(completion_id)
        for (let i = start; i < end; i++) {
          wanted[i] = 1
          logprobs[i] = logprobOf(index, i - start)
        }
      }
      t.strictSame(trace.loss_mask, wanted, 'the mask is 1 on trained calls only')
      t.strictSame(trace.response_logprobs.map(Math.fround), logprobs, 'with their own logprobs')
    }
    t.equal(new Set(trained).size, trained.length, `${session}: no call is trained twice`)
    const tokens = calls
      .filter(one => trained.includes(one.id))
      .reduce((sum, one) => sum + (one.sampled?.length ?? 0), 0)
    t.equal(tokens, ledger.tokens.trained)
    t.match(result.metadata, exported === null ? {} : { policy_version: 3 })
  }
})

t.test('a session that failed stays masked in the repaired export', async t => {
  const folder = t.testdir({})
  writeReferenceCapture(folder, [{ ...(FAULTY[0] as (typeof FAULTY)[0]), status: 'ERROR' }])
  const { repaired } = await auditOf(folder)
  const result = JSON.parse(sessionResultJson(repaired.get('clean') ?? (t.fail('none') as never)))
  t.match(result, { status: 'ERROR', metadata: { fully_masked: true } })
  t.strictSame(result.trajectory.metadata.ledger.tokens, { sampled: 5, trained: 0, set_aside: { session_error: 5 } })
})

t.test('a result without completion files: told by itself', async t => {
  const folder = t.testdir({})
  const merged = sessionResult(await twoTraces())
  writeFileSync(join(folder, 'one.json'), sessionResultJson(merged))
  writeFileSync(join(folder, 'two.sxr'), await sessionResultBinary(merged))
  const calls = [
    recordOf({ id: 'c1', prompt: [1, 2, 3], sampled: [10, 99], startedAtMs: 1 }),
    recordOf({ id: 'c2', prompt: [1, 2, 3, 10, 99, 50], sampled: [20, 99], startedAtMs: 2 }),
    recordOf({ id: 'c3', prompt: null, sampled: null, startedAtMs: 3, over: { completionTokens: 4 } }),
  ].map(record => ({ record, delivered: 'yes' as const }))
  const context = { decode: noText, sessionId: SESSION, taskId: 't', taskMetadata: {} }
  const single = sessionResult(await perRequest.build(ledgerOf(calls), {}, context))
  writeFileSync(
    join(folder, 'task.jsonl'),
    `${JSON.stringify({ results: [JSON.parse(sessionResultJson(single))] })}\n\nnot json\n`,
  )
  writeFileSync(join(folder, 'package.json'), '{"name":"unrelated"}')
  const audits: SessionAudit[] = []
  const report: ReadingReport = { unreadable: [], ignoredFiles: 0 }
  for await (const input of readCapture(folder, report))
    audits.push((await auditSession(input, { decode: noText, endTokenId: null })).audit)
  t.match(report, { unreadable: [{ path: join(folder, 'task.jsonl'), reason: /^line 3: no JSON/ }], ignoredFiles: 1 })
  t.strictSame(
    audits.map(one => one.source),
    ['result', 'traces', 'result'],
  )
  const [one, three, two] = audits
  t.strictSame({ ...two }, { ...one }, 'both forms say the same')
  t.strictSame(row(one?.rules.exported), [2, 9, 0, 0, 0, 0, 0, 0])
  t.strictSame(row(one?.rules.faithful), [2, 9, 0, 0, 0, 0, 0, 0])
  t.notOk(audits.some(hasFaults))
  t.equal(three?.sampled, 8, 'the call without ids is in the account of the result')
  t.strictSame(row(three?.rules.exported), [2, 4, 4, 0, 0, 0, 0, 0])
  t.strictSame(row(three?.rules.faithful), [1, 4, 4, 0, 0, 0, 0, 0])
})

t.test('traces of the reference alone: what is trained twice is seen, what is lost is not known', async t => {
  const folder = t.testdir({})
  writeReferenceCapture(
    folder,
    FAULTY.filter(one => one.session === 'branches'),
  )
  rmSync(join(folder, 'task_t-2', 'sessions'), { recursive: true })
  const { sessions } = await auditOf(folder)
  t.strictSame(row(sessions.get('branches')?.rules.exported), [2, 8, 0, null, null, 0, 3, 0])
  t.equal(sessions.get('branches')?.sampled, null)
})

t.test('completions as the API gives them, and files in no known folder', async t => {
  const folder = t.testdir({})
  const [clean] = FAULTY
  const files = clean?.calls.map((call, i) => completionFile('t-1', 'clean', call, i)) ?? []
  writeFileSync(join(folder, 'dump.json'), JSON.stringify({ session_id: 'dumped', node_id: 'n', completions: files }))
  files.forEach((file, i) => {
    writeFileSync(join(folder, `loose-${i}.json`), JSON.stringify(file))
  })
  const { sessions } = await auditOf(folder)
  for (const name of ['dumped', 'clean'])
    t.strictSame(row(sessions.get(name)?.rules.faithful), [1, 5, 0, 0, 0, 0, 0, 0])
  await t.rejects(auditOf(join(folder, 'absent')), { code: 'TASK_INVALID' })
})

t.test('the command: table, JSON, repair, exit codes', async t => {
  const folder = t.testdir({ capture: {}, sound: {}, empty: {} })
  writeReferenceCapture(join(folder, 'capture'), FAULTY)
  writeReferenceCapture(join(folder, 'sound'), FAULTY.slice(0, 1))
  const completions = join(folder, 'capture', 'task_t-1', 'sessions', 'clean', 'completions')
  writeFileSync(join(completions, '0003-cut.json'), '{"completion_id":"cut","resp')
  writeFileSync(join(folder, 'capture', 'task_t-1', 'ses_broken.json'), '{}')
  const run = async (path: string, options: Partial<AuditOptions> = {}) => {
    let stdout = ''
    const code = await runAudit(path, { json: false, sessions: 20, ...options }, text => {
      stdout += text
    })
    return { code, stdout }
  }
  const out = join(folder, 'out')
  const faulty = await run(join(folder, 'capture'))
  const json = await run(join(folder, 'capture'), { json: true, repair: out })
  t.equal(faulty.code, 1)
  t.match(faulty.stdout, /7 sessions, 20 calls, 55 tokens sampled/)
  t.match(faulty.stdout, /as exported \(6\)\s*│\s*8\s*│\s*73\s*│\s*38\s*│\s*0\s*│\s*15\s*│\s*11\s*│/)
  t.match(faulty.stdout, /0003-cut\.json: no JSON/)
  t.match(faulty.stdout, /ses_broken\.json: no session result: it has no session_id/)
  t.match(JSON.parse(json.stdout), {
    schema_version: 1,
    total: { sampled: 55, rules: { exported: { lost: 15, context_not_seen: 11, trained_twice: 3, not_sampled: 1 } } },
    unreadable: [{}, {}],
  })
  t.strictSame(readdirSync(out).sort(), ['task_t-1', 'task_t-2', 'task_t-3'])
  t.match(JSON.parse(readFileSync(join(out, 'task_t-2', 'ses_retry.json'), 'utf8')), {
    task_id: 't-2',
    trajectory: { traces: [{ prompt_ids: [1, 2, 3], response_ids: [11, 99, 50, 20, 99, 51, 21, 99], reward: 0.5 }] },
  })
  t.equal((await run(join(folder, 'sound'))).code, 0)
  await t.rejects(run(join(folder, 'empty')), {
    code: 'TASK_INVALID',
    message: /holds no results and no completion files/,
  })
  const again = await run(out)
  t.equal(again.code, 0, 'what was repaired has no faults')
  const cut = join(folder, 'sound', 'task_t-1', 'sessions', 'clean', 'completions', '0003-cut.json')
  writeFileSync(cut, '{')
  t.equal((await run(join(folder, 'sound'))).code, 3, 'nothing wrong is seen, but not everything could be read')
  const program = [join(process.cwd(), 'dist', 'main.js'), 'audit', join(folder, 'empty')]
  const ended = await promisify(execFile)(process.execPath, program).catch((cause: { code: number }) => cause)
  t.match(ended, { code: 2, stderr: /holds no results and no completion files/ })
})

// The whole service over HTTP, as a trainer sees it: submit, poll, callback, files, cancel, drain. Agent: a small script; engine: the
// embedded simulation.

import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { binaryResultJson } from '../../src/api/result-binary.js'
import { runAudit } from '../../src/cli/audit.js'
import { agentTask, runService, scratch } from '../support/service.js'

t.setTimeout(120_000)

t.test('a task runs from submit to callback, and what it sampled is accounted for', async t => {
  const bodies: string[] = []
  const receiver = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', part => {
      body += part
    })
    request.on('end', () => {
      bodies.push(body)
      response.end()
      receiver.emit('received')
    })
  })
  await new Promise<void>(resolve => receiver.listen(0, '127.0.0.1', resolve))
  t.teardown(() => receiver.close())
  const { connection, folder, service } = await runService(t)
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/callback/task_result`
  const received = once(receiver, 'received')
  await connection.submit(agentTask({ num_samples: 3, callback_url: url }))
  const task = await connection.task('task-1', 60)
  t.equal(task.status, 'completed')
  t.equal(task.results.length, 3)
  for (const result of task.results) {
    t.match(result, { status: 'COMPLETED', error: null, task_id: 'task-1' })
    const { traces, metadata } = result['trajectory'] as {
      traces: Record<string, number[]>[]
      metadata: Record<string, unknown>
    }
    const ledger = metadata['ledger'] as {
      calls: number
      tokens: { sampled: number; trained: number; set_aside: Record<string, number> }
    }
    const aside = Object.values(ledger.tokens.set_aside).reduce((sum, count) => sum + count, 0)
    t.equal(ledger.tokens.sampled, ledger.tokens.trained + aside)
    t.ok(ledger.calls >= 2)
    t.ok(traces.length >= 1)
    const trained = traces.flatMap(trace => trace['loss_mask'] ?? []).filter(bit => bit === 1).length
    t.equal(trained, ledger.tokens.trained)
    const file = join(folder, 'results/task_task-1', `ses_${String(result['session_id'])}.json`)
    t.strictSame(JSON.parse(readFileSync(file, 'utf8')), result, 'the file holds the same result')
  }
  await received
  const { results, status } = JSON.parse(bodies[0] ?? '{}') as { results: unknown; status: string }
  t.strictSame({ status, results }, { status: 'completed', results: task.results }, 'so does the callback')

  const get = async (path: string, accept: string) => {
    const headers = { 'x-polar-control-token': service.token, accept }
    return Buffer.from(await (await fetch(new URL(path, service.controlUrl), { headers })).arrayBuffer())
  }
  const listed = JSON.parse((await get('/rollout/task/task-1?results=references', '*/*')).toString())
  for (const [index, result] of task.results.entries()) {
    const { url: at } = listed.results[index].result_ref
    t.ok(at.startsWith(service.controlUrl))
    t.strictSame(JSON.parse((await get(at, 'application/json')).toString()), result)
    const bytes = await get(at, 'application/vnd.sextant.result')
    t.strictSame(JSON.parse(binaryResultJson(bytes, at)), result, 'the binary form says the same')
    const file = join(folder, 'results/task_task-1', `ses_${String(result['session_id'])}.sxr`)
    t.ok(readFileSync(file).equals(bytes), 'and lies beside the JSON')
  }
  let report = ''
  const found = await runAudit(join(folder, 'results'), { json: true, sessions: 1 }, text => {
    report += text
  })
  t.equal(found, 0, 'an audit of the files finds nothing lost, trained twice or out of context')
  const { total } = JSON.parse(report)
  t.match(total, { sessions: 3, rules: { exported: { lost: 0, context_not_seen: 0, trained_twice: 0 } } })
})

t.test('a cancel ends a running session and removes what it had', async t => {
  const { connection, folder, service } = await runService(t)
  const running = (async () => {
    for await (const { type, data } of connection.events())
      if (type === 'session.progressed' && Number(data['calls']) >= 1) return String(data['session_id'])
    return ''
  })()
  await connection.submit(agentTask({}, { AGENT_PAUSE_FILE: join(folder, 'never') }))
  const sessionId = await running
  const task = await connection.cancel('task-1', false)
  t.equal(task.status, 'cancelled')
  t.match(task.results, [{ session_id: sessionId, status: 'ERROR', error: 'session cancelled' }])
  t.notOk(existsSync(join(folder, 'state/sessions', sessionId, 'workspace')))
  t.match(await connection.status(), { pipeline: { pending_sessions: 0 } })
  t.strictSame((await service.stop()).missed, [])
})

t.test('drain: the running sessions end, what waits is kept and runs at the next start', async t => {
  const folder = scratch(t)
  const config = { stages: { init: 1, ready: 1, running: 1, postrun: 1 } }
  const first = await runService(t, config, {}, folder)
  const running = (async () => {
    for await (const { type, data } of first.connection.events())
      if (type === 'session.progressed' && Number(data['calls']) >= 1) return
  })()
  const go = join(folder, 'go')
  mkdirSync(go)
  await first.connection.submit(agentTask({ num_samples: 5 }, { AGENT_PAUSE_FILE: join(go, 'on') }))
  await running
  const report = await first.service.drain(9_000)
  t.strictSame(report.keptTasks, ['task-1'])
  t.ok(report.stopped > 0)
  t.ok(report.kept > 0)
  await t.rejects(first.connection.submit(agentTask({ task_id: 'late' })), {
    message: /answered 503: the service is stopping/,
  })
  const before = await first.connection.task('task-1')
  t.equal(before.status, 'running')
  t.equal(before.results.length, 5 - report.kept - report.left)
  t.strictSame((await first.service.stop()).missed, [])
  t.notOk(existsSync(join(folder, 'state/control.json')))
  t.notOk(existsSync(join(folder, 'state/sessions.owner')))

  writeFileSync(join(go, 'on'), '')
  const second = await runService(t, config, {}, folder)
  const task = await second.connection.task('task-1', 60)
  t.equal(task.status, 'completed')
  t.strictSame(task.results.slice(0, before.results.length), before.results, 'what had a result keeps it')
  const begun = 5 - report.kept
  for (const result of task.results.slice(0, begun))
    t.match(result, { status: 'ERROR', error: 'gateway_restarted', metadata: { failure_class: 'infrastructure' } })
  for (const result of task.results.slice(begun)) t.match(result, { status: 'COMPLETED' })
  t.strictSame((await second.service.stop()).missed, [])
})

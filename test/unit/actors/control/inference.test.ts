// The admin routes of a trainer's bridge over real HTTP: shapes, errors, the token.

import t from 'tap'
import type { InferenceStatus } from '../../../../src/domain/inference.js'
import { fakePorts, startControl, TOKEN } from '../../../support/control-fixture.js'

const open: InferenceStatus = { pause: null, policyVersion: '7', inflight: 3, waiting: 0, isComplete: true }
const paused: InferenceStatus = {
  ...open,
  pause: { owner: 'trainer', mode: 'wait', sinceMs: 0, leaseUntilMs: 1_800_000 },
  inflight: 0,
  waiting: 2,
}
const upstreams = [{ id: 'a', urls: ['http://127.0.0.1:9'], modelServed: 'm' }]

t.test('status, pause and resume answer with the contract’s four fields, and more', async t => {
  const asked: unknown[] = []
  const ports = fakePorts({
    inference: async () => open,
    async pause(question) {
      asked.push(question)
      return paused
    },
    async resume(question) {
      asked.push(question)
      return { ...open, inflight: 0, policyVersion: '8' }
    },
  })
  const control = await startControl(t, ports, { upstreams })
  const post = async (path: string, body?: unknown) =>
    control.fetch(path, {
      method: 'POST',
      headers: { 'x-polar-control-token': TOKEN, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  t.match(await (await control.fetch('/admin/inference/status')).json(), {
    paused: false,
    inflight: 3,
    base_url: 'http://127.0.0.1:9',
    engine: 'vllm',
    policy_version: '7',
    owner: null,
  })
  t.match(await (await post('/admin/inference/pause?timeout_seconds=300')).json(), {
    paused: true,
    inflight: 0,
    waiting: 2,
    owner: 'trainer',
    mode: 'wait',
    lease_until: '1970-01-01T00:30:00.000Z',
  })
  t.match(await (await post('/admin/inference/resume', { policy_version: 8 })).json(), {
    paused: false,
    inflight: 0,
    policy_version: '8',
  })
  await post('/admin/inference/pause', { owner: 'me', mode: 'keep', lease_seconds: 2, timeout_seconds: 0.5 })
  await post('/admin/inference/resume?owner=me&policy_version=9&force=true')
  t.strictSame(asked, [
    { owner: 'trainer', mode: 'wait', leaseMs: 1_800_000, timeoutMs: 300_000 },
    { owner: 'trainer', force: false, policyVersion: '8' },
    { owner: 'me', mode: 'keep', leaseMs: 2_000, timeoutMs: 500 },
    { owner: 'me', force: true, policyVersion: '9' },
  ])
})

t.test('what goes wrong: not drained, held by another, bad fields, no token', async t => {
  let answer: InferenceStatus | { readonly heldBy: string } = { ...paused, inflight: 2 }
  const control = await startControl(t, fakePorts({ pause: async () => answer, resume: async () => answer }))
  const post = async (path: string, init: RequestInit = {}) => {
    const response = await control.fetch(path, { method: 'POST', ...init })
    return { status: response.status, body: (await response.json()) as unknown }
  }
  t.match(await post('/admin/inference/pause?timeout_seconds=1'), {
    status: 504,
    body: { detail: /not drained within 1 s: 2 model calls still run.*stays paused.*lease/ },
  })
  t.match(await post('/admin/inference/pause?mode=keep'), { status: 200, body: { paused: true, inflight: 2 } })
  answer = { heldBy: 'other' }
  t.match(await post('/admin/inference/pause'), { status: 409, body: { detail: /paused by "other"/ } })
  t.match(await post('/admin/inference/resume'), { status: 409, body: { detail: /force=true/ } })
  t.match(await post('/admin/inference/pause?timeout_seconds=-1'), {
    status: 422,
    body: { detail: [{ loc: ['query', 'timeout_seconds'] }] },
  })
  t.match(await post('/admin/inference/pause?ower=x'), { status: 422, body: { detail: [{ msg: /owner/ }] } })
  t.match(await post('/admin/inference/resume', { body: '[]' }), { status: 422 })
  t.match(await post('/admin/inference/pause', { headers: {} }), { status: 401 })
  t.match(await post('/admin/inference/pause', { headers: { authorization: 'Bearer sk-abc' } }), { status: 403 })
})

t.test('/nodes: a bare list whose gateway_url is where the admin routes are', async t => {
  const control = await startControl(t)
  t.match(await (await control.fetch('/nodes')).json(), [
    { node_id: 'node-1', gateway_url: control.url, healthy: true, draining: false, max_run_workers: 2, metrics: {} },
  ])
})

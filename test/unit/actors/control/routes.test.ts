// The control routes over real HTTP: shapes, errors, the token, long polls.

import { request } from 'node:http'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { RolloutError } from '../../../../src/domain/errors.js'
import { fakePorts, snapshot, startControl, TOKEN, validTask } from '../../../support/control-fixture.js'
import { sessionResult } from '../../../support/rollout-world.js'

const post = (body: unknown, headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  body: typeof body === 'string' ? body : JSON.stringify(body),
  headers: { 'x-polar-control-token': TOKEN, 'content-type': 'application/json', ...headers },
})

t.test('submit: 200 with the task id, and the request as parsed', async t => {
  const ports = fakePorts()
  const control = await startControl(t, ports)
  const response = await control.fetch('/rollout/task/submit', post(validTask))
  t.equal(response.status, 200)
  t.strictSame(await response.json(), { task_id: 't-1', status: 'running' })
  t.match(ports.submitted, [{ task_id: 't-1', num_samples: 1, builder: { strategy: 'per_request' } }])
  const plain = await control.fetch('/rollout/task/submit', post(validTask, { 'content-type': 'text/plain' }))
  t.equal(plain.status, 200, 'whatever the content type, the body is JSON')
})

t.test('submit: what is wrong is told with its path', async t => {
  const ports = fakePorts()
  const control = await startControl(t, ports, { limits: { bodyBytes: '2KB' } })
  const bad = await control.fetch('/rollout/task/submit', post({ ...validTask, num_rollouts: 4 }))
  t.equal(bad.status, 422)
  t.strictSame(await bad.json(), {
    detail: [{ loc: ['body', 'num_rollouts'], msg: 'unknown key; did you mean "num_samples"?', type: 'unknown_key' }],
  })
  const broken = await control.fetch('/rollout/task/submit', post('{"task_id": '))
  t.equal(broken.status, 422)
  t.match(await broken.json(), { detail: [{ loc: ['body'], msg: /wanted JSON/, type: 'json_invalid' }] })
  const empty = await control.fetch('/rollout/task/submit', post(''))
  t.match(await empty.json(), { detail: [{ loc: ['body'], msg: 'required: an object' }] })
  const large = await control.fetch('/rollout/task/submit', post({ ...validTask, instruction: 'x'.repeat(3_000) }))
  t.equal(large.status, 413)
  t.match(await large.json(), { detail: /limits\.bodyBytes/ })
  t.strictSame(ports.submitted, [])
})

t.test('submit: uploads that are not there are refused before any session, all at once', async t => {
  const ports = fakePorts()
  const control = await startControl(t, ports)
  const folder = t.testdir({ file: 'x' })
  const prepare = [
    { type: 'upload_file', source: `${folder}/file`, target: 'a' },
    { type: 'upload_dir', source: `${folder}/file`, target: 'b' },
    { type: 'upload_file', source: `${folder}/none`, target: 'c' },
  ]
  const response = await control.fetch(
    '/rollout/task/submit',
    post({ ...validTask, runtime: { backend: 'local', prepare } }),
  )
  t.equal(response.status, 503)
  t.equal(response.headers.get('retry-after'), null, 'trying again does not help')
  t.strictSame(await response.json(), {
    detail: `runtime.prepare[1].source: ${folder}/file is no folder; runtime.prepare[2].source: ${folder}/none does not exist`,
  })
  t.strictSame(ports.submitted, [])
})

t.test('submit: a body nested beyond all reason is refused, not a crash', async t => {
  const control = await startControl(t)
  const deep = `{"metadata":{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}}`
  const response = await control.fetch('/rollout/task/submit', post(deep))
  t.equal(response.status, 422)
  t.match(await response.json(), { detail: [{ msg: /nested too deeply|required/ }] })
  t.equal((await control.fetch('/health')).status, 200)
})

t.test('submit: refusals of rollout keep their status, and say when to come again', async t => {
  const refusals = [
    ['TASK_CONFLICT', 409, null],
    ['TASK_QUEUE_FULL', 429, '2'],
    ['SERVICE_STOPPING', 503, '2'],
  ] as const
  for (const [code, status, retryAfter] of refusals) {
    const control = await startControl(
      t,
      fakePorts({ submit: async () => ({ ok: false, error: { code, message: 'no' } }) }),
    )
    const response = await control.fetch('/rollout/task/submit', post(validTask))
    t.equal(response.status, status)
    t.equal(response.headers.get('retry-after'), retryAfter)
    t.strictSame(await response.json(), { detail: 'no' })
    await control.stop()
  }
})

t.test('a task: GET, DELETE, 404, and queries that are checked', async t => {
  const cancels: unknown[] = []
  const control = await startControl(
    t,
    fakePorts({
      cancel: async (taskId, register) => {
        cancels.push([taskId, register])
        return taskId === 'nobody' && !register ? null : snapshot({ taskId, status: 'cancelled' })
      },
    }),
  )
  const got = await control.fetch('/rollout/task/t-1')
  t.match(await got.json(), {
    task_id: 't-1',
    status: 'running',
    total_sessions: 2,
    completed_sessions: 0,
    results: [],
    result_paths: [],
  })
  t.equal((await control.fetch('/rollout/task/t-2')).status, 404)
  t.equal(
    (await control.fetch('/rollout/task/t-1', { method: 'DELETE', headers: { authorization: `bearer ${TOKEN}` } }))
      .status,
    200,
  )
  t.equal(
    (await control.fetch('/rollout/task/nobody', { method: 'DELETE', headers: { authorization: `Bearer ${TOKEN}` } }))
      .status,
    404,
  )
  const headers = { 'x-polar-control-token': TOKEN }
  const registered = await control.fetch('/rollout/task/nobody?register_if_missing=true', { method: 'DELETE', headers })
  t.match(await registered.json(), { status: 'cancelled' })
  t.strictSame(cancels, [
    ['t-1', false],
    ['nobody', false],
    ['nobody', true],
  ])
  const typo = await control.fetch('/rollout/task/nobody?register_if_mising=true', { method: 'DELETE', headers })
  t.equal(typo.status, 422)
  t.match(await typo.json(), {
    detail: [{ loc: ['query', 'register_if_mising'], msg: /did you mean "register_if_missing"/ }],
  })
  t.equal((await control.fetch('/rollout/task/t-1?wait=forever')).status, 422)
  const nowhere = await control.fetch('/rollout/tusk')
  t.equal(nowhere.status, 404)
  t.match(await nowhere.json(), { detail: 'there is no route GET /rollout/tusk' })
})

t.test('wait: the answer comes when the task ends, or when the time is over', async t => {
  let status = 'running'
  let looks = 0
  let first: () => void = () => undefined
  const asked = new Promise<void>(resolve => {
    first = resolve
  })
  const control = await startControl(
    t,
    fakePorts({
      task: async () => {
        looks += 1
        first()
        return snapshot({ status })
      },
    }),
  )
  const polled = control.fetch('/rollout/task/t-1?wait=60')
  await asked
  control.publish('task.completed', { task_id: 'another' })
  status = 'completed'
  control.publish('task.completed', { task_id: 't-1' })
  t.match(await (await polled).json(), { status: 'completed' })
  t.equal(looks, 2, 'it looks at the start and at the end of this task, no more')
  status = 'running'
  t.match(await (await control.fetch('/rollout/task/t-1?wait=0.02')).json(), { status: 'running' })
})

t.test('large answers are compressed for those who take gzip', async t => {
  const results = Array.from({ length: 2_000 }, (_, index) => sessionResult(`s-${index}`, 0))
  const control = await startControl(t, fakePorts({ task: async () => snapshot({ results }) }))
  const [headers, bytes] = await new Promise<readonly [Record<string, unknown>, Buffer]>((resolve, reject) => {
    const call = request(`${control.url}/rollout/task/t-1`, {
      headers: { 'x-polar-control-token': TOKEN, 'accept-encoding': 'gzip' },
    })
    call.on('error', reject).on('response', response => {
      const parts: Buffer[] = []
      response.on('data', part => parts.push(part)).on('end', () => resolve([response.headers, Buffer.concat(parts)]))
    })
    call.end()
  })
  t.equal(headers['content-encoding'], 'gzip')
  t.match(JSON.parse(gunzipSync(bytes).toString()), { completed_sessions: 2_000 })
})

t.test('status shows tasks, what is pending, and this node', async t => {
  const control = await startControl(t)
  t.match(await (await control.fetch('/rollout/status')).json(), {
    tasks: { 't-1': 'running' },
    pipeline: { pending_sessions: 2 },
    nodes: {
      nodes: [
        {
          node_id: 'node-1',
          max_run_workers: 2,
          healthy: true,
          draining: false,
          metrics: { init_queue_depth: 1, ready_depth: 2, run_inflight: 2, postrun_inflight: 1 },
        },
      ],
    },
  })
})

t.test('an actor that does not answer is 503, a bug of ours 500 without its text', async t => {
  const slow = await startControl(
    t,
    fakePorts({ list: () => Promise.reject(new RolloutError('ACTOR_ASK_TIMEOUT', 'main:/rollout/ did not answer')) }),
  )
  const response = await slow.fetch('/rollout/status')
  t.equal(response.status, 503)
  t.equal(response.headers.get('retry-after'), '2')
  const broken = await startControl(t, fakePorts({ list: () => Promise.reject(new Error('secret detail')) }))
  const failed = await broken.fetch('/rollout/status')
  t.equal(failed.status, 500)
  t.notMatch(await failed.text(), /secret/)
})

t.test('token: 401 without, 403 for a model key, health open, nothing happens', async t => {
  const ports = fakePorts({ cancel: async () => t.fail('no side effect wanted') as never })
  const control = await startControl(t, ports)
  const routes = [
    ['GET', '/rollout/status'],
    ['GET', '/rollout/task/t-1'],
    ['DELETE', '/rollout/task/t-1'],
    ['POST', '/rollout/task/submit'],
    ['GET', '/events'],
    ['GET', '/nowhere'],
  ] as const
  for (const [method, path] of routes) {
    const send = (headers: Record<string, string>) =>
      control.fetch(path, { method, headers, ...(method === 'POST' && { body: JSON.stringify(validTask) }) })
    const none = await send({})
    t.equal(none.status, 401, `${method} ${path} without`)
    t.equal(none.headers.get('www-authenticate'), 'Bearer')
    t.equal((await send({ 'x-polar-control-token': `${TOKEN}x` })).status, 401, 'wrong')
    const key = `sk-${'a'.repeat(43)}`
    for (const headers of [{ authorization: `Bearer ${key}` }, { 'x-polar-control-token': key }, { 'x-api-key': key }])
      t.equal((await send(headers as Record<string, string>)).status, 403, `${method} ${path} with a model key`)
  }
  t.strictSame(ports.submitted, [])
  const health = await control.fetch('/health', { headers: {} })
  t.strictSame([health.status, await health.json()], [200, { status: 'ok', nodes: 1, upstreams: [] }])
  t.equal((await control.fetch('/', { headers: {} })).status, 200)
})

t.test('open routes need no token, but take nothing from a web page', async t => {
  const control = await startControl(t, fakePorts(), {
    security: { openRoutes: ['POST /rollout/task/submit', 'GET /rollout/task/*'] },
  })
  const submit = (headers: Record<string, string>) =>
    control.fetch('/rollout/task/submit', { method: 'POST', body: JSON.stringify(validTask), headers })
  t.equal((await submit({})).status, 200)
  t.equal((await submit({ origin: 'http://evil.example' })).status, 403)
  t.equal((await submit({ origin: 'http://evil.example', 'x-polar-control-token': TOKEN })).status, 200)
  t.equal((await control.fetch('/rollout/task/t-1', { headers: {} })).status, 200)
  t.equal((await control.fetch('/rollout/task/t-1', { method: 'DELETE', headers: {} })).status, 401)
})

t.test('a port that is taken is told, not waited for', async t => {
  const control = await startControl(t)
  const port = Number(new URL(control.url).port)
  await t.rejects(startControl(t, fakePorts(), { control: { port } }), { message: /EADDRINUSE/ })
})

t.test('one result by itself, in the form that Accept prefers', async t => {
  const ended = sessionResult('s-1', 2)
  const task = snapshot({
    generation: 3,
    results: [ended],
    sessions: [
      { sessionId: 's-1', sampleIndex: 0, status: 'COMPLETED', calls: 1, sampledTokens: 2 },
      { sessionId: 's-2', sampleIndex: 1, status: 'RUNNING', calls: 0, sampledTokens: 0 },
    ],
  })
  const asked: unknown[] = []
  const { fetch: get } = await startControl(
    t,
    fakePorts({
      task: async (taskId, generation) => {
        asked.push([taskId, generation])
        return taskId === 't-1' ? task : null
      },
    }),
  )
  const at = async (path: string, accept?: string) => {
    const headers = { 'x-polar-control-token': TOKEN, ...(accept !== undefined && { accept }) }
    const answer = await get(`/rollout/task/${path}`, { headers })
    return {
      status: answer.status,
      type: answer.headers.get('content-type'),
      vary: answer.headers.get('vary'),
      body: await answer.text(),
    }
  }
  t.strictSame(await at('t-1/sessions/s-1?generation=3'), {
    status: 200,
    type: 'application/json; charset=utf-8',
    vary: 'accept',
    body: '{"session_id":"s-1"}',
  })
  t.strictSame(asked, [['t-1', 3]])
  t.match(await at('t-1/sessions/s-1', 'application/vnd.sextant.result, */*;q=0.1'), {
    status: 200,
    type: 'application/vnd.sextant.result',
    body: 'binary s-1',
  })
  t.match(await at('t-1/sessions/s-1', 'text/html'), { status: 406, body: /^\{"detail":"a result is served as / })
  t.match(await at('t-1/sessions/s-2'), { status: 404, body: /has no result yet: RUNNING/ })
  t.match(await at('t-1/sessions/s-3'), { status: 404, body: /has no session/ })
  t.match(await at('t-2/sessions/s-1'), { status: 404, body: /has no session/ })
  t.match(await at('t-1/sessions/s-1?generation=0'), { status: 422, body: /generation/ })
  t.match(await at('t-1/sessions/s-1?wait=3'), { status: 422, body: /wait/ })
  const list = async (query: string) => JSON.parse((await at(`t-1${query}`)).body).results
  t.strictSame(await list(''), [{ session_id: 's-1' }])
  t.strictSame(await list('?results=references'), [{ session_id: 's-1', generation: 3 }])
  const open = await fetch(`${(await startControl(t, fakePorts())).url}/rollout/task/t-1/sessions/s-1`)
  t.equal(open.status, 401, 'a result needs the token')
  await open.text()
})

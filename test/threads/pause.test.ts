// A pause of the whole service: all proxies together, kept over the death of one and over a restart of the service.

import t from 'tap'
import { type Service, startService } from '../../actors/service.js'
import { scratch, servicePlan } from '../support/service.js'
import { recordingLogger } from '../support/test-system.js'

t.setTimeout(180_000)

/** Nobody calls it: no embedded server has to start. */
const upstreams = [{ id: 'away', urls: ['http://127.0.0.1:9'], modelServed: 'm' }]

t.test('a pause holds all proxies; a proxy or a service that restarts within its lease starts paused', async t => {
  const folder = scratch(t)
  const start = () =>
    startService(servicePlan(folder, { gateway: { proxies: 2 }, upstreams }), {
      log: recordingLogger(),
      logLevel: 'error',
    })
  const admin = async (service: Service, path: string) => {
    const response = await fetch(`${service.controlUrl}/admin/inference/${path}`, {
      method: path === 'status' ? 'GET' : 'POST',
      headers: { 'x-polar-control-token': service.token },
    })
    return { status: response.status, ...((await response.json()) as Record<string, unknown>) }
  }
  const first = await start()
  t.teardown(() => first.stop())
  t.match(await admin(first, 'pause?owner=me&lease_seconds=600'), {
    status: 200,
    paused: true,
    inflight: 0,
    complete: true,
    base_url: /^http:\/\/127/,
  })
  first.kill('proxy-1')
  t.match(await admin(first, 'status'), { paused: true, owner: 'me' }, 'also while a proxy is away')
  t.match(await admin(first, 'pause?owner=me&lease_seconds=600'), { status: 200, paused: true, inflight: 0 })
  await first.stop()

  const second = await start()
  t.teardown(() => second.stop())
  t.match(await admin(second, 'status'), { paused: true, owner: 'me', complete: true })
  t.match(await admin(second, 'resume?owner=me&policy_version=v2'), { paused: false, policy_version: 'v2' })
  await second.stop()
})

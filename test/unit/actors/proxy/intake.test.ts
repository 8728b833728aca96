// While records cannot be stored: no call is sent to an engine, each dialect's harness is told to try again, in its own words.

import { Subject } from 'rxjs'
import t from 'tap'
import { memoryJournal } from '../../../../actors/merge/journal.js'
import { realClock } from '../../../../actors/system/clock.js'
import type { ErrorData } from '../../../../src/domain/errors.js'
import { dialectCalls, gatewayPlan, startPair } from '../../../support/pair.js'
import { scriptedEngine } from '../../../support/scripted-engine.js'

t.test('a store that is full pauses the intake in every dialect, and lets it go on', async t => {
  const engine = await scriptedEngine(t, () => ({ pieces: ['a'] }))
  const intake = new Subject<ErrorData | null>()
  const journal = { ...memoryJournal(), intake$: intake }
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }]), realClock(), {}, journal)
  const { key } = await pair.session('s-1')
  const calls = Object.values(dialectCalls)
  const post = () => Promise.all(calls.map(({ path, body }) => pair.post(path, body, { key })))
  const settle = () => new Promise(setImmediate).then(() => new Promise(setImmediate))

  intake.next({ code: 'STORE_FULL', message: 'the disk at /secret/place is full' })
  await settle()
  for (const response of await post()) {
    t.equal(response.status, 503)
    t.equal(response.headers.get('retry-after'), '2')
    const text = await response.text()
    t.match(text, /records cannot be stored at present; try again/)
    t.notMatch(text, /secret/)
  }
  t.equal(engine.generations.length, 0, 'no engine was asked')
  intake.next(null)
  await settle()
  for (const response of await post()) t.equal(response.status, 200)
  t.equal(engine.generations.length, calls.length)
})

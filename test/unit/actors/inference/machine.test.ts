// The pause as data: owners, leases, names of the weights, and what a restart finds.

import t from 'tap'
import {
  type InferenceEffect,
  type InferenceInput,
  type InferenceState,
  inferenceMachine,
} from '../../../../actors/inference/machine.js'
import type { InferenceReply } from '../../../../actors/protocol/inference.js'
import { NO_PAUSE } from '../../../../src/domain/inference.js'
import { recordingRef } from '../../../support/session-fixtures.js'

const replyTo = recordingRef<InferenceReply>('/asker/')
const pause = (owner: string, atMs = 0): InferenceInput => ({
  type: 'pause-requested',
  owner,
  mode: 'wait',
  leaseMs: 1_000,
  timeoutMs: 500,
  atMs,
  replyTo,
})
const resume = (owner: string, policyVersion: string | null = null): InferenceInput => ({
  type: 'resume-requested',
  owner,
  force: false,
  policyVersion,
  replyTo,
})

/** Where the messages lead, and what the last of them sets off. */
function after(messages: readonly InferenceInput[], record = NO_PAUSE) {
  const machine = inferenceMachine(record)
  let state: InferenceState = machine.initial.state
  let effects: readonly InferenceEffect[] = machine.initial.effects
  for (const message of messages) ({ state, effects } = machine.step(state, message))
  return { state, effects }
}

t.test('a pause is kept before any proxy is told, and closes the gates', async t => {
  const { state, effects } = after([pause('a', 7)])
  t.match(state.record.pause, { owner: 'a', mode: 'wait', sinceMs: 7, leaseUntilMs: 1_007 })
  t.strictSame(
    effects.map(({ type }) => type),
    ['keep', 'arm-lease', 'set-gates'],
  )
  t.match(effects[2], { gate: { isClosed: true }, answer: { awaitDrain: true, timeoutMs: 500 } })
})

t.test('asking again renews the lease: the timer of the first means nothing then', async t => {
  const first = after([pause('a')]).effects.find(({ type }) => type === 'arm-lease')
  const lease = first?.type === 'arm-lease' ? first.lease : -1
  const renewed = after([pause('a'), pause('a', 400), { type: 'lease-passed', lease }])
  t.match(renewed.state.record.pause, { sinceMs: 0, leaseUntilMs: 1_400 })
  t.strictSame(renewed.effects, [])
  const ended = after([pause('a'), { type: 'lease-passed', lease }])
  t.match(ended.state, { record: { pause: null, updates: 1 }, expired: 1 })
  t.match(ended.effects, [{ type: 'log-expiry', owner: 'a' }, { type: 'keep' }, { gate: { isClosed: false } }])
})

t.test('names of the weights: what the trainer says, else one of our own for each pause', async t => {
  t.match(after([pause('a'), resume('a')]).state.record, { policyVersion: 'update-1', updates: 1 })
  t.match(after([pause('a'), resume('a', '8')]).state.record, { policyVersion: '8', updates: 1 })
  t.match(after([pause('a'), resume('a', '8'), pause('a'), resume('a')]).state.record, { policyVersion: 'update-2' })
  t.match(after([resume('a', '7')]).state.record, { pause: null, policyVersion: '7' }, 'also without a pause')
  t.match(after([resume('a')]), { state: { record: NO_PAUSE }, effects: [{ type: 'describe' }] }, 'nothing to end')
})

t.test('a start within the lease of a pause starts paused; after it, open', async t => {
  const record = after([pause('a')]).state.record
  t.match(after([], record).effects, [
    { type: 'set-gates', gate: { isClosed: true } },
    { type: 'arm-lease', untilMs: 1_000 },
  ])
  t.match(after([{ type: 'lease-passed', lease: 0 }], record).state.record.pause, null)
})

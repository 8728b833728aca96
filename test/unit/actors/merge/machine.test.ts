// The merge machine, message by message: what is kept, what is said, what is refused.

import t from 'tap'
import { type MergeEffect, type MergeInput, type MergeState, mergeMachine } from '../../../../actors/merge/machine.js'
import type { LedgerSealReply, MergeDescription } from '../../../../actors/protocol/merge.js'
import type { SessionMessage } from '../../../../actors/protocol/session.js'
import type { ActorRef } from '../../../../actors/system/ref.js'
import type { CompletionId, SessionId } from '../../../../src/domain/ids.js'
import { wholeOriginal } from '../../../../src/ledger/original-request.js'
import { insertCall, sessionLog } from '../../../../src/ledger/session-log.js'
import { wholeRecord } from '../../../../src/ledger/view.js'
import type { CaptureFrame } from '../../../../src/wire/frames.js'
import { completionRecord, failedCall } from '../../../support/records.js'

const ref = <M>(path: string): ActorRef<M> => ({ address: { system: 'test', path }, tell: () => {} })
const session = ref<SessionMessage>('/session/')
const seals = ref<LedgerSealReply>('/seals/')
const s1 = 's-1' as SessionId

/** Steps through `messages` as they are; the state at the end and all effects. */
function play(messages: readonly MergeInput[], from: MergeState = mergeMachine.initial.state) {
  let state = from
  const effects: MergeEffect[] = []
  for (const message of messages) {
    const step = mergeMachine.step(state, message)
    state = step.state
    effects.push(...step.effects)
  }
  return { state, effects }
}

/** The same with a store that knows nothing and keeps all at once: its effects are answered, and left out of what is told. */
function run(messages: readonly MergeInput[], from: MergeState = mergeMachine.initial.state) {
  const waiting = [...messages]
  const told: MergeEffect[] = []
  let state = from
  for (let message = waiting.shift(); message !== undefined; message = waiting.shift()) {
    const next = play([message], state)
    state = next.state
    for (const effect of next.effects) {
      if (effect.type === 'load-ledger') {
        waiting.unshift({ type: 'ledger-loaded', sessionId: effect.sessionId, log: null })
      } else if (effect.type === 'store-entry') {
        if (effect.frame !== null) waiting.unshift({ type: 'entry-stored', ...effect.frame })
      } else if (effect.type !== 'finish-session') told.push(effect)
    }
  }
  return { state, effects: told }
}

const open: MergeInput = { type: 'open-ledger', sessionId: s1, session }
const received = (frame: CaptureFrame, link = 0): MergeInput => ({ type: 'frame-received', link, frame })
const captured = (
  frameId: number,
  name: string,
  changes: Parameters<typeof completionRecord>[0] = {},
): CaptureFrame => ({
  v: 1,
  kind: 'completion-captured',
  frameId,
  record: completionRecord({ completionId: name as CompletionId, ...changes }),
})
const seal: MergeInput = { type: 'ledger-seal-requested', sessionId: s1, atMs: 9_000, replyTo: seals }

function sealed(effects: readonly MergeEffect[]) {
  const effect = effects.findLast(effect => effect.type === 'reply-sealed')
  if (effect?.type !== 'reply-sealed' || effect.reply.type !== 'ledger-sealed') return null
  const { ledger } = effect.reply
  return {
    ...ledger,
    calls: ledger.calls.map(call => ({ record: wholeRecord(ledger, call), delivered: call.delivered })),
  }
}

t.test('a record is kept, told to its session, then acknowledged', async t => {
  const { effects } = run([open, received(captured(4, 'c1'), 2)])
  t.strictSame(effects, [
    { type: 'tell-recorded', session, calls: 1, turns: 1, promptTokens: 3, sampledTokens: 3 },
    { type: 'acknowledge', link: 2, frameId: 4 },
  ])
})

t.test(
  'what a harness may act on waits until the entry is on disk; whether it got an answer waits for nothing',
  async t => {
    const delivery: CaptureFrame = {
      v: 1,
      kind: 'delivery-known',
      frameId: 9,
      sessionId: s1,
      completionId: 'c1',
      delivered: 'yes',
    }
    const failed: CaptureFrame = { v: 1, kind: 'call-failed', frameId: 8, failed: failedCall() }
    const begun = play([open, { type: 'ledger-loaded', sessionId: s1, log: null }])
    t.strictSame(begun.effects, [{ type: 'load-ledger', sessionId: s1 }])
    const { effects } = play(
      [
        received(captured(4, 'c1')),
        received(captured(5, 'c1')),
        received(failed),
        received(delivery),
        { type: 'entry-stored', link: 0, frameId: 4 },
      ],
      begun.state,
    )
    t.match(effects, [
      { type: 'tell-recorded' },
      {
        type: 'store-entry',
        sessionId: s1,
        entry: { kind: 'call', completionId: 'c1' },
        frame: { link: 0, frameId: 4 },
      },
      { type: 'store-entry', entry: null, frame: { frameId: 5 } },
      { type: 'store-entry', entry: { kind: 'failed' }, frame: { frameId: 8 } },
      { type: 'store-entry', entry: { kind: 'delivered' }, frame: null },
      { type: 'acknowledge', frameId: 9 },
      { type: 'acknowledge', frameId: 4 },
    ])
    t.equal(effects.length, 7)
  },
)

t.test('what comes for a session that is being read from the store waits; what is read goes on', async t => {
  const before = sessionLog(s1)
  insertCall(before, completionRecord({ completionId: 'c0' as CompletionId }))
  const waiting = play([open, received(captured(1, 'c0')), received(captured(2, 'c1')), seal])
  t.strictSame(waiting.effects, [{ type: 'load-ledger', sessionId: s1 }])
  const { effects, state } = play([{ type: 'ledger-loaded', sessionId: s1, log: before }], waiting.state)
  t.match(effects, [
    { type: 'store-entry', entry: null, frame: { frameId: 1 } },
    { type: 'tell-recorded', calls: 2 },
    { type: 'store-entry', entry: { completionId: 'c1' }, frame: { frameId: 2 } },
    { type: 'reply-sealed', reply: { ledger: { calls: { length: 2 } } } },
  ])
  t.equal(state.loading.size, 0)
})

t.test('a seal finds a session that only the store knows', async t => {
  const log = sessionLog(s1)
  insertCall(log, completionRecord({ completionId: 'c0' as CompletionId }))
  const { effects } = play([seal, { type: 'ledger-loaded', sessionId: s1, log }])
  t.match(effects, [{ type: 'load-ledger' }, { type: 'reply-sealed', reply: { ledger: { calls: { length: 1 } } } }])
})

t.test('the intake follows the store', async t => {
  const error = { code: 'STORE_FULL', message: 'no room' } as const
  t.strictSame(
    play([
      { type: 'intake-changed', error },
      { type: 'intake-changed', error: null },
    ]).effects,
    [
      { type: 'tell-intake', error },
      { type: 'tell-intake', error: null },
    ],
  )
})

t.test('the same record twice counts once and is acknowledged twice', async t => {
  const { effects } = run([open, received(captured(0, 'c1')), received(captured(0, 'c1'), 1), seal])
  t.strictSame(effects.slice(1, 3), [
    { type: 'acknowledge', link: 0, frameId: 0 },
    { type: 'acknowledge', link: 1, frameId: 0 },
  ])
  t.equal(sealed(effects)?.calls.length, 1)
})

t.test('delivery and failures are kept, in whatever order the facts come', async t => {
  const delivery: CaptureFrame = {
    v: 1,
    kind: 'delivery-known',
    frameId: 9,
    sessionId: s1,
    completionId: 'c2',
    delivered: 'no',
  }
  const failed: CaptureFrame = { v: 1, kind: 'call-failed', frameId: 8, failed: failedCall() }
  const { effects } = run([
    open,
    received(delivery),
    received(captured(1, 'c1')),
    received(captured(2, 'c2')),
    received(failed),
    seal,
  ])
  t.match(sealed(effects), {
    sessionId: s1,
    calls: [
      { record: { completionId: 'c1' }, delivered: 'unknown' },
      { record: { completionId: 'c2' }, delivered: 'no' },
    ],
    failed: [{ status: 500 }],
  })
  t.equal(effects.filter(effect => effect.type === 'acknowledge').length, 4)
})

const started = (sequence: number): CaptureFrame => ({
  v: 1,
  kind: 'call-started',
  frameId: 100 + sequence,
  sessionId: s1,
  sequence,
  attempt: 1,
  startedAtMs: 5_000 + sequence,
})

t.test('a call that its proxy began and did not end is a failed call once the link has ended', async t => {
  const { state, effects } = run([
    open,
    received(started(0)),
    received(captured(0, 'c1')),
    received(started(1)),
    received({ v: 1, kind: 'call-failed', frameId: 1, failed: failedCall({ sequence: 1 }) }),
    received(started(1)),
    received(started(2)),
    received(started(3), 1),
    { type: 'link-ended', link: 0, atMs: 8_000 },
    { type: 'link-ended', link: 0, atMs: 8_500 },
    received(captured(0, 'c2', { sequence: 3 }), 1),
    seal,
  ])
  const cut = { sessionId: s1, attempt: 1, status: 503, abortedTokens: 0, finishedAtMs: 8_000 }
  const error = "the proxy's thread ended before the answer"
  t.strictSame(sealed(effects)?.failed, [
    failedCall({ sequence: 1 }),
    { ...cut, sequence: 1, error, startedAtMs: 5_001 },
    { ...cut, sequence: 2, error, startedAtMs: 5_002 },
  ])
  t.equal(sealed(effects)?.calls.length, 2)
  t.strictSame(
    effects.flatMap(effect => (effect.type === 'tell-started' ? [effect.sequence] : [])),
    [0, 1, 1, 2, 3],
    'the session knows the numbers that are taken',
  )
  t.equal(effects.filter(({ type }) => type === 'acknowledge').length, 3, 'a start is not acknowledged')
  t.equal(state.refused, 0)
})

t.test('a call that is open at the seal is a failed call that ended then', async t => {
  const { effects } = run([open, received(started(0)), seal])
  t.match(sealed(effects)?.failed, [{ sequence: 0, status: 503, startedAtMs: 5_000, finishedAtMs: 9_000 }])
})

t.test('a start of a session without a ledger is counted', async t => {
  const { state, effects } = run([received(started(0))])
  t.equal(state.refused, 1)
  t.strictSame(effects, [])
})

t.test('frames of a session that is unknown, sealed or dropped are refused and counted', async t => {
  const frame = received(captured(5, 'c1'))
  const refusal = (reason: string) => ({ type: 'refuse', link: 0, frameId: 5, sessionId: s1, reason })
  const { state, effects } = run([frame, open, seal, frame, { type: 'drop-ledger', sessionId: s1 }, frame])
  t.strictSame(
    effects.filter(effect => effect.type === 'refuse'),
    [refusal('unknown-session'), refusal('sealed'), refusal('unknown-session')],
  )
  t.equal(state.refused, 3)
  t.equal(state.ledgers.size + state.sealed.size, 0, 'nothing of the session is left')
})

t.test('records may go when the result is stored, not when the session is dropped', async t => {
  const { state } = run([open, received(captured(0, 'c1')), seal])
  t.strictSame(play([{ type: 'drop-ledger', sessionId: s1 }], state).effects, [])
  t.strictSame(play([{ type: 'result-stored', sessionId: s1 }], state).effects, [
    { type: 'finish-session', sessionId: s1 },
  ])
})

t.test('sealing hands over once; opening twice is opening once, with the newest ref', async t => {
  const other = ref<SessionMessage>('/session-2/')
  const { effects } = run([
    seal,
    open,
    received(captured(0, 'c1')),
    { ...open, session: other },
    received(captured(1, 'c2')),
    seal,
    seal,
  ])
  t.match(effects, [
    { type: 'reply-sealed', reply: { type: 'ledger-unknown' } },
    { type: 'tell-recorded', session },
    { type: 'acknowledge' },
    { type: 'tell-recorded', session: other, calls: 2, sampledTokens: 6 },
    { type: 'acknowledge' },
    { type: 'reply-sealed', reply: { type: 'ledger-sealed', ledger: { calls: { length: 2 } } } },
    { type: 'reply-sealed', reply: { type: 'ledger-unknown' } },
  ])
})

t.test('while paused records are kept but not acknowledged; resuming acknowledges all', async t => {
  const paused = run([
    open,
    { type: 'pause-acknowledgements' },
    received(captured(0, 'c1')),
    received(captured(1, 'c2')),
  ])
  t.strictSame(
    paused.effects.map(effect => effect.type),
    ['tell-recorded', 'tell-recorded'],
  )
  const resumed = run([{ type: 'resume-acknowledgements' }, { type: 'resume-acknowledgements' }], paused.state)
  t.strictSame(resumed.effects, [
    { type: 'acknowledge', link: 0, frameId: 0 },
    { type: 'acknowledge', link: 0, frameId: 1 },
  ])
})

t.test('the description counts sessions, calls and sampled tokens', async t => {
  const replyTo = ref<MergeDescription>('/asker/')
  const { effects } = run([
    open,
    { type: 'open-ledger', sessionId: 's-2' as SessionId, session },
    received(captured(0, 'c1')),
    received(captured(1, 'c2', { sessionId: 's-2' as SessionId, completionTokens: 10 })),
    { type: 'merge-described', replyTo },
  ])
  t.strictSame(effects.at(-1), {
    type: 'reply-description',
    replyTo,
    description: { type: 'merge-description', sessions: 2, calls: 2, tokens: 13 },
  })
})

t.test('a failed effect is a crash', async t => {
  t.throws(() => run([{ type: 'effect-failed', error: 'port closed' }]), /port closed/)
})

t.test('repeated messages and tools of a session are one object, with the same content', async t => {
  const message = (role: string, content: string) => ({ role, content })
  const turn = (texts: readonly string[], tool: string) => ({
    model: 'm',
    messages: texts.map((text, index) => message(index % 2 === 0 ? 'user' : 'assistant', text)),
    tools: [{ type: 'function', function: { name: tool } }],
  })
  const requests = [turn(['a', 'b'], 't'), turn(['x'], 'u'), turn(['a', 'b', 'c'], 't'), turn(['a', 'B'], 't')]
  const { effects } = run([
    open,
    ...requests.map((request, index) => received(captured(index, `c${index}`, { request }))),
    seal,
  ])
  const kept = sealed(effects)?.calls.map(call => call.record.request as unknown as (typeof requests)[number]) ?? []
  t.strictSame(kept, requests)
  t.equal(kept[2]?.messages[0], kept[0]?.messages[0])
  t.equal(kept[2]?.messages[1], kept[0]?.messages[1])
  t.equal(kept[2]?.tools[0], kept[0]?.tools[0])
  t.equal(kept[3]?.messages[0], kept[0]?.messages[0])
  t.not(kept[3]?.messages[1], kept[0]?.messages[1])
})

t.test('bodies that repeat an earlier one are kept as what is new, and come out whole', async t => {
  const tools = `"tools":["${'t'.repeat(3_000)}"]`
  const bodies = Array.from({ length: 40 }, (_, turn) => {
    const messages = Array.from({ length: turn + 1 }, (_, index) => `"message ${index} ${'ä🙂'.repeat(200)}"`)
    return `{"messages":[${messages.join(',')}],${tools},"stream":true}`
  })
  const other = '{"messages":["a side call of its own"]}'
  const frames = bodies.flatMap((originalRequest, turn) => [
    received(captured(turn, `c${turn}`, { sequence: turn, originalRequest })),
    ...(turn % 5 === 0 ? [received(captured(100 + turn, `s${turn}`, { originalRequest: other }))] : []),
  ])
  const calls = sealed(run([open, ...frames, seal]).effects)?.calls.map(({ record }) => record) ?? []
  const byId = new Map(calls.map(record => [record.completionId, record]))
  for (const [turn, body] of bodies.entries()) {
    const record = byId.get(`c${turn}` as CompletionId)
    t.equal(record && wholeOriginal(record, id => byId.get(id)), body)
  }
  for (const record of calls.filter(({ completionId }) => completionId.startsWith('s'))) {
    t.equal(
      wholeOriginal(record, id => byId.get(id)),
      other,
    )
  }
  const kept = calls.reduce((sum, { originalRequest }) => sum + originalRequest.length, 0)
  const sent = bodies.reduce((sum, body) => sum + body.length, 0)
  t.ok(kept < sent / 10, `${kept} of ${sent} characters are kept`)
  t.equal(
    wholeOriginal(
      { originalRequest: '', originalLike: { completionId: 'gone' as CompletionId, prefix: 1, suffix: 1 } },
      () => undefined,
    ),
    null,
  )
})

t.test('failures of one call in the same millisecond are as many as they are; a frame sent twice is one', async t => {
  const cut = (frameId: number, ordinal?: number): MergeInput =>
    received({
      v: 1,
      kind: 'call-failed',
      frameId,
      failed: failedCall({ abortedTokens: 2, ...(ordinal !== undefined && { ordinal }) }),
    })
  const { effects } = run([open, cut(1, 0), cut(2, 1), cut(2, 1), cut(3, 2), seal])
  t.strictSame(
    sealed(effects)?.failed.map(({ ordinal, abortedTokens }) => [ordinal, abortedTokens]),
    [
      [0, 2],
      [1, 2],
      [2, 2],
    ],
  )
  t.equal(sealed(run([open, cut(1), cut(1, 0), seal]).effects)?.failed.length, 1)
})

// The stages machine by itself: order, limits, cancels, orphans.

import t from 'tap'
import type { SessionMessage } from '../../../../actors/protocol/session.js'
import type { PostrunJob, RunJob, StagesDescription } from '../../../../actors/protocol/stages.js'
import { stagesMachine } from '../../../../actors/stages/machine.js'
import type { StagesEffect, StagesInput, StagesLimits, StagesState } from '../../../../actors/stages/state.js'
import type { ActorRef } from '../../../../actors/system/ref.js'
import {
  agentResult,
  postrunOutcome,
  recordingRef,
  runtimeHandle,
  sessionId,
  sessionSpec,
} from '../../../support/session-fixtures.js'

const limits: StagesLimits = { init: 2, ready: 2, running: 1, postrun: 1, postrunQueue: 2, initQueue: 4 }

/** Runs the machine by hand; `did` are the effects since the last look. */
function bench(over: Partial<StagesLimits> = {}) {
  const machine = stagesMachine({ ...limits, ...over })
  let state: StagesState = machine.initial.state
  let effects: StagesEffect[] = [...machine.initial.effects]
  const refs = new Map<string, ActorRef<SessionMessage>>()
  const ref = (name: string) => {
    const known = refs.get(name) ?? recordingRef<SessionMessage>(`/sessions/${name}/`)
    refs.set(name, known)
    return known
  }
  const send = (message: StagesInput) => {
    const step = machine.step(state, message)
    state = step.state
    effects.push(...step.effects)
  }
  const spec = (name: string, priority = 0) => sessionSpec({ sessionId: sessionId(name), priority })
  return {
    send,
    ref,
    /** Effects since the last call, as short words. */
    did() {
      const words = effects.flatMap(effect => word(effect) ?? [])
      effects = []
      return words
    },
    raw: () => effects,
    request: (name: string, priority = 0) =>
      send({
        type: 'init-requested',
        sessionId: sessionId(name),
        priority,
        job: { spec: spec(name, priority), sessionDir: `/s/${name}`, timeoutMs: 1000 },
        session: ref(name),
      }),
    initEnds: (name: string, error: string | null = null) =>
      send({
        type: 'init-task-ended',
        sessionId: sessionId(name),
        runtime: { ...runtimeHandle, sessionId: name },
        harnessInstallDir: null,
        timing: {},
        error: error === null ? null : { code: 'RUNTIME_FAILED', message: error },
        timedOut: false,
      }),
    run: (name: string) => send({ type: 'start-run', sessionId: sessionId(name), job: runJob(spec(name)) }),
    runEnds: (name: string) =>
      send({ type: 'run-task-ended', sessionId: sessionId(name), result: agentResult(), timing: {} }),
    postrun: (name: string) =>
      send({ type: 'postrun-requested', sessionId: sessionId(name), job: postrunJob(spec(name)), session: ref(name) }),
    postrunEnds: (name: string) =>
      send({ type: 'postrun-task-ended', sessionId: sessionId(name), outcome: postrunOutcome() }),
    cancel: (name: string, stage: 'init' | 'ready' | 'running' | 'postrun') =>
      send({ type: 'cancel-stage', sessionId: sessionId(name), stage }),
    describe() {
      const to = recordingRef<StagesDescription>('/asker/')
      const step = machine.step(state, { type: 'stages-described', replyTo: to })
      const effect = step.effects[0]
      return effect?.type === 'describe' ? effect.description : null
    },
  }
}

const runJob = (spec: RunJob['spec']): RunJob => ({
  spec,
  sessionDir: '/s',
  runtime: runtimeHandle,
  harnessInstallDir: null,
  gatewayUrl: 'http://127.0.0.1:1',
  sessionKey: 'sk-test',
  sessionBudgetMs: 1000,
  agentBudgetMs: null,
})
const postrunJob = (spec: PostrunJob['spec']): PostrunJob => ({
  spec,
  sessionDir: '/s',
  runtime: runtimeHandle,
  agentResult: agentResult(),
  ledger: { sessionId: spec.sessionId, calls: [], failed: [] },
  sessionError: null,
  timedOut: false,
  cancelled: false,
  truncated: null,
  evaluate: true,
})

function word(effect: StagesEffect): string | null {
  switch (effect.type) {
    case 'tell-session':
      return `${effect.session.address.path.split('/')[2]} ${effect.fact.type}`
    case 'tell-free':
      return `free ${effect.count}`
    case 'cancel-task':
      return `cancel ${effect.pool} ${effect.sessionId}`
    case 'destroy-runtime':
      return `destroy ${effect.runtime.sessionId}`
    case 'kill-thread':
      return `kill ${effect.pool} ${effect.index}`
    case 'run-init-task':
    case 'run-run-task':
    case 'run-postrun-task':
      return `${effect.type} ${effect.sessionId}`
    case 'watch-session':
    case 'describe':
    case 'arm-level':
      return null
  }
}

t.test('at the start rollout is told how many INIT grants can be made', t => {
  t.strictSame(bench().did(), ['free 2'])
  t.end()
})

t.test('the level is told again, for a rollout that started later or anew', t => {
  const b = bench()
  b.did()
  b.send({ type: 'level-due' })
  t.strictSame(b.did(), ['free 2'])
  t.end()
})

t.test('one session goes through every stage and leaves nothing', t => {
  const b = bench()
  b.did()
  b.request('a')
  t.strictSame(b.did(), ['a init-started', 'run-init-task a', 'free 1'])
  b.initEnds('a')
  t.strictSame(b.did(), ['a init-finished', 'a run-slot-granted', 'free 2'])
  b.run('a')
  t.strictSame(b.did(), ['run-run-task a'])
  b.runEnds('a')
  t.strictSame(b.did(), ['a run-finished'])
  b.postrun('a')
  t.strictSame(b.did(), ['a postrun-started', 'run-postrun-task a'])
  b.postrunEnds('a')
  t.strictSame(b.did(), ['a postrun-finished'])
  t.strictSame(b.describe(), {
    type: 'stages-description',
    initQueueDepth: 0,
    initInflight: 0,
    readyDepth: 0,
    readyHighWater: 0,
    runInflight: 0,
    postrunQueueDepth: 0,
    postrunInflight: 0,
  })
  t.end()
})

t.test('INIT goes by priority, then first come first served', t => {
  const b = bench({ init: 1 })
  b.request('first')
  b.request('low')
  b.request('high', 100)
  b.request('low-later')
  b.did()
  b.initEnds('first')
  b.initEnds('high')
  b.initEnds('low')
  t.strictSame(
    b.did().filter(w => w.endsWith('init-started')),
    ['high init-started', 'low init-started'],
  )
  t.end()
})

t.test('while RUNNING is slow, READY stops at its limit and INIT waits', t => {
  const b = bench()
  for (const name of ['a', 'b', 'c', 'd']) b.request(name)
  b.initEnds('a')
  b.run('a')
  b.initEnds('b')
  b.initEnds('c')
  b.did()
  b.request('e')
  b.request('f')
  t.strictSame(b.did(), [])
  t.match(b.describe(), { readyDepth: 2, initInflight: 0, initQueueDepth: 3, runInflight: 1, readyHighWater: 2 })
  b.runEnds('a')
  t.strictSame(b.did(), ['a run-finished', 'b run-slot-granted', 'd init-started', 'run-init-task d'])
  t.end()
})

t.test('a full POSTRUN queue stops INIT grants and refuses no finished session', t => {
  const b = bench()
  for (const name of ['p', 'q', 'r']) b.postrun(name)
  t.strictSame(b.did(), ['free 2', 'p postrun-started', 'run-postrun-task p', 'free 0'])
  b.postrun('s')
  b.request('a')
  t.strictSame(b.did(), [])
  b.postrunEnds('p')
  b.postrunEnds('q')
  t.ok(b.did().includes('a init-started'))
  t.end()
})

t.test('one session too many for the INIT queue is refused, and its actor is told', t => {
  const b = bench({ init: 1, initQueue: 1 })
  b.request('a')
  b.request('b')
  b.did()
  b.request('c')
  const refusal = b.raw().find(effect => effect.type === 'tell-session')
  t.match(refusal, { fact: { type: 'init-finished', error: { code: 'TASK_QUEUE_FULL' } } })
  t.end()
})

t.test('a parked session that is cancelled leaves at once, and the slot count stays what it was', t => {
  const b = bench()
  b.request('a')
  b.request('b')
  b.initEnds('a')
  b.run('a')
  b.initEnds('b')
  b.did()
  b.cancel('b', 'ready')
  b.cancel('b', 'ready')
  t.match(b.describe(), { readyDepth: 0, runInflight: 1 })
  b.postrun('b')
  t.ok(b.did().includes('b postrun-started'))
  b.request('c')
  b.request('d')
  b.initEnds('c')
  b.initEnds('d')
  b.did()
  b.runEnds('a')
  b.send({ type: 'release-run-slot', sessionId: sessionId('b') })
  t.strictSame(
    b.did().filter(w => w.endsWith('granted')),
    ['c run-slot-granted'],
  )
  t.match(b.describe(), { readyDepth: 1, runInflight: 1 })
  t.end()
})

t.test('a session cancelled in the queue is never picked up', t => {
  const b = bench({ init: 1 })
  b.request('a')
  b.request('b')
  b.did()
  b.cancel('b', 'init')
  t.strictSame(b.did(), ['b init-finished', 'free 0'].slice(0, 1))
  b.initEnds('a')
  t.notOk(b.did().includes('b init-started'))
  t.end()
})

t.test('cancelling a running task twice tells it once', t => {
  const b = bench()
  b.request('a')
  b.cancel('a', 'init')
  b.cancel('a', 'init')
  t.equal(b.did().filter(w => w === 'cancel init a').length, 1)
  b.initEnds('a')
  t.match(b.did(), ['a init-finished'], 'not READY: it was cancelled')
  t.match(b.describe(), { readyDepth: 0, runInflight: 0, initInflight: 0 })
  t.end()
})

t.test('a POSTRUN job cancelled in its queue starts as cancelled and without evaluation', t => {
  const b = bench()
  b.postrun('a')
  b.postrun('b')
  b.cancel('b', 'postrun')
  b.postrunEnds('a')
  const started = b.raw().findLast(effect => effect.type === 'run-postrun-task')
  t.match(started, { sessionId: 'b', job: { cancelled: true, evaluate: false } })
  t.end()
})

t.test('a slot given back gives room once, however often it is given back', t => {
  const b = bench()
  b.request('a')
  b.request('b')
  b.initEnds('a')
  b.initEnds('b')
  b.did()
  b.send({ type: 'release-run-slot', sessionId: sessionId('a') })
  b.send({ type: 'release-run-slot', sessionId: sessionId('a') })
  t.match(b.describe(), { runInflight: 1, readyDepth: 0 })
  b.run('a')
  t.strictSame(
    b.did().filter(w => w.startsWith('run-run')),
    [],
    'it has no slot to start on',
  )
  t.end()
})

t.test('what a session that died left behind is torn down, wherever it was', t => {
  const b = bench()
  const dies = (name: string) => b.send({ type: 'session-terminated', address: b.ref(name).address })
  b.request('initializing')
  dies('initializing')
  t.ok(b.did().includes('cancel init initializing'))
  b.initEnds('initializing')
  t.ok(b.did().includes('destroy initializing'))
  b.request('run')
  b.initEnds('run')
  b.run('run')
  b.request('ready')
  b.initEnds('ready')
  b.did()
  dies('ready')
  t.ok(b.did().includes('destroy ready'))
  dies('run')
  t.ok(b.did().includes('cancel running run'))
  b.runEnds('run')
  t.ok(b.did().includes('destroy run'))
  t.match(b.describe(), { readyDepth: 0, runInflight: 0, initInflight: 0 })
  t.end()
})

t.test('draining grants no INIT and lets the rest go on', t => {
  const b = bench()
  b.request('a')
  b.initEnds('a')
  b.send({ type: 'drain-stages' })
  b.did()
  b.request('b')
  b.run('a')
  b.runEnds('a')
  t.strictSame(b.did(), ['run-run-task a', 'a run-finished'])
  t.match(b.describe(), { initQueueDepth: 1 })
  t.end()
})

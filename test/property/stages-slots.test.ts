// Whatever messages come, in whatever order, also nonsense: limits hold after each step and no slot leaks.

import fc from 'fast-check'
import t from 'tap'
import type { SessionMessage } from '../../actors/protocol/session.js'
import { countPlaces, stagesMachine } from '../../actors/stages/machine.js'
import type { StagesInput, StagesState } from '../../actors/stages/state.js'
import {
  agentResult,
  postrunOutcome,
  recordingRef,
  runtimeHandle,
  sessionId,
  sessionSpec,
} from '../support/session-fixtures.js'

const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
const refs = new Map(names.map(name => [name, recordingRef<SessionMessage>(`/sessions/${name}/`)]))
const refOf = (name: string) => refs.get(name) ?? recordingRef<SessionMessage>('/nobody/')

const kinds = [
  'init-requested',
  'init-task-ended',
  'init-task-failed',
  'start-run',
  'release-run-slot',
  'run-task-ended',
  'run-task-crashed',
  'postrun-requested',
  'postrun-task-ended',
  'postrun-task-crashed',
  'cancel-init',
  'cancel-ready',
  'cancel-running',
  'cancel-postrun',
  'session-terminated',
] as const

function messageOf(kind: (typeof kinds)[number], name: string, priority: number): StagesInput {
  const id = sessionId(name)
  const spec = sessionSpec({ sessionId: id, priority })
  const error = { code: 'RUNTIME_FAILED', message: 'broken' } as const
  switch (kind) {
    case 'init-requested': {
      const job = { spec, sessionDir: '/s', timeoutMs: 1 }
      return { type: kind, sessionId: id, priority, job, session: refOf(name) }
    }
    case 'init-task-ended':
    case 'init-task-failed':
      return {
        type: 'init-task-ended',
        sessionId: id,
        runtime: { ...runtimeHandle, sessionId: name },
        harnessInstallDir: null,
        timing: {},
        error: kind === 'init-task-failed' ? error : null,
        timedOut: false,
      }
    case 'start-run': {
      const urls = { gatewayUrl: 'http://127.0.0.1:1', sessionKey: 'sk-test' }
      const job = { spec, sessionDir: '/s', runtime: runtimeHandle, harnessInstallDir: null, ...urls }
      return { type: kind, sessionId: id, job: { ...job, sessionBudgetMs: 1, agentBudgetMs: null } }
    }
    case 'release-run-slot':
      return { type: kind, sessionId: id }
    case 'run-task-ended':
      return { type: kind, sessionId: id, result: agentResult(), timing: {} }
    case 'run-task-crashed':
      return { type: kind, sessionId: id, error }
    case 'postrun-requested': {
      const job = {
        spec,
        sessionDir: '/s',
        runtime: runtimeHandle,
        agentResult: agentResult(),
        ledger: { sessionId: id, calls: [], failed: [] },
        sessionError: null,
        timedOut: false,
        cancelled: false,
        truncated: null,
        evaluate: true,
      }
      return { type: kind, sessionId: id, job, session: refOf(name) }
    }
    case 'postrun-task-ended':
      return { type: kind, sessionId: id, outcome: postrunOutcome() }
    case 'postrun-task-crashed':
      return { type: kind, sessionId: id, crash: { error, teardown: null } }
    case 'cancel-init':
    case 'cancel-ready':
    case 'cancel-running':
    case 'cancel-postrun':
      return {
        type: 'cancel-stage',
        sessionId: id,
        stage: kind.slice('cancel-'.length) as 'init' | 'ready' | 'running' | 'postrun',
      }
    case 'session-terminated':
      return { type: kind, address: refOf(name).address }
  }
}

const limitsArb = fc.record({
  init: fc.integer({ min: 1, max: 4 }),
  ready: fc.integer({ min: 1, max: 4 }),
  running: fc.integer({ min: 1, max: 3 }),
  postrun: fc.integer({ min: 1, max: 3 }),
  postrunQueue: fc.integer({ min: 1, max: 4 }),
  initQueue: fc.integer({ min: 1, max: 8 }),
})
/** What the entry of `name` waits for next, so that sessions get through besides the nonsense. */
const onward = { 'init-queued': 'init-requested', initializing: 'init-task-ended', ready: 'init-requested' } as const
const later = { granted: 'start-run', running: 'run-task-ended', 'postrun-queued': 'init-requested' } as const
const nextKinds = { ...onward, ...later, postrun: 'postrun-task-ended' } as const
const sensible = (state: StagesState, name: string): (typeof kinds)[number] => {
  const place = state.entries.get(sessionId(name))?.place
  return place === undefined ? 'init-requested' : nextKinds[place]
}

const messagesArb = fc.array(
  fc.tuple(fc.boolean(), fc.constantFrom(...kinds), fc.constantFrom(...names), fc.integer({ max: 2, min: 0 })),
  {
    minLength: 20,
    maxLength: 120,
  },
)

/** Ends every task and gives back every slot, as tasks and sessions do in the end. */
function drainAll(machine: ReturnType<typeof stagesMachine>, from: StagesState): StagesState {
  let state = from
  const send = (kind: (typeof kinds)[number], name: string) => {
    state = machine.step(state, messageOf(kind, name, 0)).state
  }
  for (let round = 0; round < 4 && state.entries.size > 0; round++) {
    for (const entry of [...state.entries.values()]) {
      send('init-task-ended', entry.sessionId)
      send('cancel-ready', entry.sessionId)
      send('run-task-ended', entry.sessionId)
      send('postrun-task-ended', entry.sessionId)
    }
  }
  return state
}

t.test('no sequence of messages breaks a limit or leaks a slot', t => {
  let runs = 0
  const check = fc.property(limitsArb, messagesArb, (limits, messages) => {
    const machine = stagesMachine(limits)
    let { state } = machine.initial
    for (const [isSensible, random, name, priority] of messages) {
      const kind = isSensible ? sensible(state, name) : random
      const step = machine.step(state, messageOf(kind, name, priority))
      state = step.state
      const counts = countPlaces(state.entries)
      if (counts.initializing > limits.init) throw new Error('INIT over its limit')
      if (counts.ready > limits.ready) throw new Error('READY over its limit')
      if (counts.granted + counts.running > limits.running) throw new Error('RUNNING over its limit')
      if (counts.postrun > limits.postrun) throw new Error('POSTRUN over its limit')
      if (counts['init-queued'] > limits.initQueue) throw new Error('INIT queue over its limit')
      if (counts.ready > 0 && counts.granted + counts.running < limits.running) throw new Error('a run slot idles')
      if (state.readyHighWater > limits.ready) throw new Error('READY was over its limit')
      runs += step.effects.filter(effect => effect.type === 'run-run-task').length
    }
    const last = drainAll(machine, state)
    if (last.entries.size > 0) throw new Error(`left behind: ${[...last.entries.keys()].join()}`)
    return last.toldFree === Math.min(limits.init, limits.ready + limits.running)
  })
  t.doesNotThrow(() => fc.assert(check, { numRuns: 1000, seed: 20240607 }))
  t.ok(runs > 100, 'runs were started on the way')
  t.end()
})

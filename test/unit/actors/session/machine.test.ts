// The session machine by itself: what each message does in each phase, and what results come out.

import fc from 'fast-check'
import t from 'tap'
import type { SessionDescription } from '../../../../actors/protocol/session.js'
import { sessionMachine } from '../../../../actors/session/machine.js'
import type {
  Phase,
  SessionEffect,
  SessionInput,
  SessionSetup,
  SessionState,
} from '../../../../actors/session/state.js'
import type { SessionLedger } from '../../../../src/domain/completion.js'
import { isTerminal } from '../../../../src/domain/session.js'
import {
  agentResult,
  postrunOutcome,
  recordingRef,
  runtimeHandle,
  sessionId,
  sessionSetup,
  sessionSpec,
  trajectory,
} from '../../../support/session-fixtures.js'

const error = { code: 'RUNTIME_FAILED', message: 'broken' } as const
const ours = { code: 'ACTOR_DEAD', message: 'the thread has ended' } as const
const ledger: SessionLedger = { sessionId: sessionId('s-1'), calls: [], failed: [] }
const failedCall = (status: number): SessionLedger => ({
  ...ledger,
  failed: [
    {
      sessionId: sessionId('s-1'),
      sequence: 0,
      attempt: 1,
      status,
      error: 'engine broke',
      abortedTokens: 0,
      startedAtMs: 1,
      finishedAtMs: 2,
    },
  ],
})

/** One message of each kind; `atMs` where facts carry a time. */
const say = {
  registered: { type: 'proxy-registered', gatewayUrl: 'http://127.0.0.1:1', atMs: 2 },
  runRegistered: { type: 'proxy-registered', gatewayUrl: 'http://127.0.0.1:1', atMs: 500 },
  unreachable: { type: 'proxy-unreachable', error: ours, atMs: 2 },
  initStarted: { type: 'init-started', atMs: 10 },
  initFinished: {
    type: 'init-finished',
    runtime: runtimeHandle,
    harnessInstallDir: null,
    timing: { prepare_ms: 4 },
    error: null,
    timedOut: false,
    atMs: 20,
  },
  initFailed: {
    type: 'init-finished',
    runtime: null,
    harnessInstallDir: null,
    timing: {},
    error,
    timedOut: false,
    atMs: 20,
  },
  slot: { type: 'run-slot-granted', atMs: 500 },
  progress: { type: 'run-progress', stage: 'exec' },
  process: { type: 'process-started', pid: 7, startTime: '9' },
  runFinished: { type: 'run-finished', result: agentResult(), timing: { agent_exec_ms: 30 }, atMs: 540 },
  runFailed: { type: 'run-finished', result: agentResult({ status: 'failed', returnCode: 3 }), timing: {}, atMs: 540 },
  runCrashed: { type: 'run-crashed', error: ours, atMs: 540 },
  closed: { type: 'proxy-closed', error: null, atMs: 545 },
  ledger: { type: 'ledger-received', ledger, atMs: 550 },
  ledgerLost: { type: 'ledger-lost', error: null, atMs: 550 },
  mergeDied: { type: 'ledger-lost', error: { code: 'ACTOR_DEAD', message: 'the thread has ended' }, atMs: 550 },
  postrunStarted: { type: 'postrun-started', atMs: 560 },
  building: { type: 'postrun-progress', stage: 'build' },
  evaluating: { type: 'postrun-progress', stage: 'evaluate' },
  tearing: { type: 'postrun-progress', stage: 'teardown' },
  postrunFinished: { type: 'postrun-finished', outcome: postrunOutcome(), atMs: 600 },
  postrunCrashed: { type: 'postrun-crashed', crash: { error: ours, teardown: null }, atMs: 600 },
  recorded: { type: 'completion-recorded', calls: 2, turns: 2, promptTokens: 12, sampledTokens: 50 },
  thirdCall: { type: 'call-started', sequence: 2 },
  fourthCall: { type: 'call-started', sequence: 3 },
  limit: { type: 'limit-reached', limit: 'max_turns' },
  held: { type: 'calls-held', atMs: 530 },
  released: { type: 'calls-released', atMs: 535 },
  proxyRestarted: { type: 'pair-restarted', part: 'proxy' },
  mergeRestarted: { type: 'pair-restarted', part: 'merge' },
  cancel: { type: 'cancel-session', reason: 'task cancelled' },
  initDeadline: { type: 'deadline-passed', deadline: 'init', atMs: 60_010 },
  sessionDeadline: { type: 'deadline-passed', deadline: 'session', atMs: 60_010 },
  agentDeadline: { type: 'deadline-passed', deadline: 'agent', atMs: 60_010 },
  postrunDeadline: { type: 'deadline-passed', deadline: 'postrun', atMs: 60_010 },
  stopDeadline: { type: 'deadline-passed', deadline: 'stop', atMs: 60_010 },
  effectFailed: { type: 'effect-failed', effect: 'open-ledger', error },
  described: { type: 'session-described', replyTo: recordingRef<SessionDescription>('/asker/') },
} as const satisfies Record<string, SessionInput>
type Word = keyof typeof say

/** Words that lead to each phase. */
const wayTo: Record<Phase, readonly Word[]> = {
  registering: [],
  queued: ['registered'],
  initializing: ['registered', 'initStarted'],
  'stopping-init': ['registered', 'initStarted', 'initDeadline'],
  ready: ['registered', 'initStarted', 'initFinished'],
  starting: ['registered', 'initStarted', 'initFinished', 'slot'],
  running: ['registered', 'initStarted', 'initFinished', 'slot', 'runRegistered'],
  'stopping-run': ['registered', 'initStarted', 'initFinished', 'slot', 'runRegistered', 'sessionDeadline'],
  closing: ['registered', 'initStarted', 'initFinished', 'slot', 'runRegistered', 'runFinished'],
  sealing: ['registered', 'initStarted', 'initFinished', 'slot', 'runRegistered', 'runFinished', 'closed'],
  'postrun-queued': [
    'registered',
    'initStarted',
    'initFinished',
    'slot',
    'runRegistered',
    'runFinished',
    'closed',
    'ledger',
  ],
  postrun: [
    'registered',
    'initStarted',
    'initFinished',
    'slot',
    'runRegistered',
    'runFinished',
    'closed',
    'ledger',
    'postrunStarted',
  ],
  ended: ['cancel'],
}

function play(words: readonly (Word | SessionInput)[], setup: SessionSetup = sessionSetup()) {
  const machine = sessionMachine(setup)
  let state: SessionState = machine.initial.state
  let last: readonly SessionEffect[] = machine.initial.effects
  const all: SessionEffect[] = [...last]
  for (const word of words) {
    const step = machine.step(state, typeof word === 'string' ? say[word] : word)
    state = step.state
    last = step.effects
    all.push(...last)
  }
  const of = <T extends SessionEffect['type']>(type: T) =>
    all.filter((effect): effect is Extract<SessionEffect, { type: T }> => effect.type === type)
  return { state, last, all, of, statuses: of('report-status').map(effect => effect.status), result: state.result }
}

const whole = [...wayTo.postrun, 'building', 'evaluating', 'postrunFinished'] as const

t.test('the happy path goes through every status and reports each once', t => {
  const { statuses, result, of, state } = play(whole)
  t.strictSame(statuses, ['INITIALIZING', 'READY', 'RUNNING', 'POST_RUN', 'BUILDING', 'EVALUATING', 'COMPLETED'])
  t.match(result, { status: 'COMPLETED', error: null, failureClass: null, truncated: null })
  t.equal(of('report-end').length, 1)
  t.equal(state.phase, 'ended')
  t.strictSame(result?.timing, {
    register_to_init_queue_ms: 10,
    init_ms: 10,
    ready_queue_ms: 480,
    run_ms: 40,
    postrun_queue_ms: 20,
    postrun_ms: 40,
    prepare_ms: 4,
    agent_exec_ms: 30,
    build_ms: 3,
    e2e_ms: 600,
  })
  t.end()
})

t.test('READY spends no budget: RUN gets what INIT left', t => {
  const { of } = play(wayTo.running)
  t.match(of('start-run'), [{ sessionBudgetMs: 59_990, agentBudgetMs: null }])
  t.strictSame(of('arm-deadline').at(-1), { type: 'arm-deadline', deadline: 'session', afterMs: 59_990 })
  t.end()
})

t.test('the smaller budget decides, and a tie is the session’s', t => {
  const budgets = (agentTimeoutSeconds: number) => {
    const { of } = play(wayTo.running, sessionSetup({ spec: sessionSpec({ agentTimeoutSeconds }) }))
    return of('arm-deadline').at(-1)
  }
  t.match(budgets(5), { deadline: 'agent', afterMs: 5_000 })
  t.match(budgets(59.99), { deadline: 'session', afterMs: 59_990 })
  t.match(budgets(600), { deadline: 'session', afterMs: 59_990 })
  t.end()
})

t.test('a failed INIT is ERROR, environment, and runs nothing', t => {
  const { result, of } = play(['registered', 'initStarted', 'initFailed'])
  t.match(result, {
    status: 'ERROR',
    error: 'runtime initialization failed: broken',
    failureClass: 'environment',
    agentResult: { status: 'failed' },
    trajectory: { traces: [], ledger: { tokens: { sampled: 0, trained: 0 } } },
  })
  t.strictSame(of('start-run'), [])
  t.end()
})

t.test('a failed INIT that made something goes through POSTRUN, without evaluation', t => {
  const { of, state } = play(['registered', 'initStarted', { ...say.initFailed, runtime: runtimeHandle }])
  t.equal(state.phase, 'postrun-queued')
  t.match(of('request-postrun'), [{ job: { evaluate: false, sessionError: /initialization failed/ } }])
  t.end()
})

t.test('an INIT deadline is TIMEOUT in stage init', t => {
  const { result, of } = play([...wayTo['stopping-init'], { ...say.initFailed, timedOut: true }])
  t.match(result, {
    status: 'TIMEOUT',
    error: 'session execution timeout',
    failureClass: 'environment',
    agentResult: { status: 'timeout', timeoutSource: 'session', timeoutStage: 'init' },
  })
  t.strictSame(of('cancel-stage'), [{ type: 'cancel-stage', stage: 'init' }])
  t.end()
})

t.test('the agent’s budget ends: stopped, closed, sealed, built and evaluated on budgets of their own', t => {
  const { result, of } = play([
    ...wayTo.running,
    'progress',
    'agentDeadline',
    { ...say.runFinished, result: agentResult({ status: 'failed', returnCode: 143 }) },
    'closed',
    'ledger',
    'postrunStarted',
    'postrunFinished',
  ])
  t.match(of('request-postrun'), [
    {
      job: {
        timedOut: true,
        evaluate: true,
        sessionError: null,
        agentResult: { status: 'timeout', returnCode: -1, timeoutSource: 'agent', timeoutStage: 'exec' },
      },
    },
  ])
  t.match(result, { status: 'TIMEOUT', error: 'agent execution timeout', failureClass: 'policy' })
  t.strictSame(result?.trajectory.ledger.tokens.trained, 3, 'aligned traces of an agent time-out stay trainable')
  t.end()
})

t.test('a session time-out sets every token aside under its name', t => {
  const { result } = play([
    ...wayTo['stopping-run'],
    'runFinished',
    'closed',
    'ledger',
    'postrunStarted',
    'postrunFinished',
  ])
  t.match(result, {
    status: 'TIMEOUT',
    trajectory: { ledger: { tokens: { sampled: 3, trained: 0, setAside: { session_timeout: 3 } } } },
  })
  t.strictSame(result?.trajectory.traces[0]?.lossMask, new Uint8Array(3))
  t.end()
})

t.test('a harness that exits badly is ERROR, harness, and still evaluated', t => {
  const end = ['closed', 'ledger', 'postrunStarted', 'postrunFinished'] as const
  const { result, of } = play([...wayTo.running, 'runFailed', ...end])
  t.match(of('request-postrun'), [{ job: { evaluate: true, sessionError: 'agent exited with code 3' } }])
  t.match(result, { status: 'ERROR', failureClass: 'harness', trajectory: { ledger: { tokens: { trained: 0 } } } })
  t.end()
})

t.test('a harness that gave up on a broken engine is infrastructure: not graded, and the failures are told', t => {
  const rest = ['postrunStarted', 'postrunFinished'] as const
  const { result, of } = play([
    ...wayTo.running,
    'runFailed',
    'closed',
    { ...say.ledger, ledger: failedCall(500) },
    ...rest,
  ])
  // No reward: a group's mean must not count what the policy had no part in.
  t.match(of('request-postrun'), [{ job: { evaluate: false } }])
  t.match(result, {
    failureClass: 'infrastructure',
    metadata: {
      upstream_failures: { count: 1, by_status: { 500: 1 }, last_error: 'engine broke', ended_on_failure: true },
    },
  })
  const tooLong = play([...wayTo.running, 'runFailed', 'closed', { ...say.ledger, ledger: failedCall(400) }, ...rest])
  t.match(tooLong.result, { failureClass: 'harness', metadata: { upstream_failures: { ended_on_failure: false } } })
  t.end()
})

t.test('a limit of the task stops the run: truncated, not an error', t => {
  const { result, of } = play([
    ...wayTo.running,
    'limit',
    'runFailed',
    'closed',
    'ledger',
    'postrunStarted',
    'postrunFinished',
  ])
  t.match(of('request-postrun'), [{ job: { truncated: 'max_turns', sessionError: null, evaluate: true } }])
  t.match(result, { status: 'COMPLETED', truncated: 'max_turns', failureClass: 'policy' })
  t.end()
})

t.test('the pool thread dies under the run: ERROR, infrastructure, traces kept and masked, no reward', t => {
  const { result, of } = play([
    ...wayTo.running,
    'runCrashed',
    'closed',
    'ledger',
    'postrunStarted',
    { ...say.postrunFinished, outcome: postrunOutcome({ evaluation: null }) },
  ])
  t.match(of('request-postrun'), [{ job: { evaluate: false, sessionError: /agent execution failed/ } }])
  t.match(result, {
    status: 'ERROR',
    failureClass: 'infrastructure',
    evaluation: null,
    trajectory: { traces: [{}], ledger: { tokens: { sampled: 3, trained: 0, setAside: { session_error: 3 } } } },
  })
  t.end()
})

t.test('the POSTRUN thread dies: built again of the store by another, masked, not graded', t => {
  const way = [...wayTo.running, 'recorded', ...wayTo.postrun.slice(5), 'postrunCrashed'] as const
  const first = play(way)
  t.match([first.state.phase, first.last], ['sealing', [{ type: 'recover-ledger' }]])
  const { result, of } = play([
    ...way,
    'ledger',
    'postrunStarted',
    { ...say.postrunFinished, outcome: postrunOutcome({ evaluation: null }) },
  ])
  t.match(of('request-postrun').at(-1), { job: { evaluate: false, runtime: null, sessionError: /post-run failed/ } })
  t.match(result, {
    status: 'ERROR',
    error: /post-run failed/,
    failureClass: 'infrastructure',
    evaluation: null,
    trajectory: { traces: [{}], ledger: { tokens: { sampled: 3, trained: 0, setAside: { session_error: 3 } } } },
  })
  t.equal(result?.metadata['lost'], undefined)
  t.end()
})

t.test('the POSTRUN thread dies twice: the counts that are known are told as lost', t => {
  const once = [...wayTo.running, 'recorded', ...wayTo.postrun.slice(5), 'postrunCrashed'] as const
  const { result } = play([...once, 'ledger', 'postrunStarted', 'postrunCrashed'])
  t.match(result, {
    status: 'ERROR',
    failureClass: 'infrastructure',
    metadata: { lost: { calls: 2, sampled_tokens: 50 } },
    trajectory: { ledger: { calls: 2, tokens: { sampled: 50, trained: 0, setAside: { session_error: 50 } } } },
  })
  t.end()
})

t.test('the merge thread dies in mid-run: its ledger is opened again from the store, and the session goes on', t => {
  for (const way of [[], ['thirdCall'], ['recorded', 'thirdCall']] as const) {
    const { state, last } = play([...wayTo.running, ...way, 'mergeRestarted'])
    t.match(state, { phase: 'running', lost: null, verdict: null })
    t.strictSame(last, [{ type: 'open-ledger' }])
  }
  t.end()
})

t.test('the merge thread dies under the seal: it is asked for again when the next one is there', t => {
  const way = [...wayTo.running, 'recorded', 'runFinished', 'closed'] as const
  const { state, last } = play([...way, 'mergeDied'])
  t.match([state.phase, last], ['sealing', []])
  t.strictSame(play([...way, 'mergeDied', 'mergeRestarted']).last, [{ type: 'seal-ledger' }])
  t.end()
})

t.test('a ledger that cannot be read back: ERROR, with the counts of what is gone', t => {
  const { result } = play([
    ...wayTo.running,
    'recorded',
    'mergeRestarted',
    'runFinished',
    'closed',
    'ledgerLost',
    'postrunStarted',
    'postrunFinished',
  ])
  t.match(result, {
    status: 'ERROR',
    error: /records were lost/,
    failureClass: 'infrastructure',
    metadata: { lost: { calls: 2, sampled_tokens: 50 } },
  })
  t.end()
})

t.test('a restarted proxy gets the session again, with the counters to go on from', t => {
  const used = { turns: 2, promptTokens: 12, sampledTokens: 50 }
  t.strictSame(play([...wayTo.running, 'recorded', 'proxyRestarted']).last, [
    { type: 'register-at-proxy', state: 'running', firstSequence: 2, used },
  ])
  const nothingUsed = { turns: 0, promptTokens: 0, sampledTokens: 0 }
  t.strictSame(play([...wayTo.ready, 'proxyRestarted']).last, [
    { type: 'register-at-proxy', state: 'registered', firstSequence: 0, used: nothingUsed },
  ])
  t.strictSame(
    play([...wayTo.running, 'recorded', 'thirdCall', 'fourthCall', 'proxyRestarted']).last,
    [{ type: 'register-at-proxy', state: 'running', firstSequence: 4, used }],
    'a number once given to a call is given to no other, also when that call failed or was cut',
  )
  t.strictSame(play([...wayTo.postrun, 'proxyRestarted']).last, [])
  t.end()
})

t.test(
  'an evaluator that failed is ERROR, grader; out of time TIMEOUT, grader; without a runtime ERROR, infrastructure',
  t => {
    const end = (over: object) => play([...wayTo.postrun, { ...say.postrunFinished, outcome: postrunOutcome(over) }])
    const evaluationError = { code: 'EVAL_FAILED', message: 'no such test' }
    t.match(end({ evaluation: null, evaluationError }).result, {
      status: 'ERROR',
      error: 'evaluator failed: no such test',
      failureClass: 'grader',
      trajectory: { traces: [{}] },
    })
    t.match(end({ evaluation: null, evaluationError, evaluationTimedOut: true }).result, {
      status: 'TIMEOUT',
      failureClass: 'grader',
      metadata: { verifier_timeout: true },
    })
    t.match(
      end({ evaluation: null, evaluationError: { code: 'RUNTIME_FAILED', message: 'fresh copy: no space' } }).result,
      {
        status: 'ERROR',
        failureClass: 'infrastructure',
      },
    )
    t.end()
  },
)

t.test('a teardown that was not proven masks the session as such', t => {
  const teardown = { proven: false, killed: 1, method: 'proc-scan' } as const
  const { result } = play([...wayTo.postrun, { ...say.postrunFinished, outcome: postrunOutcome({ teardown }) }])
  t.match(result, {
    status: 'ERROR',
    failureClass: 'infrastructure',
    trajectory: { ledger: { tokens: { trained: 0, setAside: { containment_unproven: 3 } } } },
  })
  t.end()
})

t.test('a session without a single model call is ERROR, harness', t => {
  const empty = trajectory({ status: 'ERROR', error: 'no completions', traces: [] })
  const { result } = play([
    ...wayTo.postrun,
    { ...say.postrunFinished, outcome: postrunOutcome({ trajectory: empty }) },
  ])
  t.match(result, { status: 'ERROR', error: 'no completions', failureClass: 'harness' })
  t.end()
})

const afterCancel: Record<Exclude<Phase, 'ended'>, readonly Word[]> = {
  registering: [],
  queued: ['initFailed'],
  initializing: ['initFailed'],
  'stopping-init': ['initFailed'],
  ready: ['closed', 'ledger', 'postrunStarted', 'postrunFinished'],
  starting: ['closed', 'ledger', 'postrunStarted', 'postrunFinished'],
  running: ['runFailed', 'closed', 'ledger', 'postrunStarted', 'postrunFinished'],
  'stopping-run': ['runFailed', 'closed', 'ledger', 'postrunStarted', 'postrunFinished'],
  closing: ['closed', 'ledger', 'postrunStarted', 'postrunFinished'],
  sealing: ['ledger', 'postrunStarted', 'postrunFinished'],
  'postrun-queued': ['postrunStarted', 'postrunFinished'],
  postrun: ['postrunFinished'],
}

for (const [phase, rest] of Object.entries(afterCancel) as [keyof typeof afterCancel, readonly Word[]][]) {
  t.test(
    `a cancel in ${phase}: ERROR, no trace trained, every trained id moved to session_error, and a second one changes nothing`,
    t => {
      const once = play([...wayTo[phase], 'cancel', ...rest])
      const twice = play([...wayTo[phase], 'cancel', 'cancel', ...rest.flatMap(w => [w, 'cancel'] as const)])
      t.match(once.result, { status: 'ERROR', error: 'session cancelled', failureClass: null, evaluation: null })
      const tokens = once.result?.trajectory.ledger.tokens
      t.strictSame(tokens?.trained, 0)
      t.strictSame(tokens?.setAside.session_error ?? 0, tokens?.sampled)
      t.strictSame(twice.result, once.result)
      t.ok(twice.of('cancel-stage').length <= once.of('cancel-stage').length)
      t.end()
    },
  )
}

t.test('a cancelled session keeps under their own reasons the calls that were set aside by themselves', t => {
  const built = trajectory()
  const [trace] = built.traces
  const setAside = { aborted: 3, side_call: 4, session_timeout: 5 }
  const outcome = postrunOutcome({
    trajectory: {
      ...built,
      ledger: {
        ...built.ledger,
        tokens: { sampled: built.ledger.tokens.trained + 12, trained: built.ledger.tokens.trained, setAside },
      },
    },
  })
  const { result } = play([...wayTo.postrun, 'cancel', { ...say.postrunFinished, outcome }])
  const tokens = result?.trajectory.ledger.tokens
  t.strictSame(tokens?.setAside, { aborted: 3, side_call: 4, session_error: built.ledger.tokens.trained + 5 })
  t.match(result?.trajectory.traces, [{ reward: null, metadata: { training_filter: { reason: 'session_error' } } }])
  t.strictSame(result?.trajectory.traces[0]?.discardedLossMask, trace?.lossMask)
  t.end()
})

t.test('a slot that is granted to a session that has left READY is given back', t => {
  t.strictSame(play([...wayTo.ready, 'cancel', 'slot']).last, [{ type: 'release-run-slot' }])
  t.end()
})

t.test('stages that never answer do not keep a session for ever', t => {
  t.equal(play([...wayTo['stopping-init'], 'stopDeadline']).state.phase, 'ended')
  t.equal(play([...wayTo['stopping-run'], 'stopDeadline']).state.phase, 'closing')
  const hung = play([...wayTo.postrun, 'postrunDeadline', 'stopDeadline'])
  t.match(hung.result, { status: 'ERROR', failureClass: 'infrastructure', error: /did not stop/ })
  t.strictSame(hung.of('cancel-stage'), [{ type: 'cancel-stage', stage: 'postrun' }])
  t.end()
})

t.test('every message is taken in every phase, and after the end nothing changes', t => {
  for (const phase of Object.keys(wayTo) as Phase[]) {
    const before = play(wayTo[phase])
    t.equal(before.state.phase, phase, `the way to ${phase}`)
    for (const word of Object.keys(say) as Word[]) {
      const { state, last } = sessionStep(before.state, word)
      t.ok(state.phase !== 'ended' || state.result !== null, `${word} in ${phase}`)
      if (phase !== 'ended') continue
      t.equal(state, before.state, `${word} changes nothing after the end`)
      t.ok(word === 'described' || last.length === 0, `${word} does nothing after the end`)
    }
  }
  t.end()
})

function sessionStep(from: SessionState, word: Word) {
  const step = sessionMachine(from.setup).step(from, say[word])
  return { state: step.state, last: step.effects }
}

t.test('any sequence of messages: one end at most, and sampled = trained + set aside', t => {
  const words = fc.array(fc.constantFrom(...(Object.keys(say) as Word[])), { maxLength: 40 })
  const phases = fc.constantFrom(...(Object.keys(wayTo) as Phase[]))
  let ends = 0
  const check = fc.property(phases, words, (phase, more) => {
    const { state, of, result } = play([...wayTo[phase], ...more])
    if (of('report-end').length !== (state.phase === 'ended' ? 1 : 0)) return false
    if (
      of('request-init').length > 1 ||
      of('start-run').length > 1 ||
      of('request-postrun').length > (state.isRebuilt ? 2 : 1)
    )
      return false
    if (result === null) return !isTerminal(state.status)
    ends += 1
    const { sampled, trained, setAside } = result.trajectory.ledger.tokens
    const aside = Object.values(setAside).reduce((sum, count) => sum + count, 0)
    return sampled === trained + aside && (result.status === 'COMPLETED' || result.error !== null)
  })
  t.doesNotThrow(() => fc.assert(check, { numRuns: 2000, seed: 7 }))
  t.ok(ends > 100)
  t.end()
})

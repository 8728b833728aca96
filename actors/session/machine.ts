// Life of one session as data: REGISTERED -> INITIALIZING -> READY -> RUNNING -> POST_RUN -> BUILDING -> EVALUATING -> end.
// Pure. The scope is the phase, so a deadline dies with the phase that armed it. Every path out of a phase that made
// something leads through POSTRUN, which tears it down; after `ended` nothing changes.
// Budgets: the session's starts at INIT and does not run while the session waits in READY; the agent's starts at RUN. Neither runs
// while a call of the session waits at a pause.

import type { SessionLedger } from '../../src/domain/completion.js'
import type { SessionResult, SessionStatus } from '../../src/domain/session.js'
import { unreachable } from '../../src/domain/unreachable.js'
import type { Machine, Step } from '../system/machine.js'
import { extension, holdAt, releaseAt } from './held.js'
import { crashedResult, finalResult, resultWithoutPostrun } from './result.js'
import {
  initialState,
  type SessionEffect,
  type SessionInput,
  type SessionSetup,
  type SessionState,
  type Verdict,
} from './state.js'
import {
  deservesReward,
  emptyLedger,
  gatewayRestarted,
  lostRuntime,
  notStopped,
  recordsLost,
  runVerdict,
  stageFailure,
  timeoutAgentResult,
  upstreamFailures,
  withoutAgent,
} from './verdict.js'

type SessionStep = Step<SessionState, SessionEffect>
type Input<T extends SessionInput['type']> = Extract<SessionInput, { readonly type: T }>

export function sessionMachine(setup: SessionSetup): Machine<SessionState, SessionInput, SessionEffect> {
  return {
    initial: setup.isOrphan
      ? enter({ ...initialState(setup), status: 'POST_RUN', verdict: gatewayRestarted }, 'sealing', {
          type: 'recover-ledger',
        })
      : {
          state: initialState(setup),
          effects: [{ type: 'announce' }, { type: 'open-ledger' }, register(initialState(setup), 'registered')],
        },
    step,
    scope: state => state.phase,
    done: state => state.phase === 'ended',
  }
}

function step(before: SessionState, message: SessionInput): SessionStep {
  if (message.type === 'session-described') return describe(before, message)
  if (before.phase === 'ended') return stay(before)
  const state = 'atMs' in message ? { ...before, times: { ...before.times, latest: message.atMs } } : before
  switch (message.type) {
    case 'cancel-session':
      return state.cancelled ? stay(state) : stopNow({ ...state, cancelled: true, cancelReason: message.reason })
    case 'stop-session':
      return state.cancelled || state.verdict !== null ? stay(state) : stopNow(failed(state, gatewayRestarted))
    case 'proxy-registered':
      return registered(state, message)
    case 'proxy-unreachable':
      return proxyUnreachable(state, message)
    case 'init-started':
      return initStarted(state, message)
    case 'init-finished':
      return initFinished(state, message)
    case 'run-slot-granted':
      return runSlotGranted(state, message)
    case 'run-progress':
      return stay({ ...state, runStage: message.stage })
    case 'process-started':
      return stay({ ...state, process: { pid: message.pid, startTime: message.startTime } })
    case 'run-finished':
      return runFinished(state, message)
    case 'run-crashed':
      return isRunning(state) || state.phase === 'ready' || state.phase === 'starting'
        ? closing(failed(ranAt(state, message.atMs), stageFailure('agent execution failed', message.error)))
        : stay(state)
    case 'proxy-closed':
      return state.phase === 'closing' ? enter(state, 'sealing', { type: 'seal-ledger' }) : stay(state)
    case 'ledger-received':
      return state.phase === 'sealing' ? requestPostrun(state, message.ledger) : stay(state)
    case 'ledger-lost':
      return ledgerLost(state, message)
    case 'postrun-started':
      return postrunStarted(state, message)
    case 'postrun-progress':
      return postrunProgress(state, message)
    case 'postrun-finished':
      return isPostrun(state) ? end(state, finalResult(state, message.outcome)) : stay(state)
    case 'postrun-crashed':
      return isPostrun(state) ? postrunCrashed(state, message) : stay(state)
    case 'call-started':
      return stay({ ...state, nextSequence: Math.max(state.nextSequence, message.sequence + 1) })
    case 'completion-recorded':
      return completionRecorded(state, message)
    case 'limit-reached':
      return state.phase === 'running' ? stopRun({ ...state, truncated: message.limit }) : stay(state)
    case 'calls-held':
      return stay({ ...state, held: holdAt(state.held, message.atMs) })
    case 'calls-released':
      return stay({ ...state, held: releaseAt(state.held, message.atMs) })
    case 'pair-restarted':
      return message.part === 'proxy' ? proxyRestarted(state) : mergeRestarted(state)
    case 'deadline-passed':
      return deadlinePassed(state, message)
    case 'effect-failed':
      return stay(state)
    default:
      return unreachable(message)
  }
}

// Steps by phase, in the order of a session's life.

function registered(state: SessionState, { gatewayUrl, atMs }: Input<'proxy-registered'>): SessionStep {
  const next = { ...state, gatewayUrl }
  if (state.phase === 'registering') {
    return enter(next, 'queued', { type: 'request-init', timeoutMs: sessionBudgetMs(state) })
  }
  if (state.phase !== 'starting') return stay(next)
  if (state.runtime === null) return closing(failed(next, lostRuntime), { type: 'release-run-slot' })
  const { times } = state
  const initMs = Math.max(0, (times.initFinished ?? atMs) - (times.initStarted ?? atMs))
  const waitedMs = Math.max(0, atMs - (times.runStarted ?? atMs))
  const session = Math.max(1, sessionBudgetMs(state) - initMs - waitedMs)
  const agentSeconds = state.setup.spec.agentTimeoutSeconds
  const agent = agentSeconds === null ? null : Math.max(1, agentSeconds * 1000 - waitedMs)
  // A tie counts as the session's (contract 5.2).
  const deadline =
    agent !== null && agent < session
      ? ({ type: 'arm-deadline', deadline: 'agent', afterMs: agent } as const)
      : ({ type: 'arm-deadline', deadline: 'session', afterMs: session } as const)
  return enter(
    next,
    'running',
    {
      type: 'start-run',
      runtime: state.runtime,
      harnessInstallDir: state.harnessInstallDir,
      gatewayUrl,
      sessionBudgetMs: session,
      agentBudgetMs: agent,
    },
    deadline,
  )
}

function proxyUnreachable(state: SessionState, { error }: Input<'proxy-unreachable'>): SessionStep {
  const next = failed(state, { kind: 'error', error: `proxy: ${error.message}`, failureClass: 'infrastructure' })
  if (state.phase === 'registering') return end(next, resultWithoutPostrun(next))
  if (state.phase === 'starting') return closing(next, { type: 'release-run-slot' })
  return state.phase === 'running' ? stopRun(next) : stay(state)
}

function initStarted(state: SessionState, { atMs }: Input<'init-started'>): SessionStep {
  const next = { ...state, times: { ...state.times, initStarted: atMs } }
  if (state.phase !== 'queued') return stay(state.phase === 'stopping-init' ? next : state)
  return enter(withStatus(next, 'INITIALIZING'), 'initializing', ...reported('INITIALIZING'), {
    type: 'arm-deadline',
    deadline: 'init',
    afterMs: sessionBudgetMs(state),
  })
}

function initFinished(state: SessionState, message: Input<'init-finished'>): SessionStep {
  if (state.phase !== 'queued' && state.phase !== 'initializing' && state.phase !== 'stopping-init') return stay(state)
  const { runtime, harnessInstallDir, error, timedOut, atMs } = message
  let next: SessionState = {
    ...state,
    runtime,
    harnessInstallDir,
    times: { ...state.times, initFinished: atMs },
    taskTiming: { ...state.taskTiming, ...message.timing },
  }
  if (timedOut) next = failed(next, { kind: 'timeout', source: 'session', stage: 'init' })
  else if (error) next = failed(next, stageFailure('runtime initialization failed', error))
  if (!next.cancelled && next.verdict === null && runtime === null) next = failed(next, lostRuntime)
  if (next.cancelled || next.verdict !== null) return afterInit(next)
  return enter(withStatus(next, 'READY'), 'ready', ...reported('READY'))
}

/** INIT ended badly or in a cancel: no call was made, so the ledger is empty; what was made is torn down by POSTRUN. */
const afterInit = (state: SessionState): SessionStep => {
  const next = { ...state, agentResult: withoutAgent(state) }
  return state.runtime === null
    ? end(next, resultWithoutPostrun(next))
    : requestPostrun(next, emptyLedger(state.setup.spec.sessionId))
}

function runSlotGranted(state: SessionState, { atMs }: Input<'run-slot-granted'>): SessionStep {
  if (state.phase === 'ready') {
    return enter(
      withStatus({ ...state, times: { ...state.times, runStarted: atMs } }, 'RUNNING'),
      'starting',
      ...reported('RUNNING'),
      register(state, 'running'),
    )
  }
  const owner = state.phase === 'starting' || isRunning(state)
  return owner ? stay(state) : stay(state, { type: 'release-run-slot' })
}

function runFinished(state: SessionState, message: Input<'run-finished'>): SessionStep {
  if (!isRunning(state)) return stay(state)
  const next = {
    ...ranAt(state, message.atMs),
    agentResult: message.result,
    taskTiming: { ...state.taskTiming, ...message.timing },
  }
  const { verdict } = state
  if (verdict?.kind === 'timeout') {
    return closing({ ...next, agentResult: timeoutAgentResult(message.result, verdict) })
  }
  if (state.cancelled || verdict !== null || state.truncated !== null) return closing(next)
  const after = runVerdict(message.result)
  return closing(after === null ? next : failed(next, after))
}

function ledgerLost(state: SessionState, { error }: Input<'ledger-lost'>): SessionStep {
  if (state.phase !== 'sealing') return stay(state)
  // The next merge thread has it from the store: `pair-restarted` follows, and the seal is asked for again.
  if (error?.code === 'ACTOR_DEAD') return stay(state)
  const empty = emptyLedger(state.setup.spec.sessionId)
  if (error === null && state.nextSequence === 0) return requestPostrun(state, empty)
  return requestPostrun(failed(withLoss(state), recordsLost), empty)
}

function requestPostrun(before: SessionState, ledger: SessionLedger): SessionStep {
  const upstream = upstreamFailures(ledger)
  const agentResult = before.agentResult ?? withoutAgent(before)
  // Blamed on the harness, but its last event was a failure of the inference server.
  const blame = before.verdict?.kind === 'error' && before.verdict.failureClass === 'harness' && upstream.endedOnFailure
  const verdict: Verdict | null =
    blame && before.verdict?.kind === 'error' ? { ...before.verdict, failureClass: 'infrastructure' } : before.verdict
  const state = { ...before, upstream, agentResult, verdict }
  const { spec, sessionDir } = state.setup
  // A status never goes back.
  const status = state.isRebuilt ? state.status : 'POST_RUN'
  return enter(withStatus(state, status), 'postrun-queued', ...changed(state, status), {
    type: 'request-postrun',
    job: {
      spec,
      sessionDir,
      runtime: state.runtime,
      agentResult,
      ledger,
      sessionError: verdict?.kind === 'error' ? verdict.error : null,
      timedOut: verdict?.kind === 'timeout',
      cancelled: state.cancelled,
      truncated: state.truncated,
      evaluate: mayEvaluate(state),
    },
  })
}

const mayEvaluate = (state: SessionState): boolean =>
  state.setup.spec.evaluator !== null &&
  !state.cancelled &&
  state.lost === null &&
  state.agentResult !== null &&
  deservesReward(state.verdict)

function postrunStarted(state: SessionState, { atMs }: Input<'postrun-started'>): SessionStep {
  if (state.phase !== 'postrun-queued') return stay(state)
  const { buildMs, evaluateMs, teardownMs } = state.setup.budgets
  return enter({ ...state, times: { ...state.times, postrunStarted: atMs } }, 'postrun', {
    type: 'arm-deadline',
    deadline: 'postrun',
    // The task keeps each budget itself; this is for a task that hangs.
    afterMs: buildMs + evaluateMs + teardownMs + state.setup.stopMs,
  })
}

function postrunProgress(state: SessionState, { stage }: Input<'postrun-progress'>): SessionStep {
  if (state.phase !== 'postrun' || stage === 'teardown') return stay(state)
  const status = stage === 'build' ? 'BUILDING' : 'EVALUATING'
  return stay(withStatus(state, status), ...changed(state, status))
}

/** The ledger went with the thread, and is in the store: another thread builds it, once. The runtime is gone, so nothing is graded. */
function postrunCrashed(state: SessionState, { crash }: Input<'postrun-crashed'>): SessionStep {
  if (state.isRebuilt || state.postrunStopping || state.cancelled) return end(state, crashedResult(state, crash))
  const next: SessionState = {
    ...state,
    isRebuilt: true,
    runtime: null,
    teardown: crash.teardown,
    verdict: { kind: 'error', error: `post-run failed: ${crash.error.message}`, failureClass: 'infrastructure' },
  }
  return enter(next, 'sealing', { type: 'recover-ledger' })
}

// Facts and commands that may come in any phase.

/** A cancel, or the end of the service: the shortest way from each phase to the end. */
function stopNow(state: SessionState): SessionStep {
  switch (state.phase) {
    case 'registering':
      return end(state, resultWithoutPostrun(state))
    case 'queued':
    case 'initializing':
      return stopInit(state)
    case 'ready':
      return closing(state, { type: 'cancel-stage', stage: 'ready' })
    case 'starting':
      return closing(state, { type: 'release-run-slot' })
    case 'running':
      return stopRun(state)
    case 'postrun-queued':
    case 'postrun':
      return stopPostrun(state)
    case 'stopping-init':
    case 'stopping-run':
    case 'closing':
    case 'sealing':
    case 'ended':
      return stay(state)
    default:
      return unreachable(state.phase)
  }
}

function completionRecorded(state: SessionState, message: Input<'completion-recorded'>): SessionStep {
  const calls = Math.max(state.calls, message.calls)
  const sampledTokens = Math.max(state.sampledTokens, message.sampledTokens)
  if (calls === state.calls && sampledTokens === state.sampledTokens) return stay(state)
  const next: SessionState = {
    ...state,
    calls,
    sampledTokens,
    turns: Math.max(state.turns, message.turns),
    promptTokens: Math.max(state.promptTokens, message.promptTokens),
    nextSequence: Math.max(state.nextSequence, calls),
  }
  return stay(next, { type: 'report-progress', calls, sampledTokens })
}

function proxyRestarted(state: SessionState): SessionStep {
  // What waited there waits no more; those that come again are told anew.
  const next = { ...state, held: releaseAt(state.held, state.times.latest) }
  const known = ['queued', 'initializing', 'ready', 'starting', 'running'].includes(state.phase)
  if (!known) return stay(next)
  const registerAs = state.phase === 'starting' || state.phase === 'running' ? 'running' : 'registered'
  return stay(next, register(next, registerAs))
}

function mergeRestarted(state: SessionState): SessionStep {
  if (state.phase === 'sealing') return stay(state, { type: 'seal-ledger' })
  if (state.phase === 'postrun-queued' || state.phase === 'postrun') return stay(state)
  // What was recorded is in the store: the thread reads it back, and the session goes on.
  return stay(state, { type: 'open-ledger' })
}

function deadlinePassed(state: SessionState, { deadline, atMs }: Input<'deadline-passed'>): SessionStep {
  const { phase } = state
  if (deadline === 'init' && phase === 'initializing') {
    return stopInit(failed(state, { kind: 'timeout', source: 'session', stage: 'init' }))
  }
  if ((deadline === 'session' || deadline === 'agent') && phase === 'running') {
    const { byMs, held } = extension(state.held, atMs)
    if (byMs > 0) return stay({ ...state, held }, { type: 'arm-deadline', deadline, afterMs: byMs })
    return stopRun(failed(state, { kind: 'timeout', source: deadline, stage: state.runStage ?? 'setup' }))
  }
  if (deadline === 'postrun' && phase === 'postrun') {
    return stopPostrun(failed({ ...state, postrunStopping: false }, notStopped('POSTRUN')))
  }
  if (deadline !== 'stop') return stay(state)
  if (phase === 'stopping-init') return afterInit(failed(state, notStopped('INIT')))
  if (phase === 'stopping-run') return closing(failed(ranAt(state, state.times.latest), notStopped('RUNNING')))
  if (phase !== 'postrun') return stay(state)
  const error = { code: 'ACTOR_ASK_TIMEOUT', message: 'the POSTRUN task did not stop' } as const
  return end(state, crashedResult(state, { error, teardown: null }))
}

const describe = (state: SessionState, { replyTo }: Input<'session-described'>): SessionStep =>
  stay(state, {
    type: 'describe',
    replyTo,
    description: {
      type: 'session-description',
      sessionId: state.setup.spec.sessionId,
      status: state.status,
      calls: state.calls,
      sampledTokens: state.sampledTokens,
    },
  })

// Ways out of a phase.

const stopInit = (state: SessionState): SessionStep =>
  enter(state, 'stopping-init', { type: 'cancel-stage', stage: 'init' }, stopDeadline(state))

const stopRun = (state: SessionState): SessionStep =>
  enter(state, 'stopping-run', { type: 'cancel-stage', stage: 'running' }, stopDeadline(state))

const stopPostrun = (state: SessionState): SessionStep =>
  state.postrunStopping
    ? stay(state)
    : stay({ ...state, postrunStopping: true }, { type: 'cancel-stage', stage: 'postrun' }, stopDeadline(state))

const closing = (state: SessionState, ...before: readonly SessionEffect[]): SessionStep =>
  enter(withStatus(state, 'POST_RUN'), 'closing', ...before, ...changed(state, 'POST_RUN'), { type: 'close-proxy' })

const end = (state: SessionState, result: SessionResult): SessionStep =>
  enter({ ...state, status: result.status, result }, 'ended', ...reported(result.status), {
    type: 'report-end',
    result,
  })

// Small words.

const stay = (state: SessionState, ...effects: readonly SessionEffect[]): SessionStep => ({ state, effects })
const enter = (
  state: SessionState,
  phase: SessionState['phase'],
  ...effects: readonly SessionEffect[]
): SessionStep => ({ state: { ...state, phase }, effects })
const register = (state: SessionState, as: 'registered' | 'running'): SessionEffect => ({
  type: 'register-at-proxy',
  state: as,
  firstSequence: state.nextSequence,
  used: { turns: state.turns, promptTokens: state.promptTokens, sampledTokens: state.sampledTokens },
})
const withStatus = (state: SessionState, status: SessionStatus): SessionState => ({ ...state, status })
const reported = (status: SessionStatus): readonly SessionEffect[] => [{ type: 'report-status', status }]
const changed = (state: SessionState, status: SessionStatus): readonly SessionEffect[] =>
  state.status === status ? [] : reported(status)
const failed = (state: SessionState, verdict: Verdict): SessionState =>
  state.verdict === null ? { ...state, verdict } : state
const ranAt = (state: SessionState, atMs: number): SessionState => ({
  ...state,
  times: { ...state.times, runFinished: atMs },
})
const withLoss = (state: SessionState): SessionState => ({
  ...state,
  lost: state.lost ?? { calls: state.calls, sampledTokens: state.sampledTokens },
})
const isRunning = (state: SessionState): boolean => state.phase === 'running' || state.phase === 'stopping-run'
const isPostrun = (state: SessionState): boolean => state.phase === 'postrun-queued' || state.phase === 'postrun'
const sessionBudgetMs = (state: SessionState): number => state.setup.spec.timeoutSeconds * 1000
const stopDeadline = (state: SessionState): SessionEffect => ({
  type: 'arm-deadline',
  deadline: 'stop',
  afterMs: state.setup.stopMs,
})

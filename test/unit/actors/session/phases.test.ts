// The session machine in virtual time: deadlines, scopes, budgets. One letter per message in the script, one per status out:
// see `letters` and `letterOf`. Stages answers a cancel at once, as it does when the task listens.

import { defer, distinctUntilChanged, EMPTY, map, of } from 'rxjs'
import { TestScheduler } from 'rxjs/testing'
import t, { type Test } from 'tap'
import { sessionMachine } from '../../../../actors/session/machine.js'
import type { SessionEffect, SessionInput } from '../../../../actors/session/state.js'
import type { ActorClock } from '../../../../actors/system/behavior.js'
import { schedulerClock } from '../../../../actors/system/clock.js'
import type { Interpreter } from '../../../../actors/system/machine.js'
import { runMachine } from '../../../../actors/system/run-machine.js'
import type { SessionStatus } from '../../../../src/domain/session.js'
import {
  agentResult,
  postrunOutcome,
  runtimeHandle,
  sessionId,
  sessionSetup,
  sessionSpec,
} from '../../../support/session-fixtures.js'

const letterOf: Record<SessionStatus, string> = {
  REGISTERED: 'I',
  INITIALIZING: 'N',
  READY: 'Y',
  RUNNING: 'R',
  POST_RUN: 'P',
  BUILDING: 'V',
  EVALUATING: 'E',
  COMPLETED: 'C',
  ERROR: 'X',
  TIMEOUT: 'T',
}

const initFinished = {
  type: 'init-finished',
  runtime: runtimeHandle,
  harnessInstallDir: null,
  timing: {},
  error: null,
  timedOut: false,
} as const
/** Facts carry the frame they come in. */
const stamped = (message: SessionInput, atMs: number): SessionInput =>
  'atMs' in message ? { ...message, atMs } : message

const letters: Record<string, SessionInput> = {
  a: { type: 'proxy-registered', gatewayUrl: 'http://127.0.0.1:1', atMs: 0 },
  i: { type: 'init-started', atMs: 0 },
  y: { ...initFinished, atMs: 0 },
  g: { type: 'run-slot-granted', atMs: 0 },
  x: { type: 'run-finished', result: agentResult(), timing: {}, atMs: 0 },
  p: { type: 'postrun-started', atMs: 0 },
  b: { type: 'postrun-progress', stage: 'build' },
  e: { type: 'postrun-progress', stage: 'evaluate' },
  d: { type: 'postrun-finished', outcome: postrunOutcome(), atMs: 0 },
  c: { type: 'cancel-session', reason: 'test' },
  l: { type: 'limit-reached', limit: 'max_turns' },
  h: { type: 'calls-held', atMs: 0 },
  r: { type: 'calls-released', atMs: 0 },
  q: { type: 'pair-restarted', part: 'proxy' },
}

/** The world answers at once; only deadlines take time. `deaf` = stages never answers a cancel. */
const world =
  (deaf: boolean) =>
  (clock: ActorClock): Interpreter<SessionInput, SessionEffect> =>
  effect => {
    const atMs = clock.now()
    switch (effect.type) {
      case 'arm-deadline':
        return clock
          .timer$(effect.afterMs)
          .pipe(map((): SessionInput => ({ type: 'deadline-passed', deadline: effect.deadline, atMs: clock.now() })))
      case 'register-at-proxy':
        if (effect.state === 'registered') return EMPTY
        return of<SessionInput>({ type: 'proxy-registered', gatewayUrl: 'http://127.0.0.1:1', atMs })
      case 'close-proxy':
        return of<SessionInput>({ type: 'proxy-closed', error: null, atMs })
      case 'seal-ledger':
        return of<SessionInput>({
          type: 'ledger-received',
          ledger: { sessionId: sessionId('s-1'), calls: [], failed: [] },
          atMs,
        })
      case 'cancel-stage':
        if (deaf) return EMPTY
        return defer(() => answerOf(effect.stage, atMs))
      default:
        return EMPTY
    }
  }

function answerOf(stage: 'init' | 'ready' | 'running' | 'postrun', atMs: number) {
  switch (stage) {
    case 'init':
      return of<SessionInput>({
        ...initFinished,
        runtime: null,
        error: { code: 'RUNTIME_FAILED', message: 'cancelled' },
        atMs,
      })
    case 'running':
      return of<SessionInput>({ type: 'run-finished', result: agentResult({ status: 'failed' }), timing: {}, atMs })
    case 'postrun':
      return of<SessionInput>({ type: 'postrun-finished', outcome: postrunOutcome(), atMs })
    case 'ready':
      return EMPTY
  }
}

/**
 * Runs a session of 30 ms with the script's messages and compares the statuses it goes through: a letter at each change. The
 * machine ends by itself, so `(C|)` is its last frame. A group in brackets takes the frames of its characters.
 */
function phases(
  t: Test,
  script: string,
  expected: string,
  { deaf = false, agentMs = null }: { deaf?: boolean; agentMs?: number | null } = {},
): void {
  const spec = sessionSpec({ timeoutSeconds: 0.03, agentTimeoutSeconds: agentMs === null ? null : agentMs / 1000 })
  const scheduler = new TestScheduler((actual, wanted) => {
    t.strictSame(actual, wanted)
  })
  scheduler.run(({ hot, expectObservable }) => {
    const steps$ = runMachine(
      sessionMachine(sessionSetup({ spec })),
      hot(script, letters).pipe(map(message => stamped(message, scheduler.now()))),
      world(deaf)(schedulerClock(scheduler)),
      (effect, cause) => {
        throw new Error(`${effect.type}: ${String(cause)}`)
      },
    )
    const statuses$ = steps$.pipe(
      map(({ state }) => letterOf[state.status]),
      distinctUntilChanged(),
    )
    expectObservable(statuses$).toBe(expected)
  })
  t.end()
}

t.test('happy path', t => phases(t, '-a-i-y-g-x-p-b-e-d', '-I-N-Y-R-P---V-E-(C|)'))
t.test('an INIT that does not end is stopped at its deadline', t => phases(t, '-a-i', '-I-N 29ms (T|)'))
t.test('an INIT deadline dies with INIT', t => phases(t, '-a-i-y 200ms g', '-I-N-Y 200ms R 27ms P'))
t.test('waiting in READY spends no budget', t => phases(t, '-a-i-y 500ms g-x', '-I-N-Y 500ms R-P'))
t.test('what INIT used is taken from the run', t => phases(t, '-a-i-y-g', '-I-N-Y-R 27ms P'))
t.test('the agent’s budget starts at RUN', t => phases(t, '-a-i-y 500ms g', '-I-N-Y 500ms R 19ms P', { agentMs: 20 }))
t.test('capture-8: time that a call waits at a pause is not taken from the budget', t =>
  phases(t, '-a-i-y-g-h 99ms r', '-I-N-Y-R 127ms P'),
)
t.test('capture-8: waits before the deadline add up, and the agent’s budget stands still as well', t =>
  phases(t, '-a-i-y 500ms g-h 4ms r-h 4ms r', '-I-N-Y 500ms R 29ms P', { agentMs: 20 }),
)
t.test('a wait whose proxy was restarted does not stop the budget for ever', t =>
  phases(t, '-a-i-y-g-hq', '-I-N-Y-R 27ms P'),
)
t.test('a run deadline dies with the run', t => phases(t, '-a-i-y-g-x 400ms p', '-I-N-Y-R-P 590ms (X|)'))
t.test('a task that hangs in POSTRUN is stopped after its budgets', t =>
  phases(t, '-a-i-y-g-x-p', '-I-N-Y-R-P 191ms (X|)'),
)
t.test('a limit stops the run', t => phases(t, '-a-i-y-g-l', '-I-N-Y-R-P'))

t.test('a cancel in REGISTERED ends at once', t => phases(t, '-c', '-(X|)'))
t.test('a cancel while queued for INIT ends at once', t => phases(t, '-a-c', '-I-(X|)'))
t.test('a cancel in INITIALIZING ends when the task has stopped', t => phases(t, '-a-i-c', '-I-N-(X|)'))
t.test('a cancel in READY goes to POSTRUN at once', t => phases(t, '-a-i-y-c-p-d', '-I-N-Y-P---(X|)'))
t.test('a cancel in RUNNING goes to POSTRUN when the run has stopped', t =>
  phases(t, '-a-i-y-g-c-p-d', '-I-N-Y-R-P---(X|)'),
)
t.test('a cancel in POST_RUN ends when the task has stopped', t => phases(t, '-a-i-y-g-x-p-c', '-I-N-Y-R-P---(X|)'))
t.test('a cancel in EVALUATING ends when the task has stopped', t =>
  phases(t, '-a-i-y-g-x-p-e-c', '-I-N-Y-R-P---E-(X|)'),
)
t.test('a cancel that comes with the end of the evaluation wins', t =>
  phases(t, '-a-i-y-g-x-p-e-(cd)', '-I-N-Y-R-P---E-(X|)'),
)

t.test('stages that never stop INIT keep no session', t => phases(t, '-a-i-c', '-I-N- 10ms (X|)', { deaf: true }))
t.test('a run that never stops is left behind after its grace', t =>
  phases(t, '-a-i-y-g-c', '-I-N-Y-R- 10ms P', { deaf: true }),
)

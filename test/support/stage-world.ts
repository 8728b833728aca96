// The stages actor with its real pools, and session actors, on real time; proxy and merge are stand-ins that answer at once:
// every session's ledger holds two calls with ids. What rollout would be told is recorded per session.

import { join } from 'node:path'
import type { Test } from 'tap'
import type { PoolName } from '../../actors/pools/stage-pools.js'
import { openStagePools } from '../../actors/pools/stage-pools.js'
import { runtimeDepsOf } from '../../actors/pools/task.js'
import type { MergeMessage } from '../../actors/protocol/merge.js'
import type { ProxyMessage } from '../../actors/protocol/proxy.js'
import type { SessionMessage, SessionReport } from '../../actors/protocol/session.js'
import type { StagesDescription, StagesMessage, StagesReport } from '../../actors/protocol/stages.js'
import { sessionProps } from '../../actors/session/actor.js'
import { stagesLimitsOf, stagesProps } from '../../actors/stages/actor.js'
import { realClock } from '../../actors/system/clock.js'
import type { ActorRef } from '../../actors/system/ref.js'
import type { StopReport } from '../../actors/system/system.js'
import type { Plan } from '../../src/config/plan.js'
import type { SessionLedger } from '../../src/domain/completion.js'
import type { CompletionId } from '../../src/domain/ids.js'
import type { SessionResult, SessionSpec } from '../../src/domain/session.js'
import { findProcesses, SESSION_MARKER } from '../../src/runtimes/processes.js'
import { scratchFolder } from './local-runtime.js'
import { testPlan } from './plan.js'
import { completionRecord } from './records.js'
import { recordingRef, sessionId, sessionSetup, sessionSpec } from './session-fixtures.js'
import { createRealTimeSystem } from './test-system.js'

export interface StageWorld {
  readonly plan: Plan
  readonly stages: ActorRef<StagesMessage>
  /** Starts a session that runs `command` in a shell. */
  start(name: string, command: string, over?: Partial<SessionSpec>): ActorRef<SessionMessage>
  /** The result, as soon as there is one. */
  result(name: string): Promise<SessionResult>
  /** Resolves when the session has told rollout this status. */
  reached(name: string, status: string): Promise<void>
  /** Resolves when the run of the session has started a process. */
  describe(): Promise<StagesDescription>
  /** Living processes with the session's marker. */
  processesOf(name: string): Promise<number>
  sessionDir(name: string): string
  readonly proxyTold: readonly ProxyMessage[]
  /** Stops sessions, then stages, as the service does. */
  stop(): Promise<StopReport>
}

export interface WorldOptions {
  readonly plan?: Partial<Plan>
  readonly taskFiles?: Partial<Readonly<Record<PoolName, string>>>
  readonly stopMs?: number
}

export function stageWorld(t: Test, options: WorldOptions = {}): StageWorld {
  const plan = testPlan(scratchFolder(t), options.plan)
  const { system } = createRealTimeSystem(t, realClock())
  const reports: SessionReport[] = []
  const waiting = new Set<() => void>()
  const rollout: ActorRef<SessionReport | StagesReport> = {
    address: { system: 'test', path: '/rollout/' },
    tell(message) {
      if (message.type === 'init-slots-free') return
      reports.push(message)
      for (const look of waiting) look()
    },
  }
  const proxyTold: ProxyMessage[] = []
  const stages = system.spawn(
    stagesProps(stagesLimitsOf(plan), 1000, {
      openPools: onIdleDeath =>
        openStagePools({ plan, onIdleDeath, ...(options.taskFiles && { taskFiles: options.taskFiles }) }),
      rollout,
      runtimeDeps: runtimeDepsOf(plan),
      stopMs: options.stopMs ?? 5_000,
    }),
    'stages',
  )

  const until = <T>(find: () => T | undefined): Promise<T> =>
    new Promise(resolve => {
      const look = () => {
        const found = find()
        if (found === undefined) return
        waiting.delete(look)
        resolve(found)
      }
      waiting.add(look)
      look()
    })
  const sessionDir = (name: string) => join(plan.stateDir, 'sessions', name)

  return {
    plan,
    stages,
    proxyTold,
    sessionDir,
    stop: () => system.stop(30_000),
    start(name, command, over = {}) {
      const spec = sessionSpec({ sessionId: sessionId(name), ...over })
      const agent = { ...spec.agent, custom_shell: { command } }
      return system.spawn(
        sessionProps({
          shardLedger: null,
          setup: sessionSetup({
            spec: { ...spec, agent },
            sessionDir: sessionDir(name),
            createdAtMs: Date.now(),
            budgets: plan.budgets,
            stopMs: 20_000,
          }),
          attempt: 1,
          sideCalls: [],
          rollout,
          stages,
          proxy: proxyStandIn(proxyTold),
          merge: mergeStandIn(),
          reaper: recordingRef('/reaper/'),
        }),
        name,
      )
    },
    result: name =>
      until(() => {
        const end = reports.find(report => report.type === 'session-ended' && report.sessionId === name)
        return end?.type === 'session-ended' ? end.result : undefined
      }),
    async reached(name, status) {
      await until(() =>
        reports.find(
          report => report.type === 'session-status-changed' && report.sessionId === name && report.status === status,
        ),
      )
    },
    describe: () => system.ask(stages, { type: 'stages-described' }, 5_000),
    async processesOf(name) {
      return (await findProcesses({ markers: { [SESSION_MARKER]: name }, folder: sessionDir(name) }))?.length ?? 0
    },
  }
}

function proxyStandIn(told: ProxyMessage[]): ActorRef<ProxyMessage> {
  return {
    address: { system: 'proxy-1', path: '/proxy/' },
    tell(message) {
      told.push(message)
      if (message.type === 'session-put') {
        message.replyTo.tell({ type: 'session-put-done', gatewayUrl: 'http://127.0.0.1:9' })
      }
      if (message.type === 'session-close-requested') {
        message.replyTo.tell({ type: 'session-closed', calls: 2, aborted: 0 })
      }
    },
  }
}

function mergeStandIn(): ActorRef<MergeMessage> {
  return {
    address: { system: 'merge-1', path: '/merge/' },
    tell(message) {
      if (message.type !== 'ledger-seal-requested') return
      message.replyTo.tell({ type: 'ledger-sealed', ledger: twoCalls(message.sessionId) })
    },
  }
}

/** Two calls, the second of which goes on from the first: six sampled tokens in one trace. */
export function twoCalls(session: string): SessionLedger {
  const first = completionRecord({ sessionId: sessionId(session), completionId: 'msg_1' as CompletionId })
  const second = completionRecord({
    sessionId: sessionId(session),
    completionId: 'msg_2' as CompletionId,
    sequence: 1,
    promptIds: Int32Array.of(1, 2, 3, 10, 11, 99, 20),
    startedAtMs: 3_000,
    finishedAtMs: 4_000,
  })
  return {
    sessionId: sessionId(session),
    calls: [first, second].map(record => ({ record, delivered: 'yes' as const })),
    failed: [],
  }
}

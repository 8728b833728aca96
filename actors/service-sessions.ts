// How rollout starts session actors: which pair serves a session, where its folder is, and who is told when a pair restarts.

import { join } from 'node:path'
import type { Plan } from '../src/config/plan.js'
import type { SessionLedger } from '../src/domain/completion.js'
import type { SessionId } from '../src/domain/ids.js'
import type { SessionSpec } from '../src/domain/session.js'
import type { SideCallRule } from '../src/harnesses/base.js'
import { harnesses, isHarnessId } from '../src/harnesses/registry.js'
import { sealLog } from '../src/ledger/session-log.js'
import { openRecordStore } from '../src/store/record-store.js'
import { restoreSession } from '../src/store/session-entries.js'
import type { MergeMessage } from './protocol/merge.js'
import type { ProxyMessage } from './protocol/proxy.js'
import type { ReaperMessage } from './protocol/reaper.js'
import type { SessionMessage } from './protocol/session.js'
import type { StagesMessage } from './protocol/stages.js'
import type { RolloutDeps } from './rollout/effects.js'
import { sessionProps } from './session/actor.js'
import type { ActorClock } from './system/behavior.js'
import type { ActorRef } from './system/ref.js'
import type { ActorSystem } from './system/system.js'
import { mergeAddress, proxyAddress } from './threads/pair-names.js'

export interface SessionStarterInput {
  readonly plan: Plan
  readonly clock: ActorClock
  readonly sessionsDir: string
  readonly system: Pick<ActorSystem, 'refOf' | 'watch'>
  /** How long a stage may take to stop before the session goes on without its answer. */
  readonly stopMs: number
}

export interface SessionStarter {
  starter(
    stages: ActorRef<StagesMessage>,
    reaper: ActorRef<ReaperMessage>,
  ): Pick<RolloutDeps, 'placeSession' | 'startSession' | 'releaseRecords'>
  /** `names`: the threads of the pair that were started anew. */
  pairRestarted(pair: number, names: readonly string[]): void
}

export function sessionStarter(input: SessionStarterInput): SessionStarter {
  const { plan, clock, sessionsDir, system, stopMs } = input
  const pairs = Array.from({ length: plan.gateway.proxies }, (_, index) => ({
    number: index + 1,
    proxy: system.refOf<ProxyMessage>(proxyAddress(index + 1)),
    merge: system.refOf<MergeMessage>(mergeAddress(index + 1)),
    sessions: new Set<ActorRef<SessionMessage>>(),
    /** Sessions that it serves or is about to. */
    load: 0,
  }))
  type Pair = (typeof pairs)[number]
  /** The pair with the fewest sessions; the first of equals. */
  const leastLoaded = (): Pair => pairs.reduce((best, pair) => (pair.load < best.load ? pair : best))

  return {
    starter: (stages, reaper) => ({
      placeSession() {
        const pair = leastLoaded()
        pair.load += 1
        return pair.number
      },
      releaseRecords(sessionId, number) {
        // The control store keeps ids as text.
        pairs[number - 1]?.merge.tell({ type: 'result-stored', sessionId: sessionId as SessionId })
      },
      startSession(spawn, { spec, pair: number, orphanSinceMs }, rollout) {
        const isOrphan = orphanSinceMs !== null
        // The config may have fewer pairs than before: then nobody owns that one's shard, and it is read as it lies.
        const pair = pairs[number - 1] ?? leastLoaded()
        if (isOrphan) pair.load += 1
        const { proxy, merge } = pair
        const { buildMs, evaluateMs, teardownMs } = plan.budgets
        const session = spawn(
          sessionProps({
            setup: {
              spec,
              sessionDir: join(sessionsDir, spec.sessionId),
              nodeId: plan.nodeId,
              createdAtMs: orphanSinceMs ?? clock.now(),
              isOrphan,
              budgets: { buildMs, evaluateMs, teardownMs },
              // Stages itself stops a task in two rounds of this.
              stopMs: 3 * stopMs,
            },
            attempt: 1,
            shardLedger:
              isOrphan && pairs[number - 1] === undefined ? () => shardLedger(plan, number, spec.sessionId) : null,
            sideCalls: sideCallsOf(spec),
            rollout,
            stages,
            proxy,
            merge,
            reaper,
          }),
          spec.sessionId,
        )
        pair.sessions.add(session)
        system.watch(session, () => {
          pair.sessions.delete(session)
          pair.load -= 1
        })
        return session
      },
    }),
    pairRestarted(number, names) {
      const pair = pairs[number - 1]
      if (pair === undefined) return
      // Merge first: a session whose records are gone must not register anew as if nothing had happened.
      for (const part of ['merge', 'proxy'] as const) {
        if (!names.includes(`${part}-${number}`)) continue
        for (const session of pair.sessions) session.tell({ type: 'pair-restarted', part })
      }
    },
  }
}

function sideCallsOf({ agent }: SessionSpec): readonly SideCallRule[] {
  return agent.harness !== null && isHarnessId(agent.harness) ? harnesses[agent.harness].sideCalls : []
}

/** What the shard of a pair that is not there any more has of a session; null = nothing. */
async function shardLedger(plan: Plan, shard: number, sessionId: SessionId): Promise<SessionLedger | null> {
  if (!plan.store) return null
  const store = await openRecordStore({ ...plan.store, stateDir: plan.stateDir, shard, mode: 'reader' })
  try {
    const restored = restoreSession(store, sessionId)
    return restored && sealLog(restored.log)
  } finally {
    await store.close()
  }
}

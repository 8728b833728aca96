// The reaper actor: keeps the list of live sessions and sweeps. The list outlives a restart of the actor, since a sweep that
// has forgotten who lives would kill them.

import { defer, EMPTY, map, type Observable } from 'rxjs'
import { errorData } from '../../src/domain/errors.js'
import { EVENTS } from '../../src/observability/events.js'
import type { ReaperMessage } from '../protocol/reaper.js'
import type { SessionMessage } from '../protocol/session.js'
import type { ActorContext, ActorProps } from '../system/behavior.js'
import type { Interpreter } from '../system/machine.js'
import type { ActorRef, Address } from '../system/ref.js'
import { type ReaperEffect, type ReaperInput, type ReaperState, reaperMachine } from './machine.js'
import { sweep } from './sweep.js'

export interface ReaperDeps {
  /** `stateDir/sessions`. */
  readonly sessionsDir: string
  /** `retention.artifactsMs` of the plan. */
  readonly artifactsMs: number
  /** Pause between sweeps, milliseconds. */
  readonly everyMs: number
  /** Mailbox, messages: one for each start and end of a session. */
  readonly capacity: number
}

type Live = Map<string, ActorRef<SessionMessage>>

export function reaperProps(deps: ReaperDeps): ActorProps<ReaperMessage, ReaperInput, ReaperState, ReaperEffect> {
  const live: Live = new Map()
  return {
    behavior: () => ({
      machine: reaperMachine(deps.everyMs),
      interpret: context => reaperEffects(deps, live, context),
      onEffectError: (_effect, cause) => ({ type: 'sweep-failed', error: errorData(cause) }),
      terminated: address => ({ type: 'session-terminated', address }),
      summarize: ({ totals, sweeping }) => ({ ...totals, sweeping, live: live.size }),
    }),
    mailbox: { capacity: deps.capacity, overflow: 'refuse' },
    supervision: { restart: 'permanent', strategy: 'one-for-one', intensity: 5, periodMs: 60_000 },
    shutdownMs: 5_000,
  }
}

function reaperEffects(
  deps: ReaperDeps,
  live: Live,
  context: ActorContext<ReaperInput>,
): Interpreter<ReaperInput, ReaperEffect> {
  // After a restart the watches are gone, the sessions are not.
  for (const session of live.values()) context.watch(session)

  const tell = (work: () => void): Observable<never> =>
    defer(() => {
      work()
      return EMPTY
    })

  return effect => {
    switch (effect.type) {
      case 'sweep':
        return defer(() =>
          sweep({
            sessionsDir: deps.sessionsDir,
            isLive: sessionId => live.has(sessionId),
            artifactsMs: deps.artifactsMs,
            clock: context.clock,
          }),
        ).pipe(
          map((report): ReaperInput => {
            const { processes, proven, folders, expired } = report
            const found = processes > 0 || folders > 0 || expired > 0
            if (proven === false) context.log.error(EVENTS.leftoversFail, { processes })
            else if (found) context.log.info(EVENTS.leftoversRemove, { processes, folders, expired })
            return { type: 'sweep-done', report }
          }),
        )
      case 'arm-timer':
        return context.clock.timer$(effect.afterMs).pipe(map((): ReaperInput => ({ type: 'sweep-due' })))
      case 'keep':
        return tell(() => {
          live.set(effect.sessionId, effect.session)
          context.watch(effect.session)
        })
      case 'forget':
        return tell(() => {
          for (const [sessionId, session] of live)
            if (sameAddress(session.address, effect.address)) live.delete(sessionId)
        })
      case 'reply':
        return tell(() => effect.replyTo.tell(effect.report))
    }
  }
}

const sameAddress = (one: Address, other: Address): boolean => one.path === other.path && one.system === other.system

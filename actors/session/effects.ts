// Carries out what the session machine asks for. The session key is made here, lives in this closure, and goes to the RUNNING
// task alone; proxy knows its hash. Every question has a deadline; a thread that is restarting is asked again a few times.

import { createHash, randomBytes } from 'node:crypto'
import { catchError, defer, EMPTY, map, type Observable, of, retry } from 'rxjs'
import type { SessionLedger } from '../../src/domain/completion.js'
import { errorData } from '../../src/domain/errors.js'
import type { SessionKey } from '../../src/domain/ids.js'
import type { SideCallRule } from '../../src/harnesses/base.js'
import { EVENTS } from '../../src/observability/events.js'
import { type FailpointName, failpoint } from '../../src/observability/failpoints.js'
import type { LedgerSealReply, MergeMessage } from '../protocol/merge.js'
import type { ProxyMessage, ProxySession } from '../protocol/proxy.js'
import type { ReaperMessage } from '../protocol/reaper.js'
import type { SessionReport } from '../protocol/session.js'
import type { StagesMessage } from '../protocol/stages.js'
import type { ActorContext } from '../system/behavior.js'
import type { Interpreter } from '../system/machine.js'
import type { ActorRef } from '../system/ref.js'
import type { SessionEffect, SessionInput, SessionSetup } from './state.js'

export interface SessionDeps {
  readonly setup: SessionSetup
  /** Counts dispatches of the session id, from 1. */
  readonly attempt: number
  /** Of the task's harness preset. */
  readonly sideCalls: readonly SideCallRule[]
  readonly rollout: ActorRef<SessionReport>
  readonly stages: ActorRef<StagesMessage>
  /** The pair that serves the session. */
  readonly proxy: ActorRef<ProxyMessage>
  readonly merge: ActorRef<MergeMessage>
  /** Reads the ledger of an orphan whose pair is not there any more; null = its merge actor has it. */
  readonly shardLedger: (() => Promise<SessionLedger | null>) | null
  readonly reaper: ActorRef<ReaperMessage>
}

const PUT_DEADLINE_MS = 5_000
/** A restarted thread is up again within the kernel's back-off; ten seconds are enough to meet it. */
const PUT_RETRIES = 20
const PUT_RETRY_MS = 500
const CLOSE_DEADLINE_MS = 20_000
const SEAL_DEADLINE_MS = 30_000
/** A run is given this much over its budgets. */
const NET_MS = 24 * 60 * 60_000

/** `sk-` and 32 random bytes as 43 base64url characters. */
export const newSessionKey = (): SessionKey => `sk-${randomBytes(32).toString('base64url')}` as SessionKey

/** What proxy stores in place of the key: SHA-256, hex. */
export const keyHashOf = (key: SessionKey): string => createHash('sha256').update(key).digest('hex')

export function sessionEffects(
  deps: SessionDeps,
  context: ActorContext<SessionInput>,
): Interpreter<SessionInput, SessionEffect> {
  const { setup, rollout, stages, proxy, merge } = deps
  const { spec, sessionDir } = setup
  const { sessionId } = spec
  const key = newSessionKey()
  const now = () => context.clock.now()

  type Registration = Extract<SessionEffect, { readonly type: 'register-at-proxy' }>
  const proxySession = ({ state, firstSequence, used }: Registration): ProxySession => ({
    sessionId,
    keyHash: keyHashOf(key),
    attempt: deps.attempt,
    state,
    sampling: spec.sampling,
    samplingSeed: spec.samplingSeed,
    limits: spec.limits,
    models: spec.models,
    sideCalls: deps.sideCalls,
    session: context.self,
    firstSequence,
    used,
  })

  const tell = (send: () => void): Observable<never> =>
    defer(() => {
      send()
      return EMPTY
    })

  const sealed = (isAgain: boolean) =>
    defer(() =>
      context.ask(merge, { type: 'ledger-seal-requested', sessionId, atMs: now(), isAgain }, SEAL_DEADLINE_MS),
    )
  const ledgerOf = (reply$: Observable<LedgerSealReply>, point: FailpointName): Observable<SessionInput> =>
    reply$.pipe(
      map((reply): SessionInput => {
        failpoint(point)
        return reply.type === 'ledger-sealed'
          ? { type: 'ledger-received', ledger: reply.ledger, atMs: now() }
          : { type: 'ledger-lost', error: null, atMs: now() }
      }),
      catchError(cause => of<SessionInput>({ type: 'ledger-lost', error: errorData(cause), atMs: now() })),
    )

  return effect => {
    switch (effect.type) {
      case 'register-at-proxy':
        return defer(() =>
          context.ask(proxy, { type: 'session-put', session: proxySession(effect) }, PUT_DEADLINE_MS),
        ).pipe(
          retry({ count: PUT_RETRIES, delay: () => context.clock.timer$(PUT_RETRY_MS) }),
          map(({ gatewayUrl }): SessionInput => ({ type: 'proxy-registered', gatewayUrl, atMs: now() })),
          catchError(cause => of<SessionInput>({ type: 'proxy-unreachable', error: errorData(cause), atMs: now() })),
        )
      case 'announce':
        return tell(() => deps.reaper.tell({ type: 'session-lives', sessionId, session: context.self }))
      case 'open-ledger':
        return tell(() => merge.tell({ type: 'open-ledger', sessionId, session: context.self }))
      case 'request-init':
        return tell(() =>
          stages.tell({
            type: 'init-requested',
            sessionId,
            priority: spec.priority,
            job: { spec, sessionDir, timeoutMs: effect.timeoutMs },
            session: context.self,
          }),
        )
      case 'start-run': {
        const { runtime, harnessInstallDir, gatewayUrl, sessionBudgetMs, agentBudgetMs } = effect
        return tell(() =>
          stages.tell({
            type: 'start-run',
            sessionId,
            job: {
              spec,
              sessionDir,
              runtime,
              harnessInstallDir,
              gatewayUrl,
              sessionKey: key,
              // The machine keeps the budgets, since only it knows of time held at a pause; the task's own are a net far below.
              sessionBudgetMs: sessionBudgetMs + NET_MS,
              agentBudgetMs: agentBudgetMs === null ? null : agentBudgetMs + NET_MS,
            },
          }),
        )
      }
      case 'release-run-slot':
        return tell(() => stages.tell({ type: 'release-run-slot', sessionId }))
      case 'cancel-stage':
        return tell(() => stages.tell({ type: 'cancel-stage', sessionId, stage: effect.stage }))
      case 'close-proxy':
        return defer(() => context.ask(proxy, { type: 'session-close-requested', sessionId }, CLOSE_DEADLINE_MS)).pipe(
          map((): SessionInput => ({ type: 'proxy-closed', error: null, atMs: now() })),
          catchError(cause => {
            context.log.warn(EVENTS.sessionCloseFail, { sessionId, cause })
            return of<SessionInput>({ type: 'proxy-closed', error: errorData(cause), atMs: now() })
          }),
        )
      case 'seal-ledger':
        return ledgerOf(sealed(false), 'session.sealed')
      case 'recover-ledger':
        return ledgerOf(
          (deps.shardLedger === null ? sealed(true) : defer(deps.shardLedger).pipe(map(replyOf))).pipe(
            retry({ count: PUT_RETRIES, delay: () => context.clock.timer$(PUT_RETRY_MS) }),
          ),
          'recovery.sealed',
        )
      case 'request-postrun':
        return tell(() => stages.tell({ type: 'postrun-requested', sessionId, job: effect.job, session: context.self }))
      case 'arm-deadline':
        return context.clock
          .timer$(effect.afterMs)
          .pipe(map((): SessionInput => ({ type: 'deadline-passed', deadline: effect.deadline, atMs: now() })))
      case 'report-status':
        return tell(() => rollout.tell({ type: 'session-status-changed', sessionId, status: effect.status }))
      case 'report-progress':
        return tell(() =>
          rollout.tell({
            type: 'session-progressed',
            sessionId,
            calls: effect.calls,
            sampledTokens: effect.sampledTokens,
          }),
        )
      case 'report-end':
        return tell(() => {
          const { status, error, failureClass } = effect.result
          failpoint('session.built')
          context.log.info(EVENTS.sessionEnd, { sessionId, status, reason: error, failureClass })
          rollout.tell({ type: 'session-ended', sessionId, result: effect.result })
          proxy.tell({ type: 'forget-session', sessionId })
          merge.tell({ type: 'drop-ledger', sessionId })
        })
      case 'describe':
        return tell(() => effect.replyTo.tell(effect.description))
    }
  }
}

const replyOf = (ledger: SessionLedger | null): LedgerSealReply =>
  ledger === null ? { type: 'ledger-unknown' } : { type: 'ledger-sealed', ledger }

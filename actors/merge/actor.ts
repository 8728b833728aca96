// The prefix-merge actor of a pair: its machine, fed by the capture links, and what it says back: acknowledgements, refusals,
// progress of sessions, sealed ledgers (their typed arrays change thread without a copy).

import { defer, EMPTY, from, ignoreElements, map, type Observable, of, tap } from 'rxjs'
import { type ErrorData, errorData } from '../../src/domain/errors.js'
import type { SessionId } from '../../src/domain/ids.js'
import { unreachable } from '../../src/domain/unreachable.js'
import { EVENTS } from '../../src/observability/events.js'
import { failpoint } from '../../src/observability/failpoints.js'
import type { MergeMessage } from '../protocol/merge.js'
import type { ActorContext, ActorProps, Logger } from '../system/behavior.js'
import type { Interpreter } from '../system/machine.js'
import { transferTypedArrays } from '../system/transfer.js'
import type { Journal } from './journal.js'
import type { CaptureLinks } from './links.js'
import { type MergeEffect, type MergeInput, type MergeState, mergeMachine } from './machine.js'

export interface MergeOptions {
  readonly links: CaptureLinks
  /** Closed with the actor. */
  readonly journal: Journal
  /** Told when the intake pauses and goes on: it takes no tasks meanwhile. */
  readonly onIntake: (error: ErrorData | null) => void
  /** `limits.mailbox`. */
  readonly mailbox: number
}

export function mergeProps(options: MergeOptions): ActorProps<MergeMessage, MergeInput, MergeState, MergeEffect> {
  return {
    behavior: () => ({
      machine: mergeMachine,
      interpret: context => mergeInterpreter(options, context),
      onEffectError: (_effect, cause) => ({ type: 'effect-failed', error: errorData(cause).message }),
      signal: () => options.journal.close(),
      summarize: state => ({
        sessions: state.ledgers.size,
        calls: [...state.ledgers.values()].reduce((sum, ledger) => sum + ledger.log.calls.length, 0),
        refused: state.refused,
        isPaused: state.isPaused,
      }),
    }),
    mailbox: { capacity: options.mailbox, overflow: 'refuse' },
    // Its crash is that of its thread: the one that starts in its place reads the sessions from the shard.
    supervision: { restart: 'permanent', strategy: 'one-for-one', intensity: 0, periodMs: 30_000 },
    shutdownMs: 10_000,
  }
}

function mergeInterpreter(
  { links, journal, onIntake }: MergeOptions,
  { log, clock }: ActorContext<MergeInput>,
): Interpreter<MergeInput, MergeEffect> {
  const doing = (work: () => void): Observable<MergeInput> =>
    defer(() => {
      work()
      return EMPTY
    })
  return effect => {
    switch (effect.type) {
      case 'receive-frames':
        return links.events$.pipe(
          map(
            ({ link, frame }): MergeInput =>
              frame === null
                ? { type: 'link-ended', link, atMs: clock.now() }
                : { type: 'frame-received', link, frame },
          ),
        )
      case 'watch-intake':
        return journal.intake$.pipe(map((error): MergeInput => ({ type: 'intake-changed', error })))
      case 'tell-intake':
        return doing(() => {
          links.tellIntake(effect.error)
          onIntake(effect.error)
        })
      case 'load-ledger':
        return defer(() => of<MergeInput>(readBack(journal, log, effect.sessionId)))
      case 'store-entry': {
        const { sessionId, entry, frame } = effect
        const isCall = entry?.kind === 'call'
        return defer(() => {
          if (isCall) failpoint('merge.inserted')
          const stored = journal.store(sessionId, entry)
          if (isCall) failpoint('merge.put-issued')
          return from(stored)
        }).pipe(
          tap(() => isCall && failpoint('merge.flushed')),
          frame === null ? ignoreElements() : map((): MergeInput => ({ type: 'entry-stored', ...frame })),
        )
      }
      case 'finish-session':
        return defer(() => from(journal.finish(effect.sessionId))).pipe(ignoreElements())
      case 'acknowledge':
        return doing(() => {
          links.acknowledge(effect.link, effect.frameId)
          failpoint('merge.ack-posted')
        })
      case 'refuse':
        return doing(() => {
          const { link, frameId, sessionId, reason } = effect
          log.warn(EVENTS.frameRefuse, { link, sessionId, reason })
          links.refuse(link, frameId, reason)
        })
      case 'tell-started':
        return doing(() => effect.session.tell({ type: 'call-started', sequence: effect.sequence }))
      case 'tell-recorded':
        return doing(() => {
          const { session, calls, turns, promptTokens, sampledTokens } = effect
          session.tell({ type: 'completion-recorded', calls, turns, promptTokens, sampledTokens })
        })
      case 'reply-sealed':
        return doing(() => effect.replyTo.tell(transferTypedArrays(effect.reply)))
      case 'reply-description':
        return doing(() => effect.replyTo.tell(effect.description))
      default:
        return unreachable(effect)
    }
  }
}

/** A session whose records are damaged is as one that is not known: its end tells of the loss. */
function readBack(journal: Journal, log: Logger, sessionId: SessionId): MergeInput {
  try {
    return { type: 'ledger-loaded', sessionId, log: journal.restore(sessionId) }
  } catch (cause) {
    log.error(EVENTS.storeRestoreFail, { sessionId, cause })
    return { type: 'ledger-loaded', sessionId, log: null }
  }
}

// The prefix-merge actor of a pair: its machine, fed by the capture links, and what it says back: acknowledgements, refusals,
// progress of sessions, sealed ledgers (their typed arrays change thread without a copy).

import { defer, EMPTY, map, type Observable } from 'rxjs'
import { errorData } from '../../src/domain/errors.js'
import { unreachable } from '../../src/domain/unreachable.js'
import { EVENTS } from '../../src/observability/events.js'
import type { MergeMessage } from '../protocol/merge.js'
import type { ActorContext, ActorProps } from '../system/behavior.js'
import type { Interpreter } from '../system/machine.js'
import { transferTypedArrays } from '../system/transfer.js'
import type { CaptureLinks } from './links.js'
import { type MergeEffect, type MergeInput, type MergeState, mergeMachine } from './machine.js'

export interface MergeOptions {
  readonly links: CaptureLinks
  /** `limits.mailbox`. */
  readonly mailbox: number
}

export function mergeProps(options: MergeOptions): ActorProps<MergeMessage, MergeInput, MergeState, MergeEffect> {
  return {
    behavior: () => ({
      machine: mergeMachine,
      interpret: context => mergeInterpreter(options.links, context),
      onEffectError: (_effect, cause) => ({ type: 'effect-failed', error: errorData(cause).message }),
      summarize: state => ({
        sessions: state.ledgers.size,
        calls: [...state.ledgers.values()].reduce((sum, ledger) => sum + ledger.log.calls.length, 0),
        refused: state.refused,
        isPaused: state.isPaused,
      }),
    }),
    mailbox: { capacity: options.mailbox, overflow: 'refuse' },
    supervision: { restart: 'permanent', strategy: 'one-for-one', intensity: 5, periodMs: 30_000 },
    shutdownMs: 10_000,
  }
}

function mergeInterpreter(
  links: CaptureLinks,
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
      case 'acknowledge':
        return doing(() => links.acknowledge(effect.link, effect.frameId))
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

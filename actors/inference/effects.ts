// Carries out the inference machine's effects: asks every proxy, and adds up what they say. A proxy whose thread died has lost its
// calls with it; it comes back with the gate as `keep` left it.

import { defer, EMPTY, map, mergeMap, type Observable } from 'rxjs'
import { errorData } from '../../src/domain/errors.js'
import type { InferenceRecord } from '../../src/domain/inference.js'
import { unreachable } from '../../src/domain/unreachable.js'
import { EVENTS } from '../../src/observability/events.js'
import type { InferenceReply } from '../protocol/inference.js'
import type { GateDescription, ProxyMessage } from '../protocol/proxy.js'
import type { ActorContext } from '../system/behavior.js'
import type { Interpreter } from '../system/machine.js'
import type { ActorRef } from '../system/ref.js'
import type { InferenceEffect, InferenceInput } from './machine.js'

export interface InferenceDeps {
  readonly proxies: readonly ActorRef<ProxyMessage>[]
  /** What the next life starts from; also read at each start of a proxy's thread. */
  readonly memory: { read(): InferenceRecord; write(record: InferenceRecord): void }
}

const ASK_MS = 5_000
const NO_CALLS: GateDescription = { type: 'gate-description', isClosed: true, inflight: 0, waiting: 0 }

export function inferenceEffects(
  { proxies, memory }: InferenceDeps,
  context: ActorContext<InferenceInput>,
): Interpreter<InferenceInput, InferenceEffect> {
  const silent = (work: () => void | Promise<void>): Observable<never> =>
    defer(async () => work()).pipe(mergeMap(() => EMPTY))

  /** null = no answer in time. */
  const answered = async (asked: Promise<GateDescription>): Promise<GateDescription | null> => {
    try {
      return await asked
    } catch (cause) {
      return errorData(cause).code === 'ACTOR_DEAD' ? NO_CALLS : null
    }
  }

  /** `known`: answers that are there already; the other proxies are asked. */
  const status = async (
    record: InferenceRecord,
    known: readonly (GateDescription | null)[] = proxies.map(() => null),
  ): Promise<InferenceReply> => {
    const counts = await Promise.all(
      proxies.map(
        async (proxy, index) =>
          known[index] ?? (await answered(context.ask(proxy, { type: 'gate-described' }, ASK_MS))),
      ),
    )
    return {
      type: 'inference-description',
      pause: record.pause,
      policyVersion: record.policyVersion,
      inflight: counts.reduce((sum, count) => sum + (count?.inflight ?? 0), 0),
      waiting: counts.reduce((sum, count) => sum + (count?.waiting ?? 0), 0),
      isComplete: counts.every(count => count !== null),
    }
  }

  return effect => {
    switch (effect.type) {
      case 'keep':
        return silent(() => memory.write(effect.record))
      case 'set-gates':
        return silent(async () => {
          const { gate, answer } = effect
          const awaitDrain = answer?.awaitDrain ?? false
          const asked = await Promise.all(
            proxies.map(proxy =>
              answered(
                context.ask(proxy, { type: 'gate-set-requested', gate, awaitDrain }, answer?.timeoutMs ?? ASK_MS),
              ),
            ),
          )
          // The record as it is by now: a pause may have been ended while it drained.
          answer?.replyTo.tell(await status(memory.read(), asked))
        })
      case 'arm-lease': {
        const { lease, untilMs } = effect
        return context.clock
          .timer$(Math.max(0, untilMs - context.clock.now()))
          .pipe(map((): InferenceInput => ({ type: 'lease-passed', lease })))
      }
      case 'describe':
        return silent(async () => effect.replyTo.tell(await status(effect.record)))
      case 'refuse':
        return silent(() => effect.replyTo.tell({ type: 'inference-refused', owner: effect.owner }))
      case 'log-expiry':
        return silent(() => context.log.warn(EVENTS.pauseExpire, { owner: effect.owner }))
      default:
        return unreachable(effect)
    }
  }
}

// Deltas of the engine -> canonical events in order, for the dialect's encoder: a start before all else, calls opened and closed one
// at a time, an end. Also a whole answer as the same events.

import type { CanonicalEvent, CanonicalResponse } from '../../src/domain/conversation.js'
import { RolloutError } from '../../src/domain/errors.js'
import type { UpstreamDelta } from '../../src/upstreams/base.js'

export interface EventIdentity {
  readonly id: string
  readonly createdAt: number
  readonly model: string
}

/** Ids of calls are never empty: where the engine gives none, the completion and the position make one. */
export const callIdOf = (engineId: string, completionId: string, index: number): string =>
  engineId === '' ? `call_${completionId.replace(/^msg_/, '')}_${index}` : engineId

export class LiveEvents {
  readonly #identity: EventIdentity
  #isStarted = false
  #openCall: number | null = null
  /** True once the client may have seen a piece of the answer: from then on the call cannot be made again unnoticed. */
  isVisible = false

  constructor(identity: EventIdentity) {
    this.#identity = identity
  }

  /** Throws UPSTREAM_MALFORMED when pieces of several calls come mixed: no dialect can carry that. */
  of(delta: Exclude<UpstreamDelta, { type: 'error' }>): readonly CanonicalEvent[] {
    if (delta.type === 'prompt') return this.#start(delta.promptTokens)
    const events = [...this.#start(null)]
    this.isVisible = true
    switch (delta.type) {
      case 'reasoning':
        events.push({ type: 'reasoning-delta', text: delta.text })
        break
      case 'text':
        events.push({ type: 'text-delta', text: delta.text })
        break
      case 'tool-call-start':
        events.push(...this.#closeCall(), {
          type: 'tool-call-start',
          index: delta.index,
          id: callIdOf(delta.id, this.#identity.id, delta.index),
          name: delta.name,
        })
        this.#openCall = delta.index
        break
      case 'tool-call-arguments':
        if (delta.index !== this.#openCall) {
          throw new RolloutError('UPSTREAM_MALFORMED', 'the inference server mixed the pieces of several tool calls')
        }
        events.push({ type: 'tool-call-delta', index: delta.index, arguments: delta.text })
        break
    }
    return events
  }

  end(response: CanonicalResponse): readonly CanonicalEvent[] {
    const start = this.#start(response.usage.promptTokens)
    return [...start, ...this.#closeCall(), { type: 'response-end', response }]
  }

  #start(promptTokens: number | null): CanonicalEvent[] {
    if (this.#isStarted) return []
    this.#isStarted = true
    return [{ type: 'response-start', ...this.#identity, promptTokens }]
  }

  #closeCall(): CanonicalEvent[] {
    if (this.#openCall === null) return []
    const index = this.#openCall
    this.#openCall = null
    return [{ type: 'tool-call-end', index }]
  }
}

/** All events of an answer that came whole. */
export function eventsOfResponse(response: CanonicalResponse): readonly CanonicalEvent[] {
  const { id, createdAt, model, reasoning, content, toolCalls, usage } = response
  return [
    { type: 'response-start', id, createdAt, model, promptTokens: usage.promptTokens },
    ...(reasoning ? [{ type: 'reasoning-delta', text: reasoning } as const] : []),
    ...(content ? [{ type: 'text-delta', text: content } as const] : []),
    ...toolCalls.flatMap((call, index): CanonicalEvent[] => [
      { type: 'tool-call-start', index, id: call.id, name: call.name },
      ...(call.arguments === '' ? [] : [{ type: 'tool-call-delta', index, arguments: call.arguments } as const]),
      { type: 'tool-call-end', index },
    ]),
    { type: 'response-end', response },
  ]
}

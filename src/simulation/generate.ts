// One generation: draws ids until the end token, a stop id, a stop string or the limit. Ids are what was sampled, the end token
// included; text ends before it. A stop string cuts the text, never the ids.

import type { Tokenizer } from '../tokenizer/tokenizer.js'
import { overlap } from './answer-parser.js'
import type { Draw, Sampler, SamplingSettings } from './distribution.js'
import { type Program, walk } from './policy/grammar.js'
import type { Random } from './random.js'

export interface GenerationOptions {
  readonly tokenizer: Tokenizer
  readonly program: Program
  readonly sampler: Sampler
  readonly settings: SamplingSettings
  readonly random: Random
  /** At least 1. */
  readonly maxTokens: number
  readonly stop: readonly string[]
  readonly stopTokenIds: ReadonlySet<number>
  readonly includeStop: boolean
}

export interface Ending {
  readonly reason: 'stop' | 'length' | 'abort'
  /** The stop id or string that was met; null for the end token, the limit and an abort. */
  readonly matched: number | string | null
}

export interface Step {
  readonly draw: Draw
  /** Text that is certain now; may be empty. */
  readonly text: string
  /** Not null in the last step. */
  readonly ending: Ending | null
}

export function* generate(options: GenerationOptions): Generator<Step> {
  const { tokenizer, sampler, settings, random, maxTokens, stopTokenIds } = options
  const walking = walk(options.program)
  const decoder = tokenizer.decoder({ skipSpecial: true })
  const stops = stopBuffer(options.stop, options.includeStop)
  const counts = new Map<number, number>()
  for (let length = 1; ; length++) {
    const raw = walking.next()
    if (raw === null) throw new Error('the grammar ended without an end token')
    const draw = sampler(raw, settings, counts, random)
    counts.set(draw.id, (counts.get(draw.id) ?? 0) + 1)
    walking.take(draw.id)
    const found = stops.push(decoder.push(draw.id))
    const ending = endingOf(draw.id, found.matched, length)
    if (ending === null) yield { draw, text: found.text, ending }
    else {
      const rest = found.matched === null ? stops.push(decoder.end()).text + stops.end() : ''
      yield { draw, text: found.text + rest, ending }
      return
    }
  }

  function endingOf(id: number, stopString: string | null, length: number): Ending | null {
    if (stopString !== null) return { reason: 'stop', matched: stopString }
    if (id === tokenizer.endTokenId) return { reason: 'stop', matched: null }
    if (stopTokenIds.has(id)) return { reason: 'stop', matched: id }
    return length >= maxTokens ? { reason: 'length', matched: null } : null
  }
}

/** Looks for stop strings in text that comes in pieces, holding back what may be the beginning of one. */
function stopBuffer(stops: readonly string[], include: boolean) {
  let held = ''
  return {
    push: (piece: string): { readonly text: string; readonly matched: string | null } => {
      const text = held + piece
      const found = stops
        .map(stop => ({ stop, at: text.indexOf(stop) }))
        .filter(({ at }) => at >= 0)
        .sort((a, b) => a.at - b.at)[0]
      if (found) {
        held = ''
        return { text: text.slice(0, found.at + (include ? found.stop.length : 0)), matched: found.stop }
      }
      const kept = Math.max(0, ...stops.map(stop => overlap(text, stop)))
      held = text.slice(text.length - kept)
      return { text: text.slice(0, text.length - kept), matched: null }
    },
    end: (): string => held,
  }
}

// The inference server of a chaos run: it lives through every kill, so it knows what was sampled. Each answer calls the tool `mark` with a
// marker of its own; ids of a prompt are made of its messages, so that a turn's prompt extends the last one token for token.

import { realClock } from '../../actors/system/clock.js'
import type { JsonObject } from '../../src/domain/json.js'
import { type ScriptedAnswer, scriptedEngine } from '../../test/support/scripted-engine.js'

export interface ChaosEngine {
  readonly url: string
  /** Marker -> the ids that were sampled for it. */
  readonly sampled: ReadonlyMap<string, readonly number[]>
  close(): Promise<void>
}

const clock = realClock()
const IDS_PER_ANSWER = 6
const END = 99

/** `random`: 0 to 1. */
export async function chaosEngine(random: () => number): Promise<ChaosEngine> {
  const sampled = new Map<string, readonly number[]>()
  const ids = (message: JsonObject): readonly number[] => {
    const marker = /m-\d+/.exec(JSON.stringify(message['tool_calls'] ?? ''))?.[0]
    const known = marker === undefined ? undefined : sampled.get(marker)
    return known ?? [...hashed(String(message['role'])), ...hashed(JSON.stringify(message['content'])), END]
  }
  const answer = (body: JsonObject): ScriptedAnswer => {
    const messages = Array.isArray(body['messages']) ? (body['messages'] as JsonObject[]) : []
    const marker = `m-${sampled.size}`
    const own = [...Array.from({ length: IDS_PER_ANSWER }, () => 1_000 + Math.floor(random() * 100_000)), END]
    sampled.set(marker, own)
    return {
      before: clock.sleep(5 + random() * 25),
      toolCalls: [{ id: `call_${marker}`, name: 'mark', arguments: JSON.stringify({ marker }) }],
      ids: own,
      logprobs: own.map(() => Math.fround(-random())),
      promptIds: messages.flatMap(ids),
    }
  }
  let close: () => unknown = () => undefined
  const engine = await scriptedEngine({ teardown: run => (close = run) }, answer)
  return { url: engine.url, sampled, close: async () => void (await close()) }
}

/** Four ids that differ where the text does. */
function hashed(text: string): readonly number[] {
  let hash = 2166136261
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 16777619) >>> 0
  return [0, 8, 16, 24].map(shift => 200 + ((hash >>> shift) & 0xff))
}

// Generated sessions with text: requests whose messages say what the prompt ids say, bodies, answers. For what keeps text by content.

import type { CapturedCall } from '../../src/domain/completion.js'
import type { JsonObject } from '../../src/domain/json.js'
import { seeded, worldText } from './session-generator.js'

const PER_MESSAGE = 4

/** The calls with messages cut from their prompts, a body that repeats them, and an answer. Some lists are odd on purpose. */
export function withText(calls: readonly CapturedCall[], seed: number): CapturedCall[] {
  const random = seeded(seed)
  const tools = ['one', 'other'].map(name => [{ type: 'function', function: { name, parameters: { type: 'object' } } }])
  return calls.map(({ record, delivered }, place) => {
    const ids = [...(record.promptIds ?? [])]
    const messages: JsonObject[] = []
    for (let at = 0; at < ids.length; at += PER_MESSAGE)
      messages.push({
        role: (at / PER_MESSAGE) % 2 === 0 ? 'user' : 'assistant',
        content: worldText(ids.slice(at, at + PER_MESSAGE)),
        ...(random.chance(0.1) && { note: place }),
      })
    const request: JsonObject = {
      model: 'served',
      messages: random.chance(0.05) ? 'none' : messages,
      tools: random.chance(0.8) ? (tools[0] ?? []) : (tools[1] ?? []),
      ...(random.chance(0.5) && { seed: random.below(1000) }),
    }
    const message = { role: 'assistant', content: worldText(record.sampledIds ?? []) }
    const response: JsonObject = random.chance(0.1)
      ? { id: `r${place}` }
      : {
          id: `r${place}`,
          choices: [{ index: 0, message, finish_reason: record.finish }],
          usage: { total_tokens: place },
        }
    const originalRequest = JSON.stringify({ messages, tools: request['tools'], stream: true })
    return { delivered, record: { ...record, request, response, originalRequest } }
  })
}

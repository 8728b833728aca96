// A session as a harness makes it, call by call: a main agent whose history grows by an answer and a tool's output each turn, sub-agents
// that start from the same system prompt, title calls beside it. Records come as decoded frames: nothing in them is shared.

import type { CompletionRecord } from '../../../src/domain/completion.js'
import type { CompletionId, SessionId } from '../../../src/domain/ids.js'
import type { JsonObject } from '../../../src/domain/json.js'
import { decode, encode } from '../../../src/wire/codec.js'
import { completionRecord } from '../../../test/support/records.js'
import { type Random, seeded } from '../../../test/support/session-generator.js'

export const SESSION = 's-perf' as SessionId
export const END = 99

export interface Shape {
  readonly calls: number
  /** Length of the main agent's last prompt + answer, about. */
  readonly context: number
  /** Without text only what the token arrays need is measured. */
  readonly hasText: boolean
}

interface Thread {
  readonly id: string | null
  readonly ids: number[]
  readonly messages: JsonObject[]
}

/** Characters an id stands for. */
const CHARACTERS = 4
/** Of a history's growth by a turn. */
const ANSWER_SHARE = 0.4

export function* perfSession({ calls, context, hasText }: Shape): Generator<CompletionRecord> {
  const random = seeded(calls * 31 + context)
  const system = Math.min(8_000, Math.floor(context / 4))
  const growth = Math.floor((context - system) / (calls * 0.9))
  const text = textOf(random)
  const tools = hasText ? [{ type: 'function', function: { name: 'shell', description: text(5_000) } }] : []
  const first = { ids: idsOf(random, system), message: { role: 'system', content: hasText ? text(system) : '' } }
  const thread = (id: string | null): Thread => ({ id, ids: [...first.ids], messages: hasText ? [first.message] : [] })
  const say = (to: Thread, role: string, length: number): number[] => {
    const said = [...idsOf(random, Math.max(1, length - 1)), END]
    for (const each of said) to.ids.push(each)
    if (hasText) to.messages.push({ role, content: text(length) })
    return said
  }
  const main = thread(null)
  let sub = thread('sub-0')
  let subs = 0
  say(main, 'user', growth)
  for (let number = 0; number < calls; number++) {
    const place = random.next()
    if (place >= 0.98) {
      sub = thread(`sub-${++subs}`)
      say(sub, 'user', growth)
    }
    const isTitle = place < 0.02
    const on = isTitle ? thread('title') : place >= 0.92 && number > 0 ? sub : main
    if (isTitle) say(on, 'user', 20)
    const promptIds = Int32Array.from(on.ids)
    const messages = on.messages.slice()
    const sampled = say(on, 'assistant', isTitle ? 8 : Math.max(2, Math.floor(growth * ANSWER_SHARE)))
    const originalRequest = hasText ? JSON.stringify({ model: 'policy', messages, tools, stream: true }) : ''
    const record = completionRecord({
      completionId: `msg_${String(number).padStart(12, '0')}` as CompletionId,
      sessionId: SESSION,
      sequence: number,
      promptIds,
      sampledIds: Int32Array.from(sampled),
      logprobs: Float32Array.from(sampled, () => -random.next()),
      promptTokens: promptIds.length,
      completionTokens: sampled.length,
      cachedTokens: Math.max(0, promptIds.length - growth),
      endTokenId: END,
      sideRule: isTitle ? 'title' : null,
      agentId: on.id,
      startedAtMs: 1_700_000_000_000 + number * 2_000,
      finishedAtMs: 1_700_000_000_900 + number * 2_000,
      request: hasText ? { model: 'served', messages, tools, temperature: 1, seed: random.below(2 ** 31) } : {},
      response: hasText
        ? { id: `r${number}`, choices: [{ index: 0, message: on.messages.at(-1) ?? {}, finish_reason: 'stop' }] }
        : {},
      originalRequest,
    })
    yield decode(encode(record)) as CompletionRecord
    if (!isTitle) say(on, 'tool', Math.max(2, Math.ceil(growth * (1 - ANSWER_SHARE))))
  }
}

const idsOf = (random: Random, count: number): number[] =>
  Array.from({ length: count }, () => 1_000 + random.below(150_000))

/** Text of `tokens` ids: pieces of one long text that do not repeat soon. */
function textOf(random: Random): (tokens: number) => string {
  const source = Array.from({ length: 1 << 18 }, () => String.fromCharCode(97 + random.below(26))).join('')
  return tokens => {
    let said = ''
    for (let left = tokens * CHARACTERS; left > 0; ) {
      const from = random.below(source.length)
      const part = source.slice(from, from + Math.min(left, 1 + random.below(400)))
      said += part
      left -= part.length
    }
    return said
  }
}

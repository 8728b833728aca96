// The case book over real HTTP: a scripted engine, the gateway pair, and one call in each mode. What a streaming client puts together is
// compared by the same checks as a whole answer.

import type { Test } from 'tap'
import type { SseFrame } from '../../src/dialects/base.js'
import type { CompletionRecord, FailedCall } from '../../src/domain/completion.js'
import type { DialectId } from '../../src/domain/conversation.js'
import type { JsonObject } from '../../src/domain/json.js'
import { dialectCalls, gatewayPlan, type Pair, type PairSession, startPair } from './pair.js'
import { type ScriptedAnswer, type ScriptedEngine, scriptedEngine } from './scripted-engine.js'
import { accumulate } from './stream-clients.js'

// Test data: the shapes are asserted by the tests themselves.
interface LooseObject {
  readonly [key: string]: Loose
}
export type Loose = LooseObject & string & number & readonly Loose[]

export interface CaseCall {
  readonly dialect: DialectId
  /** `model` and, for Messages, `max_tokens` are added. */
  readonly body: object
  readonly engine?: ScriptedAnswer
  readonly headers?: Readonly<Record<string, string>>
}

/** One call as its client, the engine and the ledger saw it. */
export interface Seen {
  readonly stream: boolean
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body; of a stream, what a client of the dialect puts together ({} where it cannot: a stream that failed). */
  readonly answer: Loose
  readonly frames: readonly SseFrame[]
  /** `data` objects of a stream, `[DONE]` left out. */
  readonly events: readonly Loose[]
  /** What the engine was asked; {} when it was not. */
  readonly engine: Loose
  readonly asked: boolean
}

export interface Case extends CaseCall {
  /** `<case number>: <promise>`. */
  readonly name: string
  readonly status?: number
  /** Default: both. */
  readonly modes?: readonly boolean[]
  check(t: Test, seen: Seen & { readonly record: Kept; readonly failed: FailedCall | undefined }): void
}

/** The record, or an empty one where none was made. */
type Kept = Partial<CompletionRecord>

export interface CaseWorld {
  readonly engine: ScriptedEngine
  readonly pair: Pair
  /** Answers of the next generation, and of all until changed. */
  script(answer: ScriptedAnswer): void
  call(session: PairSession, call: CaseCall, stream: boolean): Promise<Seen>
}

export async function caseWorld(t: Pick<Test, 'teardown'>, limits = {}): Promise<CaseWorld> {
  let next: ScriptedAnswer = {}
  const engine = await scriptedEngine(t, () => next)
  const pair = await startPair(t, gatewayPlan([{ urls: [engine.url] }], { limits }))
  const script = (answer: ScriptedAnswer) => {
    next = answer
  }
  return {
    engine,
    pair,
    script,
    async call(session, { dialect, body, engine: answer = { pieces: ['ok'] }, headers = {} }, stream) {
      script(answer)
      const before = engine.generations.length
      const { path, streamPath, streamBody } = dialectCalls[dialect]
      const sent = {
        model: 'm',
        ...(dialect === 'anthropic_messages' && { max_tokens: 64 }),
        ...body,
        ...(stream && streamBody),
      }
      const response = await pair.post(stream ? streamPath : path, sent, { key: session.key, headers })
      const text = await response.text()
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
      const frames = isStream ? framesOf(text) : []
      const asked = engine.generations[before]?.body
      return {
        stream,
        status: response.status,
        headers: response.headers,
        text,
        answer: (isStream ? accumulated(dialect, frames) : JSON.parse(text)) as Loose,
        frames,
        events: frames.flatMap(({ data }) => (data === '[DONE]' ? [] : [JSON.parse(data) as Loose])),
        engine: (asked ?? {}) as unknown as Loose,
        asked: asked !== undefined,
      }
    },
  }
}

/** Runs each case in both modes, each in a session of its own, in one world. */
export async function runCases(t: Test, cases: readonly Case[]): Promise<void> {
  const world = await caseWorld(t)
  for (const [index, one] of cases.entries()) {
    await t.test(one.name, async t => {
      for (const stream of one.modes ?? [false, true]) {
        const session = await world.pair.session(`case-${index}-${stream}`)
        const seen = await world.call(session, one, stream)
        t.equal(seen.status, one.status ?? 200, `status${stream ? ', streaming' : ''}`)
        const ledger = await world.pair.ledger(session)
        one.check(t, { ...seen, record: ledger.calls[0]?.record ?? {}, failed: ledger.failed[0] })
      }
    })
  }
}

/** Frames of an event stream, as written on the wire. */
export const framesOf = (text: string): SseFrame[] =>
  text
    .split('\n\n')
    .filter(block => block.trim() !== '' && !block.startsWith(':'))
    .map(block => ({
      event: /^event: (.*)$/m.exec(block)?.[1] ?? null,
      data: /^data: (.*)$/m.exec(block)?.[1] ?? '',
    }))

function accumulated(dialect: DialectId, frames: readonly SseFrame[]): unknown {
  const pings = frames.filter(({ event }) => event !== 'ping')
  if (pings.some(({ event }) => event === 'error' || event === 'response.failed')) return {}
  if (pings.some(({ data }) => data.startsWith('{"error"'))) return {}
  return accumulate(
    dialect,
    pings.map(frame => ({ frame, hold: false })),
  )
}

/** Length of a list; 0 for anything else. */
export const lengthOf = (value: unknown): number => (Array.isArray(value) ? value.length : 0)

/** Bodies of the engine as JSON text, for "not one byte changes" and "nowhere". */
export const bytes = (body: JsonObject | Loose): string => JSON.stringify(body)

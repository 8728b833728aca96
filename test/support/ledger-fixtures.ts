// Token fixtures of test/fixtures/ledger (one file per case) as sealed ledgers, and what a builder made of them in the
// fixtures' own words: streams, masks, counts.

import { readdirSync, readFileSync } from 'node:fs'
import type { CapturedCall, CompletionRecord, Delivered, SessionLedger } from '../../src/domain/completion.js'
import type { FinishReason } from '../../src/domain/conversation.js'
import type { CompletionId, SessionId } from '../../src/domain/ids.js'
import type { JsonObject } from '../../src/domain/json.js'
import type { Trace } from '../../src/domain/trajectory.js'
import { completionRecord } from './records.js'

export interface FixtureCall {
  readonly id: string
  readonly p:
    | readonly number[]
    | { readonly like: string; readonly first: number; readonly then: readonly number[] }
    | null
  readonly a: readonly number[] | null
  readonly fin?: FinishReason
  readonly lp?: readonly number[] | null
  readonly delivered?: boolean
  readonly completion_tokens?: number
  readonly side?: boolean
  readonly retry?: number
}

export interface ExpectedTrace {
  readonly s?: readonly number[]
  readonly m?: readonly number[]
  readonly of?: readonly string[]
  readonly len?: number
  readonly trained?: number
}

export interface TokenCase {
  readonly calls: readonly FixtureCall[]
  readonly end?: number | null
  readonly gen?: number
  readonly text?: Readonly<Record<string, string>>
  readonly expect: {
    readonly traces: readonly ExpectedTrace[]
    readonly joins: Readonly<Record<string, number>>
    readonly untrained: Readonly<Record<string, number>>
  }
}

export interface TokenFixture {
  readonly id: string
  readonly title: string
  readonly cases: readonly TokenCase[]
}

export const SESSION = 's-00000000-0000-4000-8000-000000000000' as SessionId

/** `fixtures` is a folder; sorted by file name. */
export function loadTokenFixtures(folder: string): TokenFixture[] {
  const names = readdirSync(folder).filter(name => name.endsWith('.json'))
  return names.sort().map(name => JSON.parse(readFileSync(`${folder}/${name}`, 'utf8')) as TokenFixture)
}

export interface RecordInput {
  readonly id: string
  readonly prompt: readonly number[] | null
  readonly sampled: readonly number[] | null
  readonly logprobs?: readonly number[] | null
  readonly startedAtMs?: number
  readonly sequence?: number
  readonly over?: Partial<CompletionRecord>
}

export function recordOf({
  id,
  prompt,
  sampled,
  logprobs,
  startedAtMs = 0,
  sequence = 0,
  over,
}: RecordInput): CompletionRecord {
  const values = logprobs === undefined ? (sampled?.map((_, i) => -0.1 - i / 100) ?? null) : logprobs
  return completionRecord({
    completionId: id as CompletionId,
    sessionId: SESSION,
    sequence,
    promptIds: prompt && Int32Array.from(prompt),
    sampledIds: sampled && Int32Array.from(sampled),
    logprobs: values && Float32Array.from(values),
    completionTokens: sampled?.length ?? 0,
    promptTokens: prompt?.length ?? 0,
    startedAtMs,
    finishedAtMs: startedAtMs + 5,
    request: {} satisfies JsonObject,
    response: {} satisfies JsonObject,
    ...over,
  })
}

export const ledgerOf = (calls: readonly CapturedCall[], failed: SessionLedger['failed'] = []): SessionLedger => ({
  sessionId: SESSION,
  calls,
  failed,
})

/** `startedAt`: recorded start time of each call, by its place in the case. */
export function callsOf(token: TokenCase, startedAt: (place: number) => number): CapturedCall[] {
  const prompts = new Map<string, readonly number[] | null>()
  for (const { id, p } of token.calls) {
    if (p === null || Array.isArray(p)) prompts.set(id, p as readonly number[] | null)
    else if ('like' in p) prompts.set(id, [...(prompts.get(p.like) ?? []).slice(0, p.first), ...p.then])
  }
  return token.calls.map((call, place) => ({
    delivered: (call.delivered === false ? 'no' : 'yes') satisfies Delivered,
    record: recordOf({
      id: call.id,
      prompt: prompts.get(call.id) ?? null,
      sampled: call.a,
      ...(call.lp !== undefined && { logprobs: call.lp }),
      startedAtMs: startedAt(place),
      over: {
        completionTokens: call.completion_tokens ?? call.a?.length ?? 0,
        finish: call.fin ?? 'stop',
        generationPromptLength: token.gen ?? 0,
        endTokenId: token.end === undefined ? 99 : token.end,
        retryCount: call.retry ?? 0,
        sideRule: call.side ? 'rule' : null,
      },
    }),
  }))
}

/** Text of ids: as `text` says, else a text of its own for every id. */
export const decoderOf =
  (text: Readonly<Record<string, string>> = {}) =>
  async (ids: Int32Array): Promise<string | null> =>
    Array.from(ids, id => text[String(id)] ?? `<${id}>`).join('')

export const streamOf = (trace: Trace): { s: number[]; m: number[] } => ({
  s: [...trace.promptIds, ...trace.responseIds],
  m: [...trace.promptIds.map(() => 0), ...trace.lossMask],
})

/** All orders of `items` up to `limit` items, else `samples` shuffles driven by `random`. */
export function* orders<T>(items: readonly T[], limit: number, samples: number, random: () => number): Generator<T[]> {
  if (items.length > limit) {
    for (let n = 0; n < samples; n++) yield shuffled(items, random)
    return
  }
  if (items.length === 0) yield []
  for (let i = 0; i < items.length; i++) {
    const rest = [...items.slice(0, i), ...items.slice(i + 1)]
    const head = items[i] as T // i is in range
    for (const tail of rest.length === 0 ? [[]] : orders(rest, limit, samples, random)) yield [head, ...tail]
  }
}

export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const copy = [...items]
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1))
    const held = copy[i] as T // both are in range
    copy[i] = copy[j] as T
    copy[j] = held
  }
  return copy
}

// After a run: do the harness's own idea of its history, what the engine sampled and what the service captured agree? Three views of
// the same calls, each taken from its own wire.

import { isObject } from '../../src/domain/json.js'
import { capturedTurn, type History, isJson, isSameTurn, printedTexts, readHistory, type Turn } from './history.js'
import type { Exchange } from './wire.js'

export interface CapturedCall {
  readonly completionId: string
  readonly agent: string
  readonly sideRule: string | null
  readonly join: string | null
  readonly trained: boolean
  readonly setAside: string | null
  readonly finish: string
  readonly startedAtMs: number
  readonly turn: Turn
  readonly sampledIds: readonly number[]
  readonly logprobs: readonly number[]
  /** Ids before the call in its trace. */
  readonly contextIds: readonly number[]
}

export interface Agreement {
  /** Of the calls in traces, those that the harness shows again as they were captured. */
  readonly matched: number
  readonly total: number
  /** How the harness showed each call again: in its next request, at its end, ... */
  readonly ways: Readonly<Record<string, number>>
  readonly problems: readonly string[]
}

type Json = Readonly<Record<string, unknown>>
const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isObject) : [])
const record = (value: unknown): Json => (isObject(value) ? value : {})

/** Every call that a result's traces hold, in order of capture. */
export function capturedCalls(result: Json): readonly CapturedCall[] {
  const traces = list(record(result['trajectory'])['traces'])
  const calls = traces.flatMap(trace => {
    const metadata = record(trace['metadata'])
    const responseIds = trace['response_ids'] as readonly number[]
    const logprobs = trace['response_logprobs'] as readonly number[]
    const messages = list(trace['response_messages'])
    return list(metadata['completion_metadata']).map((call): CapturedCall => {
      const [start, end] = [Number(call['start']), Number(call['end'])]
      return {
        completionId: String(call['completion_id']),
        agent: String(metadata['agent']),
        sideRule: call['side_rule'] === null ? null : String(call['side_rule']),
        join: call['join'] === null ? null : String(call['join']),
        trained: call['trained'] === true,
        setAside: call['set_aside'] === null ? null : String(call['set_aside']),
        finish: String(call['finish_reason']),
        startedAtMs: Number(call['started_at_ms']),
        turn: capturedTurn(messages[Number(call['message_index'])] ?? {}),
        sampledIds: responseIds.slice(start, end),
        logprobs: logprobs.slice(start, end),
        contextIds: [...(trace['prompt_ids'] as readonly number[]), ...responseIds.slice(0, start)],
      }
    })
  })
  // A call that a later trace has as its context stands there too, untrained.
  const once = new Map<string, CapturedCall>()
  for (const call of calls) if (call.trained || !once.has(call.completionId)) once.set(call.completionId, call)
  return [...once.values()].sort((a, b) => a.startedAtMs - b.startedAtMs)
}

/** Rule -> side calls, as the session's account names them. */
export function sideCalls(result: Json): Readonly<Record<string, number>> {
  const ledger = record(record(record(result['trajectory'])['metadata'])['ledger'])
  return record(ledger['side_calls']) as Record<string, number> // written by src/api/encode.ts
}

export const isGeneration = ({ path }: Exchange): boolean =>
  /\/(messages|responses|chat\/completions)(\?|$)|:(streamG|g)enerateContent/.test(path)

/** `harness`: exchanges with the gateway; `engine`: the gateway's with the engine; `stdout`: what the harness printed. */
export function agreement(
  result: Json,
  harness: readonly Exchange[],
  engine: readonly Exchange[],
  stdout: string,
): Agreement {
  const calls = capturedCalls(result)
  const ledger = record(record(record(result['trajectory'])['metadata'])['ledger'])
  const asked = harness.filter(isGeneration).map(exchange => ({ exchange, history: readHistory(exchange.body) }))
  const printed = printedTexts(stdout)
  const problems: string[] = []
  const ways: Record<string, number> = {}
  let matched = 0
  for (const call of calls) {
    const place = asked.findIndex(({ exchange }) => exchange.answer.includes(stem(call.completionId)))
    const own = asked[place]
    if (own === undefined) {
      problems.push(`${call.completionId}: no answer of this id reached the harness`)
      continue
    }
    const later = asked.slice(place + 1).map(({ exchange, history }) => ({ history, body: exchange.body }))
    const way = shownAgain(call, own.history, later, printed)
    if (way === null)
      problems.push(`${call.completionId} (${call.agent}): the harness shows it nowhere again: ${short(call.turn)}`)
    else {
      matched += 1
      ways[way] = (ways[way] ?? 0) + 1
    }
  }
  // Side calls are counted and set aside; no trace holds them.
  const whole = asked.filter(({ exchange }) => isWhole(exchange))
  const untraced = whole.filter(
    ({ exchange }) => !calls.some(call => exchange.answer.includes(stem(call.completionId))),
  )
  const aside = Object.values(sideCalls(result)).reduce((sum, count) => sum + count, 0)
  if (aside !== untraced.length)
    problems.push(`${untraced.length} answers reached the harness and are in no trace; ${aside} side calls are counted`)
  if (ledger['calls'] !== calls.length + untraced.length)
    problems.push(`the service counts ${ledger['calls']} calls, the harness got ${whole.length} whole answers`)
  problems.push(...engineProblems(calls, engine, Number(record(ledger['tokens'])['sampled'])))
  return { matched, total: calls.length, ways, problems }
}

function shownAgain(
  call: CapturedCall,
  own: History,
  later: readonly { readonly history: History; readonly body: string }[],
  printed: readonly string[],
): string | null {
  const { turn } = call
  const inPlace = later.some(({ history }) => {
    const echoed = history.opening === own.opening ? history.turns[own.turns.length] : undefined
    return echoed !== undefined && isSameTurn(turn, echoed)
  })
  if (inPlace) return 'next request'
  if (later.some(({ history }) => history.turns.some(echoed => isSameTurn(turn, echoed)))) return 'later request'
  // OpenCode replays a call of a tool that it does not have as one of its tool `invalid`, which names it.
  const renamed = later.some(({ history }) => {
    const echoed = history.opening === own.opening ? history.turns[own.turns.length] : undefined
    return (
      echoed !== undefined &&
      echoed.calls.length === turn.calls.length &&
      turn.calls.some(({ name }, index) => {
        const call = echoed.calls[index]
        return call?.name === 'invalid' && call.args.includes(`"tool":${JSON.stringify(name)}`)
      })
    )
  })
  if (renamed) return 'unknown tool, renamed by the harness'
  if (turn.text === '' && turn.calls.length === 0) return 'empty, nothing to show'
  if (turn.calls.some(({ args }) => !isJson(args))) {
    const next = later.find(({ history }) => history.opening === own.opening)?.history
    const echoed = next?.turns[own.turns.length]
    if (next?.turns.length === own.turns.length) return 'broken call, asked again'
    if (echoed?.calls.length === turn.calls.length) return 'broken call, repaired by the harness'
  }
  if (turn.text !== '' && printed.some(text => text.includes(turn.text))) return 'final output'
  if (turn.text !== '' && later.some(({ body }) => body.includes(JSON.stringify(turn.text).slice(1, -1))))
    return 'quoted'
  if (isShownAsText(turn, printed, later)) return 'broken call as text'
  if (call.finish === 'length' && later.length > 0) return 'cut at the limit, dropped'
  if (call.agent === 'sub' && turn.calls.some(({ args }) => later.some(({ body }) => reportedIn(body, args))))
    return 'reported'
  if (call.sideRule !== null) return 'side call'
  return null
}

/** An API whose arguments are an object gives a harness the text of a call that is no JSON. */
const isShownAsText = (turn: Turn, printed: readonly string[], later: readonly { readonly body: string }[]): boolean =>
  turn.calls.length > 0 &&
  turn.calls.every(
    ({ args }) =>
      !isJson(args) &&
      (printed.some(text => text.includes(args.trim())) ||
        later.some(({ body }) => body.includes(JSON.stringify(args.trim()).slice(1, -1)))),
  )

/** A sub-agent's last call hands in its result, which its parent is told. */
function reportedIn(body: string, args: string): boolean {
  const texts = [...args.matchAll(/:"([^"\\]{4,})"/g)].map(match => match[1] ?? '')
  return texts.length > 0 && texts.every(text => body.includes(text))
}

/** Ids, logprobs and contexts against the engine's own words. */
function engineProblems(
  calls: readonly CapturedCall[],
  engine: readonly Exchange[],
  counted: number,
): readonly string[] {
  const bySampled = new Map<string, EngineAnswer[]>()
  const sampled = { whole: 0, all: 0 }
  for (const { path, status, answer: text, complete } of engine) {
    if (!path.endsWith('/chat/completions') || status !== 200) continue
    const answer = readEngine(text)
    sampled.all += answer.sampledIds.length
    if (!complete) continue
    sampled.whole += answer.sampledIds.length
    const key = answer.sampledIds.join()
    bySampled.set(key, [...(bySampled.get(key) ?? []), answer])
  }
  const problems: string[] = []
  for (const call of calls) {
    const same = bySampled.get(call.sampledIds.join()) ?? []
    const exact = same.filter(
      ({ promptIds, logprobs }) =>
        (call.join !== null && call.join !== 'exact' ? true : promptIds.join() === call.contextIds.join()) &&
        (!call.trained ||
          logprobs.every((value, index) => Math.fround(value) === Math.fround(call.logprobs[index] ?? 1))),
    )
    if (same.length === 0) problems.push(`${call.completionId}: the engine sampled no such ids`)
    else if (exact.length === 0) problems.push(`${call.completionId}: context or logprobs are not the engine's`)
  }
  // Of a broken answer the service counts what reached it.
  if (counted < sampled.whole || counted > sampled.all)
    problems.push(`the engine sampled ${sampled.whole} to ${sampled.all} tokens, the service counts ${counted}`)
  return problems
}

interface EngineAnswer {
  readonly promptIds: readonly number[]
  readonly sampledIds: readonly number[]
  readonly logprobs: readonly number[]
}

/** vLLM's answer, whole or streamed. */
function readEngine(text: string): EngineAnswer {
  const chunks = text.startsWith('{')
    ? [record(JSON.parse(text))]
    : text
        .split('\n')
        .filter(line => line.startsWith('data: {'))
        .map(line => record(JSON.parse(line.slice(6))))
  const promptIds: number[] = []
  const sampledIds: number[] = []
  const logprobs: number[] = []
  for (const chunk of chunks) {
    if (Array.isArray(chunk['prompt_token_ids'])) promptIds.push(...(chunk['prompt_token_ids'] as number[]))
    const choice = list(chunk['choices'])[0]
    if (Array.isArray(choice?.['token_ids'])) sampledIds.push(...(choice['token_ids'] as number[]))
    for (const entry of list(record(choice?.['logprobs'])['content'])) logprobs.push(Number(entry['logprob']))
  }
  return { promptIds, sampledIds, logprobs }
}

/** Begun and ended as an answer; an error in the stream is none. */
const isWhole = ({ complete, status, answer }: Exchange): boolean =>
  complete && status === 200 && !/"type":"response\.failed"|^event: error|^data: \{"error":/m.test(answer)

/** The part of the service's id that each API's own id of the answer holds. */
const stem = (id: string): string => id.replace(/^msg_/, '')

const short = (turn: Turn): string => JSON.stringify(turn).slice(0, 160)

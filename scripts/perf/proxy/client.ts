// Load of the benchmark: closed loops (each session asks again at once) for the rate, calls at fixed times for the latency.

import { setMaxListeners } from 'node:events'
import { Agent, request } from 'node:http'
import { realClock } from '../../../actors/system/clock.js'
import { requestBody } from './work.js'

export interface Target {
  readonly url: string
  readonly agent: Agent
}

export const targetOf = (url: string): Target => ({ url, agent: new Agent({ keepAlive: true, maxSockets: 2_000 }) })

export interface Work {
  readonly bytes: number
  readonly stream: boolean
  /** Of the live sessions; the key of session `name` is `sk-<name>`. */
  readonly names: readonly string[]
}

export interface Load {
  readonly calls: number
  /** Answered, the warm-up's and those after the time included: what a processor's time is shared among. */
  readonly answered: number
  readonly perSecond: number
  /** Milliseconds from the call's start to the answer's last byte. */
  readonly p50Ms: number
  readonly p99Ms: number
}

/** The parts of a body around what makes a call its own. */
function template(bytes: number, stream: boolean): readonly [string, string] {
  const [before = '', after = ''] = requestBody(bytes, '#CALL#', stream).split('#CALL#')
  return [before, after]
}

let calls = 0

/** One call; milliseconds. Rejects on anything but 200 with a body that has an end. */
function call(
  target: Target,
  name: string,
  [before, after]: readonly [string, string],
  signal?: AbortSignal,
): Promise<number> {
  calls += 1
  const body = Buffer.from(before + calls + after)
  const startedAt = performance.now()
  return new Promise((resolve, reject) => {
    const outgoing = request(
      `${target.url}/v1/chat/completions`,
      {
        method: 'POST',
        agent: target.agent,
        ...(signal && { signal }),
        headers: {
          'content-type': 'application/json',
          'content-length': body.byteLength,
          authorization: `Bearer sk-${name}`,
        },
      },
      answer => {
        if (answer.statusCode !== 200) {
          reject(new Error(`${target.url} answered ${answer.statusCode}`))
          answer.resume()
          return
        }
        answer.on('data', () => {})
        answer.once('end', () => resolve(performance.now() - startedAt))
        answer.once('error', reject)
      },
    )
    outgoing.once('error', reject)
    outgoing.end(body)
  })
}

/** Each session has one call in flight at all times, for `ms` after a warm-up of `warmMs`. */
export async function closedLoop(target: Target, work: Work, ms: number, warmMs: number): Promise<Load> {
  const parts = template(work.bytes, work.stream)
  const from = performance.now() + warmMs
  const until = from + ms
  const taken: number[] = []
  let answered = 0
  const over = new AbortController()
  setMaxListeners(0, over.signal)
  // What runs at the end is cut: with 512 sessions and long prompts it would run for minutes.
  const cut = realClock()
    .sleep(warmMs + ms)
    .then(() => over.abort(TIME_IS_UP))
  const loop = async (name: string) => {
    while (!over.signal.aborted) {
      const startedAt = performance.now()
      const took = await call(target, name, parts, over.signal)
      answered += 1
      if (startedAt + took >= from && startedAt + took <= until) taken.push(took)
    }
  }
  await Promise.all(
    work.names.map(name =>
      loop(name).catch((cause: unknown) => {
        if (!over.signal.aborted) throw cause
      }),
    ),
  )
  await cut
  return loadOf(taken, ms, answered)
}

/** Calls begin `perSecond` times a second, whatever became of those before, for `ms`; sessions take turns. */
export async function paced(target: Target, work: Work, perSecond: number, ms: number): Promise<Load> {
  const parts = template(work.bytes, work.stream)
  const clock = realClock()
  const running: Promise<void>[] = []
  const taken: number[] = []
  const startedAt = performance.now()
  for (let sent = 0; performance.now() - startedAt < ms; ) {
    const due = Math.floor(((performance.now() - startedAt) / 1_000) * perSecond) + 1
    for (; sent < due; sent += 1) {
      const name = work.names[sent % work.names.length] ?? ''
      running.push(call(target, name, parts).then(took => void taken.push(took)))
    }
    await clock.sleep(1)
  }
  await Promise.all(running)
  return loadOf(taken, ms, taken.length)
}

const TIME_IS_UP = new Error('the time of the cell is up')

function loadOf(taken: number[], ms: number, answered: number): Load {
  taken.sort((a, b) => a - b)
  const at = (share: number) => taken[Math.min(taken.length - 1, Math.floor(taken.length * share))] ?? Number.NaN
  return { calls: taken.length, answered, perSecond: (taken.length * 1_000) / ms, p50Ms: at(0.5), p99Ms: at(0.99) }
}

/** `count` calls, at most `atOnce` in flight. */
export async function countedCalls(target: Target, work: Work, count: number): Promise<void> {
  const parts = template(work.bytes, work.stream)
  let left = count
  await Promise.all(
    work.names.map(async name => {
      while (left > 0) {
        left -= 1
        await call(target, name, parts)
      }
    }),
  )
}

/** A conversation of `turns` calls in each session: each request repeats the one before and adds `bytes`. */
export async function conversations(
  target: Target,
  names: readonly string[],
  turns: number,
  bytes: number,
): Promise<void> {
  for (let turn = 1; turn <= turns; turn += 1) {
    const body = requestBody(bytes * turn, '', false)
    const parts = [body.slice(0, -1), `,"seed":1${body.slice(-1)}`] as const
    // The call's number stands in front of a comma: a JSON number of a field the gateway ignores.
    const numbered = [`${parts[0]},"user":"`, `"${parts[1]}`] as const
    for (let from = 0; from < names.length; from += 32) {
      await Promise.all(names.slice(from, from + 32).map(name => call(target, name, numbered)))
    }
  }
}

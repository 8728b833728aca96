// How the probe calls: the same bodies that the gateway sends (the profile builds them), with fields added or left out. Failures of
// a server are values; an aborted probe rejects.

import type { SamplingInForce } from '../../domain/completion.js'
import type { CanonicalMessage, CanonicalRequest, ToolDefinition } from '../../domain/conversation.js'
import { RolloutError } from '../../domain/errors.js'
import type { JsonObject } from '../../domain/json.js'
import type { HttpClient } from '../../http/client.js'
import { authorization, withoutKey } from '../../http/credentials.js'
import { eventsOf } from '../../http/event-stream.js'
import type { UpstreamAnswer, UpstreamErrorInfo, UpstreamProfile } from '../base.js'
import { replicaUrl } from '../routing.js'
import { objectOf, parseJson } from '../shared/read.js'

export interface AskOptions {
  readonly messages: readonly CanonicalMessage[]
  readonly tools?: readonly ToolDefinition[]
  readonly sampling?: Partial<SamplingInForce>
  readonly stream?: boolean
  /** Laid over the body. */
  readonly extra?: JsonObject
  /** Fields taken out of the body. */
  readonly without?: readonly string[]
  /** Default: the first replica. */
  readonly url?: string
}

export type Asked =
  | { readonly ok: true; readonly answer: UpstreamAnswer; readonly isStreamed: boolean }
  | { readonly ok: false; readonly error: UpstreamErrorInfo; readonly isUnreachable: boolean }

export interface Asker {
  readonly profile: UpstreamProfile
  readonly model: string
  readonly urls: readonly string[]
  generate(options: AskOptions): Promise<Asked>
  /** A JSON answer of another route; null where the server has none or it fails. */
  json(method: 'GET' | 'POST', path: string, body?: JsonObject): Promise<JsonObject | null>
  /** False where the profile buffers calls, since the server tells no ids in streams. */
  readonly streams: boolean
  /** HTTP calls so far. */
  readonly calls: number
}

/** One small call of a probe may take this long on a busy server. */
const CALL_TIMEOUT_MS = 60_000
/** Recognisable in the server's log. */
const PROBE_KEY = 'sextant-probe'

/** Nothing that shapes the distribution: what the gateway asks for by default. */
export const NEUTRAL: SamplingInForce = {
  temperature: 1,
  topP: 1,
  topK: -1,
  minP: 0,
  presencePenalty: 0,
  frequencyPenalty: 0,
  maxTokens: 96,
  seed: null,
}

const STREAMED: AskOptions = { messages: [{ role: 'user', content: 'hi' }], stream: true }

export interface AskerOptions {
  readonly client: HttpClient
  readonly profile: UpstreamProfile
  readonly urls: readonly string[]
  readonly model: string
  readonly apiKey?: string | null | undefined
  readonly signal: AbortSignal
}

export function asker({ client, profile, urls, model, apiKey, signal }: AskerOptions): Asker {
  let calls = 0
  const send = (method: 'GET' | 'POST', url: string, headers: Readonly<Record<string, string>>, body?: JsonObject) => {
    calls += 1
    return client.request({
      method,
      url,
      headers: { 'content-type': 'application/json', ...headers, ...authorization(apiKey) },
      ...(body && { body: JSON.stringify(body) }),
      signal,
      headersTimeoutMs: CALL_TIMEOUT_MS,
      bodyTimeoutMs: CALL_TIMEOUT_MS,
    })
  }

  const settings = (options: AskOptions) => ({
    model,
    sampling: { ...NEUTRAL, ...options.sampling },
    stop: [],
    affinityKey: PROBE_KEY,
  })

  async function generate(options: AskOptions): Promise<Asked> {
    const engine = profile.buildRequest(requestOf(options), settings(options))
    const body = Object.fromEntries(
      Object.entries({ ...engine.body, ...options.extra }).filter(([name]) => !options.without?.includes(name)),
    )
    const response = await send('POST', replicaUrl(options.url ?? urls[0] ?? '', engine.path), engine.headers, body)
    if (response.status < 200 || response.status > 299) {
      const error = profile.readError(response.status, response.headers, await response.text())
      return { ok: false, error: { ...error, message: withoutKey(error.message, apiKey) }, isUnreachable: false }
    }
    if (!/text\/event-stream/i.test(response.headers['content-type'] ?? '')) {
      const parsed = objectOf(parseJson(await response.text()))
      if (parsed === null) return failed(502, 'the answer is no JSON object')
      return { ok: true, answer: profile.readAnswer(parsed), isStreamed: false }
    }
    const reader = profile.streamReader()
    for await (const { data } of eventsOf(response.chunks())) {
      for (const delta of reader.push(data))
        if (delta.type === 'error') return failed(delta.status, withoutKey(delta.message, apiKey))
    }
    const { answer, complete } = reader.answer()
    return complete ? { ok: true, answer, isStreamed: true } : failed(502, 'the stream ended without a finish reason')
  }

  return {
    profile,
    model,
    urls,
    streams: profile.buildRequest(requestOf(STREAMED), settings(STREAMED)).stream,
    get calls() {
      return calls
    },
    async generate(options) {
      try {
        return await generate(options)
      } catch (cause) {
        if (signal.aborted || !(cause instanceof RolloutError)) throw cause
        return { ...failed(cause.status, cause.message), isUnreachable: cause.code === 'UPSTREAM_UNREACHABLE' }
      }
    },
    async json(method, path, body) {
      try {
        const response = await send(method, replicaUrl(urls[0] ?? '', path), {}, body)
        const text = await response.text()
        return response.status === 200 ? objectOf(parseJson(text)) : null
      } catch (cause) {
        if (signal.aborted || !(cause instanceof RolloutError)) throw cause
        return null
      }
    },
  }
}

const failed = (status: number, message: string): Extract<Asked, { ok: false }> => ({
  ok: false,
  error: { status, message, contextLength: null, retryAfter: null },
  isUnreachable: false,
})

/** The canonical form of a probe's question, for counts as well. */
export const requestOf = ({ messages, tools = [], stream = false }: AskOptions): CanonicalRequest => ({
  dialect: 'openai_chat',
  model: 'probe',
  messages,
  tools,
  sampling: {},
  stream,
  losses: [],
  echo: {},
})

export const user = (content: string): CanonicalMessage => ({ role: 'user', content })

/** A server's own words, short enough for a line. */
export const inBrief = (message: string): string => {
  const line = message.replace(/\s+/g, ' ').trim()
  return line.length > 160 ? `${line.slice(0, 157)}...` : line
}

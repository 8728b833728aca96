// Text of token ids for the build: a configured tokenizer, else the engine's own `/detokenize`, else unknown.

import type { Decode } from '../../src/builders/base.js'
import type { Plan, UpstreamPlan } from '../../src/config/plan.js'
import type { SessionLedger } from '../../src/domain/completion.js'
import { isObject, type JsonObject } from '../../src/domain/json.js'
import type { HttpClient } from '../../src/http/client.js'
import { authorization } from '../../src/http/credentials.js'
import type { UpstreamProfile } from '../../src/upstreams/base.js'
import { upstreams } from '../../src/upstreams/registry.js'
import { replicaOrder } from '../../src/upstreams/routing.js'

/** A loopback answer takes a few; a loaded engine may take longer. */
const DETOKENIZE_LIMIT_MS = 20_000

export interface Decoder {
  readonly decode: Decode
  close(): Promise<void>
}

/** Decoder for the calls of `ledger`. Tokenizer and HTTP client are loaded only where they are needed: most joins are exact. */
export function decoderFor(ledger: SessionLedger, plan: Plan, signal: AbortSignal): Decoder {
  const id = ledger.calls[0]?.record.upstream ?? plan.models['default']?.upstream
  const upstream = plan.upstreams.find(entry => entry.id === id)
  if (upstream === undefined) return { decode: async () => null, close: async () => {} }
  const { tokenizer } = upstream
  if (tokenizer !== null) {
    const decode: Decode = async ids => {
      const { loadTokenizer } = await import('../../src/tokenizer/tokenizer.js')
      return loadTokenizer(tokenizer).decode(ids)
    }
    return { decode, close: async () => {} }
  }
  const profile = profileOf(upstream)
  if (profile === null) return { decode: async () => null, close: async () => {} }
  const url = replicaOrder(upstream.urls, ledger.sessionId)[0] ?? ''
  let client: Promise<HttpClient> | null = null
  const connect = () => {
    client ??= import('../../src/http/client.js').then(http => http.createHttpClient({ connections: 8 }))
    return client
  }
  const close = async () => (await client)?.close()
  return { decode: askEngine(connect, profile, url, upstream, signal), close }
}

const profileOf = ({ profile }: UpstreamPlan): UpstreamProfile | null =>
  Object.hasOwn(upstreams, profile) ? upstreams[profile as keyof typeof upstreams] : null

function askEngine(
  connect: () => Promise<HttpClient>,
  profile: UpstreamProfile,
  url: string,
  { modelServed, apiKey }: UpstreamPlan,
  signal: AbortSignal,
): Decode {
  return async ids => {
    const wanted = profile.detokenizeRequest(ids, modelServed)
    if (wanted === null) return null
    const client = await connect()
    const answer = await client.request({
      method: 'POST',
      url: `${url.replace(/\/$/, '')}${wanted.path}`,
      headers: { 'content-type': 'application/json', ...authorization(apiKey) },
      body: JSON.stringify(wanted.body),
      headersTimeoutMs: DETOKENIZE_LIMIT_MS,
      signal,
    })
    const text = await answer.text()
    // An engine that cannot tell leaves the join at `unknown`; it does not fail the build.
    if (answer.status !== 200) return null
    const body: unknown = JSON.parse(text)
    return isObject(body) ? profile.readDetokenized(body as JsonObject) : null
  }
}

// Which line feeds a chat template writes by itself around the text of an answer: asked of the engine's own tokenizer once per model,
// by one short conversation. Where the engine cannot tell, none are known, and texts go as they are.

import type { CanonicalMessage, CanonicalRequest } from '../../src/domain/conversation.js'
import type { JsonObject } from '../../src/domain/json.js'
import type { HttpClient } from '../../src/http/client.js'
import { authorization } from '../../src/http/credentials.js'
import { parseJsonObject } from '../../src/http/json-body.js'
import { replicaUrl } from '../../src/upstreams/routing.js'
import type { UpstreamTarget } from './models.js'
import { NO_FEEDS, type TemplateFeeds } from './turn-memory.js'

/** Never rejects. */
export type AskFeeds = (target: UpstreamTarget, request: CanonicalRequest, model: string) => Promise<TemplateFeeds>

const TIMEOUT_MS = 10_000
/** A failed question is put again after this long. */
const RETRY_AFTER_MS = 60_000
/** Words that no template writes. */
const THINKING = 'Rq7xthinking'
const TEXT = 'Zq7xtext'
const PROBE: readonly CanonicalMessage[] = [
  { role: 'user', content: 'hi' },
  {
    role: 'assistant',
    content: TEXT,
    reasoning: THINKING,
    toolCalls: [{ id: 'call_a', name: 'probe', arguments: '{}' }],
  },
]

export function templateFeeds(client: HttpClient, now: () => number): AskFeeds {
  const known = new Map<string, { readonly feeds: Promise<TemplateFeeds>; failedAtMs: number | null }>()

  const post = async (
    url: string,
    apiKey: string | null | undefined,
    { path, body }: { path: string; body: JsonObject },
  ): Promise<JsonObject> => {
    const answer = await client.request({
      method: 'POST',
      url: replicaUrl(url, path),
      headers: { 'content-type': 'application/json', ...authorization(apiKey) },
      body: JSON.stringify(body),
      headersTimeoutMs: TIMEOUT_MS,
      bodyTimeoutMs: TIMEOUT_MS,
    })
    return parseJsonObject(await answer.text())
  }

  /** null = the engine cannot tell. Rejects when it fails. */
  async function ask(
    { plan, profile }: UpstreamTarget,
    request: CanonicalRequest,
    model: string,
  ): Promise<TemplateFeeds | null> {
    const [url] = plan.urls
    const question = profile.countRequest({ ...request, messages: PROBE, tools: [] }, model, false)
    if (question === null || url === undefined) return null
    const ids = profile.readTokens(await post(url, plan.apiKey, question))
    const back = ids && profile.detokenizeRequest(ids, model)
    return back === null ? null : feedsOf(profile.readDetokenized(await post(url, plan.apiKey, back)))
  }

  return (target, request, model) => {
    const key = JSON.stringify([target.plan.id, model])
    const last = known.get(key)
    if (last && (last.failedAtMs === null || now() - last.failedAtMs < RETRY_AFTER_MS)) return last.feeds
    const entry = {
      failedAtMs: null as number | null,
      feeds: ask(target, request, model)
        .catch(() => {
          entry.failedAtMs = now()
          return null
        })
        .then(feeds => feeds ?? NO_FEEDS),
    }
    known.set(key, entry)
    return entry.feeds
  }
}

/** Reads the rendered probe. */
export function feedsOf(rendered: string): TemplateFeeds {
  const thinking = rendered.indexOf(THINKING)
  const text = rendered.indexOf(TEXT, Math.max(0, thinking))
  if (text === -1) return NO_FEEDS
  const between = thinking === -1 ? '' : rendered.slice(thinking + THINKING.length, text)
  const after = rendered.slice(text + TEXT.length)
  return {
    afterThinking: /\n*$/.exec(between)?.[0].length ?? 0,
    beforeCall: /^\n*/.exec(after)?.[0].length ?? 0,
  }
}

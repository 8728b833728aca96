// What the engine's tokenizer route tells: exact prompt counts, how long the template's generation prompt is, and which token ends
// a turn. All of it is optional: where an engine cannot tell, the facts are null or 0 and calls go on.

import { createHash } from 'node:crypto'
import type { CanonicalMessage, CanonicalRequest } from '../../src/domain/conversation.js'
import type { JsonObject } from '../../src/domain/json.js'
import type { HttpClient } from '../../src/http/client.js'
import { authorization } from '../../src/http/credentials.js'
import { parseJsonObject } from '../../src/http/json-body.js'
import { replicaUrl } from '../../src/upstreams/routing.js'
import type { UpstreamTarget } from './models.js'

export interface TemplateFacts {
  /** Tokens at the end of each prompt that the template adds to make the model speak; 0 = not known. */
  readonly generationPromptLength: number
  /** null = not known. */
  readonly endTokenId: number | null
  /** Context window in tokens as the engine tells it; null = not known. */
  readonly window: number | null
}

export interface TokenFacts {
  /** Tokens of the prompt of `request`, generation prompt included; null where the engine cannot tell. Equal bodies are counted once. */
  count(target: UpstreamTarget, request: CanonicalRequest, model: string): Promise<number | null>
  /** Cached per upstream and what of the request the template reads. Never rejects. */
  template(target: UpstreamTarget, request: CanonicalRequest, model: string): Promise<TemplateFacts>
}

const UNKNOWN: TemplateFacts = { generationPromptLength: 0, endTokenId: null, window: null }
const CACHED_COUNTS = 512
/** The first answer of an upstream waits for these facts: a tokenizer that hangs must not hold it for long. */
const COUNT_TIMEOUT_MS = 10_000
/** A failed question is put again after this long. */
const RETRY_AFTER_MS = 60_000

export function tokenFacts(client: HttpClient, now: () => number): TokenFacts {
  const counts = new Map<string, Promise<number | null>>()
  const templates = new Map<string, { readonly facts: Promise<TemplateFacts>; failedAtMs: number | null }>()

  /** Answer of the tokenizer route; null where there is none. Rejects when it fails. */
  async function ask(
    target: UpstreamTarget,
    request: CanonicalRequest,
    model: string,
    addGenerationPrompt: boolean,
  ): Promise<JsonObject | null> {
    const question = target.profile.countRequest(request, model, addGenerationPrompt)
    const url = target.plan.urls[0]
    if (question === null || url === undefined) return null
    const answer = await client.request({
      method: 'POST',
      url: replicaUrl(url, question.path),
      headers: { 'content-type': 'application/json', ...authorization(target.plan.apiKey) },
      body: JSON.stringify(question.body),
      headersTimeoutMs: COUNT_TIMEOUT_MS,
      bodyTimeoutMs: COUNT_TIMEOUT_MS,
    })
    const text = await answer.text()
    return answer.status === 200 ? parseJsonObject(text) : null
  }

  async function count(target: UpstreamTarget, request: CanonicalRequest, model: string): Promise<number | null> {
    try {
      const body = await ask(target, request, model, true)
      return body && target.profile.readCount(body)
    } catch {
      // A count is an aid: without it the engine itself refuses what is too long.
      return null
    }
  }

  async function askTemplate(
    target: UpstreamTarget,
    request: CanonicalRequest,
    model: string,
  ): Promise<TemplateFacts | null> {
    const probe = (messages: readonly CanonicalMessage[], addGenerationPrompt: boolean) =>
      ask(target, { ...request, messages, tools: [] }, model, addGenerationPrompt)
    try {
      const withPrompt = await probe([HELLO], true)
      if (withPrompt === null) return null
      const without = await probe([HELLO], false)
      if (without === null) return null
      const answers = [
        await probe([HELLO, { role: 'assistant', content: 'a' }], false),
        await probe([HELLO, { role: 'assistant', content: '7' }], false),
      ].map(body => body && target.profile.readTokens(body))
      return {
        generationPromptLength: Math.max(0, target.profile.readCount(withPrompt) - target.profile.readCount(without)),
        endTokenId: firstOfCommonEnd(answers[0] ?? null, answers[1] ?? null),
        window: target.profile.readWindow(withPrompt),
      }
    } catch {
      return null
    }
  }

  return {
    count(target, request, model) {
      const question = target.profile.countRequest(request, model, true)
      if (question === null) return Promise.resolve(null)
      const key = createHash('sha256')
        .update(`${target.plan.id}\0${JSON.stringify(question.body)}`)
        .digest('base64')
      const known = counts.get(key)
      if (known !== undefined) return known
      const asked = count(target, request, model)
      counts.set(key, asked)
      const oldest = counts.keys().next().value
      if (counts.size > CACHED_COUNTS && oldest !== undefined) counts.delete(oldest)
      void asked.then(tokens => {
        if (tokens === null) counts.delete(key)
      })
      return asked
    },
    template(target, request, model) {
      const key = JSON.stringify([
        target.plan.id,
        model,
        request.enableThinking ?? null,
        request.reasoningEffort ?? null,
      ])
      const known = templates.get(key)
      if (known && (known.failedAtMs === null || now() - known.failedAtMs < RETRY_AFTER_MS)) return known.facts
      const asked = askTemplate(target, request, model)
      const entry = { facts: asked.then(facts => facts ?? UNKNOWN), failedAtMs: null as number | null }
      templates.set(key, entry)
      void asked.then(facts => {
        if (facts === null) entry.failedAtMs = now()
      })
      return entry.facts
    },
  }
}

const HELLO: CanonicalMessage = { role: 'user', content: 'hi' }

/** Two answers that differ only in their text end alike: with the end token and the template's glue after it. */
function firstOfCommonEnd(a: Int32Array | null, b: Int32Array | null): number | null {
  if (a === null || b === null) return null
  let length = 0
  while (length < Math.min(a.length, b.length) && a[a.length - 1 - length] === b[b.length - 1 - length]) length += 1
  return length === 0 || length === a.length ? null : (a[a.length - length] ?? null)
}

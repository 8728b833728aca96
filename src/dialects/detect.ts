// Which dialect and operation a request head means. The route table is strict: what no dialect knows is never a generation (obligation
// The path alone decides for calls; only model lists, whose path three APIs share, look at headers.

import type { Dialect, HttpRequestHead, RouteMatch } from './base.js'
import { dialects } from './registry.js'

export interface Detected {
  readonly dialect: Dialect
  readonly route: RouteMatch
}

/** null = no route of a model API: 404 in the shape of `nearestDialect`. Header names are lower-case. */
export function detect(head: HttpRequestHead): Detected | null {
  for (const dialect of Object.values(dialects)) {
    const route = dialect.route(head)
    if (route !== null) return { dialect, route }
  }
  return null
}

/** The dialect in whose shape an unknown path or a broken request is refused; Chat where none fits (case life-cycle-11). */
export function nearestDialect({ path, headers }: HttpRequestHead): Dialect {
  if (/\/v1beta\d*(\/|$)|generateContent|:countTokens/i.test(path) || headers['x-goog-api-key'] !== undefined) {
    return dialects.google_generate
  }
  if (/\/messages(\/|$)/.test(path) || headers['anthropic-version'] !== undefined) return dialects.anthropic_messages
  return /\/responses(\/|$)/.test(path) ? dialects.openai_responses : dialects.openai_chat
}

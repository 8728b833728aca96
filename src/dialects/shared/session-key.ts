// Where a client puts the session key: one rule for all dialects, since harnesses mix them (a Gemini CLI in bearer mode sends two headers).
// Pure look-up: whether the key is known is for the proxy. Keys are secrets and never appear in messages.

import type { HttpRequestHead } from '../base.js'

/** `Authorization: Bearer`, `x-api-key` (also with underscores), `x-goog-api-key`, query `key`, in this order; null = none. */
export function findSessionKey(head: HttpRequestHead): string | null {
  const bearer = /^Bearer[ \t]+(\S+)[ \t]*$/i.exec(head.headers['authorization'] ?? '')
  const carriers = [
    bearer?.[1],
    head.headers['x-api-key'],
    head.headers['x_api_key'],
    head.headers['x-goog-api-key'],
    head.query.get('key'),
  ]
  for (const carrier of carriers) {
    const key = carrier?.trim()
    if (key !== undefined && key !== '') return key
  }
  return null
}

// Which replica of an upstream a session's calls go to: always the same one while it lives, since most of a prompt is in its
// cache (rendezvous hashing: taking a replica out moves only its own sessions).

import { createHash } from 'node:crypto'

/** `urls` in order of preference for `key`; the first is the session's home. Same key, same order. */
export function replicaOrder(urls: readonly string[], key: string): readonly string[] {
  const weight = (url: string) => createHash('sha256').update(key).update('\0').update(url).digest('hex')
  return urls
    .map(url => ({ url, weight: weight(url) }))
    .sort((a, b) => (a.weight < b.weight ? -1 : a.weight > b.weight ? 1 : 0))
    .map(({ url }) => url)
}

/** Base URLs are configured with or without `/v1`; paths of profiles carry it. */
export const replicaUrl = (base: string, path: string): string => base.replace(/\/+$/, '').replace(/\/v1$/, '') + path

// Echoed turns of a request replaced by the recorded ones, as the chat template behind the upstream wants them.

import type { CanonicalRequest } from '../../src/domain/conversation.js'
import type { UpstreamTarget } from './models.js'
import type { ProxyServices } from './services.js'
import type { SessionEntry } from './sessions.js'
import { NO_FEEDS, type TurnMemory } from './turn-memory.js'

/** Asks the engine's tokenizer once per template, and only when a recorded text has line feeds at its ends. */
export async function restored(
  { askFeeds, rulesOff: off }: ProxyServices,
  { memory }: SessionEntry,
  upstream: UpstreamTarget,
  model: string,
  request: CanonicalRequest,
): Promise<ReturnType<TurnMemory['restore']>> {
  const isAsking = memory.hasFeeds && !off.has('line_feeds_left_to_template')
  const feeds = isAsking ? await askFeeds(upstream, request, model) : NO_FEEDS
  return memory.restore(request.messages, { off, feeds })
}

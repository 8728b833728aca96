// The dialects. Order matters only to detection: the first whose route matches takes the request; their paths do not overlap except model
// lists, which tell themselves apart by headers and therefore come before OpenAI's.

import type { DialectId } from '../domain/conversation.js'
import { anthropicMessages } from './anthropic-messages.js'
import type { Dialect } from './base.js'
import { googleGenerate } from './google-generate.js'
import { openaiChat } from './openai-chat.js'
import { openaiResponses } from './openai-responses.js'

export const dialects = {
  google_generate: googleGenerate,
  anthropic_messages: anthropicMessages,
  openai_responses: openaiResponses,
  openai_chat: openaiChat,
} as const satisfies Record<DialectId, Dialect>

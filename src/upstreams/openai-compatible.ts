// Any server that speaks OpenAI's Chat Completions and no more: text only. It tells no token ids, so nothing of it is ever
// trained; it serves side models (titles, routers) and dialect tests.

import type { UpstreamProfile } from './base.js'
import { finishOf, firstChoice, logprobEntriesOf, messageParts, usageOf } from './shared/chat-answer.js'
import { decodingFields, promptFields } from './shared/chat-request.js'
import { chatStreamReader } from './shared/chat-stream.js'
import { readError } from './shared/errors.js'
import { malformed, textOf } from './shared/read.js'

export const openaiCompatible: UpstreamProfile = {
  id: 'openai_compatible',
  summary: "any server of OpenAI's Chat Completions: no token ids, never trainable",
  capturesIds: false,
  buildRequest(request, options) {
    const prompt = promptFields(request, { reasoningKeys: ['reasoning_content'], parsesArguments: false })
    return {
      path: '/v1/chat/completions',
      headers: {},
      body: {
        model: options.model,
        ...prompt.body,
        ...decodingFields(request, options, false),
        stream: request.stream,
        ...(request.stream && { stream_options: { include_usage: true } }),
      },
      stream: request.stream,
      losses: prompt.losses,
    }
  },
  readAnswer(body) {
    const choice = firstChoice(body)
    const parts = messageParts(choice)
    const engineFinish = textOf(choice['finish_reason'])
    return {
      ...parts,
      finish: finishOf(engineFinish, parts.toolCalls.length > 0),
      engineFinish: engineFinish ?? '',
      stopSequence: null,
      usage: usageOf(body['usage']),
      promptIds: null,
      sampledIds: null,
      logprobs: null,
      get logprobContent() {
        return logprobEntriesOf(choice)
      },
      weightVersion: null,
    }
  },
  streamReader() {
    const reader = chatStreamReader()
    return {
      push: data => reader.push(data),
      answer() {
        const { answer, complete } = reader.answer()
        // Ids that such a server happens to send are not vouched for.
        return { complete, answer: { ...answer, promptIds: null, sampledIds: null, logprobs: null } }
      },
    }
  },
  readError,
  // Some such servers apply grammars and some ignore them; nothing of them is trained on anyway.
  grammar: () => null,
  countRequest: () => null,
  readCount() {
    throw malformed('counts are not served by this kind of server')
  },
  readTokens: () => null,
  readWindow: () => null,
  detokenizeRequest: () => null,
  readDetokenized() {
    throw malformed('detokenization is not served by this kind of server')
  },
  healthPath: '/v1/models',
}

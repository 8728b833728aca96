// vLLM: Chat Completions with ids in the answer, streaming and not (`return_token_ids`; sampled ids in each chunk, prompt ids in
// the first). `top_logprobs` is 0, not absent: without it older builds tell no logprobs. Its tokenizer routes give exact counts.

import type { UpstreamProfile } from './base.js'
import {
  finishOf,
  firstChoice,
  logprobContentOf,
  logprobEntriesOf,
  logprobsOf,
  messageParts,
  usageOf,
  weightSpansOf,
} from './shared/chat-answer.js'
import { type ChatRequestRules, decodingFields, promptFields } from './shared/chat-request.js'
import { chatStreamReader } from './shared/chat-stream.js'
import { readError } from './shared/errors.js'
import { grammarOf } from './shared/grammar.js'
import { idsOf, textOf } from './shared/read.js'
import { tokenizerRoutes } from './shared/tokenizer-routes.js'

const rules: ChatRequestRules = { reasoningKeys: ['reasoning', 'reasoning_content'], parsesArguments: true }

export const vllm: UpstreamProfile = {
  id: 'vllm',
  summary: 'vLLM server: token ids and logprobs, streamed live',
  capturesIds: true,
  buildRequest(request, options) {
    const prompt = promptFields(request, rules)
    return {
      path: '/v1/chat/completions',
      headers: { 'x-session-id': options.affinityKey },
      body: {
        model: options.model,
        ...prompt.body,
        ...decodingFields(request, options, true),
        logprobs: true,
        top_logprobs: 0,
        return_token_ids: true,
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
    const spans = weightSpansOf(choice['weight_versions'])
    return {
      ...parts,
      finish: finishOf(engineFinish, parts.toolCalls.length > 0),
      engineFinish: engineFinish ?? '',
      stopSequence: textOf(choice['stop_reason']),
      usage: usageOf(body['usage']),
      promptIds: idsOf(body['prompt_token_ids']) ?? idsOf(choice['prompt_token_ids']),
      sampledIds: idsOf(choice['token_ids']),
      logprobs: logprobsOf(logprobContentOf(choice)),
      get logprobContent() {
        return logprobEntriesOf(choice)
      },
      weightVersion: null,
      ...(spans !== null && { weightSpans: spans }),
    }
  },
  streamReader: chatStreamReader,
  grammar: grammarOf,
  readError,
  countRequest(request, model, addGenerationPrompt) {
    return {
      path: '/tokenize',
      body: { model, ...promptFields(request, rules).body, add_generation_prompt: addGenerationPrompt },
    }
  },
  ...tokenizerRoutes('prompt'),
  healthPath: '/health',
}

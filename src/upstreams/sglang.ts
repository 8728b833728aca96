// SGLang: Chat Completions with ids by `return_prompt_token_ids` and `return_meta_info`, which it refuses together with `stream`:
// calls are buffered. Ids and logprobs come from meta_info, since `logprobs.content` may lack trimmed stop tokens.

import type { JsonObject } from '../domain/json.js'
import type { UpstreamProfile } from './base.js'
import {
  finishOf,
  firstChoice,
  logprobContentOf,
  logprobEntriesOf,
  logprobsOf,
  messageParts,
  usageOf,
  versionOf,
  weightSpansOf,
} from './shared/chat-answer.js'
import { decodingFields, promptFields } from './shared/chat-request.js'
import { chatStreamReader } from './shared/chat-stream.js'
import { readError } from './shared/errors.js'
import { grammarOf } from './shared/grammar.js'
import { countOf, idsOf, listOf, objectOf, textOf } from './shared/read.js'
import { tokenizerRoutes } from './shared/tokenizer-routes.js'

export const sglang: UpstreamProfile = {
  id: 'sglang',
  summary: 'SGLang server: token ids and logprobs, buffered since it cannot stream them',
  capturesIds: true,
  buildRequest(request, options) {
    const prompt = promptFields(request, { reasoningKeys: ['reasoning_content'], parsesArguments: true })
    return {
      path: '/v1/chat/completions',
      headers: { 'x-smg-routing-key': options.affinityKey },
      body: {
        model: options.model,
        ...prompt.body,
        ...decodingFields(request, options, true),
        logprobs: true,
        top_logprobs: 0,
        return_prompt_token_ids: true,
        return_meta_info: true,
        stream: false,
      },
      stream: false,
      losses: prompt.losses,
    }
  },
  readAnswer(body) {
    const choice = firstChoice(body)
    const parts = messageParts(choice)
    const meta = objectOf(choice['meta_info'])
    const finish = textOf(choice['finish_reason']) ?? textOf(objectOf(meta?.['finish_reason'])?.['type'])
    const sampled = sampledOf(choice, body)
    const usage = usageOf(body['usage'])
    const spans = weightSpansOf(meta?.['weight_versions'] ?? choice['weight_versions'])
    return {
      ...parts,
      finish: finishOf(finish, parts.toolCalls.length > 0),
      engineFinish: finish ?? '',
      stopSequence: textOf(choice['matched_stop']),
      usage: usage && { ...usage, cachedTokens: usage.cachedTokens || (countOf(meta?.['cached_tokens']) ?? 0) },
      promptIds: idsOf(choice['prompt_token_ids']) ?? idsOf(choice['input_token_ids']),
      sampledIds: sampled.ids,
      logprobs: sampled.logprobs,
      get logprobContent() {
        return logprobEntriesOf(choice)
      },
      weightVersion: versionOf(meta?.['weight_version']),
      ...(spans !== null && { weightSpans: spans }),
    }
  },
  // Only for a server in between that streams although it was asked not to.
  streamReader: chatStreamReader,
  grammar: grammarOf,
  readError,
  // Its tokenizer route takes text only, so the template's own tokens cannot be counted.
  countRequest: () => null,
  ...tokenizerRoutes('text'),
  healthPath: '/health',
}

/** `output_token_logprobs` is `[[logprob, id, text or null], ...]`; one incomplete entry makes its logprobs worthless. */
function sampledOf(choice: JsonObject, body: JsonObject): { ids: Int32Array | null; logprobs: Float32Array | null } {
  const list = objectOf(choice['meta_info'])?.['output_token_logprobs']
  const plainIds = idsOf(choice['token_ids']) ?? idsOf(objectOf(body['sglext'])?.['token_ids'])
  if (!Array.isArray(list)) return { ids: plainIds, logprobs: logprobsOf(logprobContentOf(choice)) }
  const entries = list.map(entry => listOf(entry))
  const ids = idsOf(entries.map(entry => entry[1]))
  const values = entries.map(entry => entry[0])
  const isComplete = values.every((value): value is number => typeof value === 'number' && Number.isFinite(value))
  return { ids: ids ?? plainIds, logprobs: isComplete && ids !== null ? Float32Array.from(values) : null }
}

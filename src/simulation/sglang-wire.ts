// SGLang's answer bodies. Ids and logprobs stand in `meta_info` of the choice, the ids of the prompt beside it; neither can be had
// together with a stream. Errors are flat, thinking is `reasoning_content`, `matched_stop` tells the end token too.

import type { JsonObject } from '../domain/json.js'
import type { Tokenizer } from '../tokenizer/tokenizer.js'
import { type AnswerWire, logprobsBody, messageCalls, shortest, usageBody } from './chat-wire.js'
import { EngineError } from './errors.js'
import type { Ending } from './generate.js'

const matchedStop = (ending: Ending, tokenizer: Tokenizer) =>
  ending.matched ?? (ending.reason === 'stop' ? tokenizer.endTokenId : null)

export const sglangWire: AnswerWire = {
  parserReasoning: () => 'tagged',
  clampsMaxTokens: false,
  checksModel: false,
  reasoningKey: 'reasoning_content',
  hasFlatErrors: true,
  check(request) {
    const asked = request.returnPromptIds || request.returnMetaInfo || request.returnTokenIds
    if (!request.stream || !asked) return
    throw new EngineError(
      400,
      'return_prompt_token_ids, return_meta_info and return_token_ids are not supported with stream',
    )
  },
  contextLengthError(window, promptTokens, outputTokens) {
    if (promptTokens >= window)
      return new EngineError(
        400,
        `The input (${promptTokens} tokens) is longer than the model's context length (${window} tokens).`,
      )
    return new EngineError(
      400,
      `Requested token count exceeds the model's maximum context length of ${window} tokens. You requested a total of ` +
        `${promptTokens + outputTokens} tokens: ${promptTokens} tokens from the input messages and ${outputTokens} tokens for the ` +
        `completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.`,
    )
  },
  whole({ head, parsed, reasoningKey, report, ending, promptIds, usage, sampled, request, finish }, tokenizer) {
    const meta: JsonObject = {
      id: head.id,
      finish_reason: { type: ending.reason, matched: matchedStop(ending, tokenizer) },
      prompt_tokens: usage.promptTokens,
      completion_tokens: sampled,
      cached_tokens: usage.cachedTokens,
      weight_version: 'default',
      output_token_logprobs: report.tokens.map(({ id, logprob }) => [shortest(logprob), id, null]),
    }
    return {
      id: head.id,
      object: 'chat.completion',
      created: head.created,
      model: head.model,
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: parsed.content,
            [reasoningKey]: request.includeReasoning ? parsed.reasoning : null,
            tool_calls: parsed.calls.length > 0 ? messageCalls(parsed.calls, 'call_') : null,
          },
          logprobs: logprobsBody(report.content, request, tokenizer, false),
          finish_reason: finish,
          matched_stop: matchedStop(ending, tokenizer),
          ...(request.returnPromptIds && { prompt_token_ids: [...promptIds] }),
          ...(request.returnTokenIds && { token_ids: report.tokens.map(draw => draw.id) }),
          ...(request.returnMetaInfo && { meta_info: meta }),
        },
      ],
      usage: { ...usageBody(usage, sampled), reasoning_tokens: usage.reasoningTokens },
      metadata: { weight_version: 'default' },
    }
  },
  promptFields: () => ({}),
  groupFields: (report, request, tokenizer) => ({ logprobs: logprobsBody(report.content, request, tokenizer, false) }),
  lastFields: (ending, finish, tokenizer) => ({
    finish_reason: finish,
    matched_stop: matchedStop(ending, tokenizer),
  }),
  tokenizesChats: false,
  detokenizedKey: 'text',
}

// Is what a server tells of a call whole: ids of prompt and answer, their number, a logprob for each, the stop token among them?

import type { UpstreamAnswer } from '../base.js'
import { drawsOf, idOfToken } from './draws.js'
import { fault, note, ok, type ProbeFinding, warning } from './report.js'

const UNKNOWN = -9999
const IDS_CURE = 'vLLM: a version that knows `return_token_ids`; a router in front must pass ids through'

/** `answers`: whole answers, at least one. First fault only: the others follow from it. */
export function idsFinding(answers: readonly UpstreamAnswer[]): ProbeFinding {
  const without = answers.find(({ promptIds, sampledIds }) => promptIds === null || sampledIds === null)
  if (without !== undefined) {
    const what = without.sampledIds === null ? 'the sampled tokens' : 'the prompt'
    return fault('token_ids', 'no_token_ids', `the answer tells no ids of ${what}`, IDS_CURE)
  }
  for (const { promptIds, sampledIds, usage, engineFinish } of answers) {
    if (usage === null) continue
    const told = sampledIds?.length ?? 0
    if (told === usage.completionTokens - 1 && engineFinish !== 'length') {
      return fault(
        'stop_id',
        'stop_id_missing',
        `${told} sampled ids, but usage counts ${usage.completionTokens}: the token that ended the answer is left out`,
        'SGLang: `no_stop_trim`; vLLM: a version whose `token_ids` hold the stop token',
      )
    }
    if (told !== usage.completionTokens) {
      const seen = `${told} sampled ids, but usage counts ${usage.completionTokens} tokens`
      return fault('token_ids', 'ids_not_usage', seen, IDS_CURE)
    }
    if (promptIds?.length !== usage.promptTokens) {
      const seen = `${promptIds?.length ?? 0} prompt ids, but usage counts ${usage.promptTokens} tokens`
      return fault('token_ids', 'ids_not_usage', seen, 'no `--truncate-prompt-tokens`, no router that changes prompts')
    }
  }
  const torn = answers.some(({ sampledIds, logprobContent }) =>
    (logprobContent ?? []).some((entry, index) => {
      const id = idOfToken(entry)
      return id !== null && id !== sampledIds?.[index]
    }),
  )
  if (torn) {
    return fault('token_ids', 'ids_not_logprobs', 'logprobs name other ids than the list of sampled ids', IDS_CURE)
  }
  if (answers.every(({ usage }) => usage === null)) {
    return warning('token_ids', 'usage_missing', 'ids are told, but no usage to compare them with', null)
  }
  return ok('token_ids', `prompt and sampled ids are told and agree with usage (${answers.length} answers)`)
}

export function logprobsFinding(answers: readonly UpstreamAnswer[]): ProbeFinding {
  for (const { sampledIds, logprobs, logprobContent } of answers) {
    if (logprobs === null) {
      const seen = 'the answer has no logprobs of the sampled tokens'
      return fault('logprobs', 'logprobs_missing', seen, 'vLLM: `--max-logprobs` of at least 1')
    }
    if (sampledIds !== null && logprobs.length !== sampledIds.length) {
      const seen = `${logprobs.length} logprobs for ${sampledIds.length} sampled ids`
      return fault('logprobs', 'logprobs_not_ids', seen, 'an engine or router that keeps the two lists together')
    }
    const unknown = logprobs.filter(logprob => !(logprob > UNKNOWN)).length
    if (unknown > 0) {
      return fault(
        'logprobs',
        'logprobs_unknown',
        `${unknown} of ${logprobs.length} sampled tokens have the logprob -9999, which means: not known`,
        'vLLM: `--logprobs-mode raw_logprobs`',
      )
    }
    if (logprobs.some(logprob => logprob > 1e-3)) {
      return fault('logprobs', 'logprobs_positive', 'some logprobs are above 0', 'vLLM: `--logprobs-mode raw_logprobs`')
    }
    if (drawsOf(logprobContent ?? []).some(({ isTorn }) => isTorn)) {
      const seen = 'the logprob of a sampled token is another one than the list beside it gives'
      return fault('logprobs', 'logprobs_contradict', seen, 'an engine whose logprobs are of what it draws from')
    }
  }
  return ok('logprobs', 'one known logprob for each sampled id')
}

/** `endTokenId`: the template's end of turn; null = not known. */
export function stopIdFinding(answers: readonly UpstreamAnswer[], endTokenId: number | null): ProbeFinding {
  const ended = answers.filter(
    ({ engineFinish, stopSequence, sampledIds }) =>
      (engineFinish === 'stop' || engineFinish === 'tool_calls') && stopSequence === null && sampledIds !== null,
  )
  if (ended.length === 0) return note('stop_id', 'no answer has ended by itself, so no stop token was seen')
  const isLast = ({ sampledIds, logprobContent }: UpstreamAnswer): boolean | null => {
    if (endTokenId !== null && sampledIds?.at(-1) === endTokenId) return true
    const token = logprobContent?.length === sampledIds?.length ? logprobContent?.at(-1)?.['token'] : undefined
    // Some models end a turn with another token than the template's, e.g. <|endoftext|>.
    if (typeof token === 'string' && (token === '' || /^<.*>$/.test(token))) return true
    if (typeof token === 'string' && /^token_id:/.test(token)) return endTokenId === null ? null : false
    return endTokenId !== null || typeof token === 'string' ? false : null
  }
  const verdicts = ended.map(isLast)
  if (verdicts.includes(false)) {
    return fault(
      'stop_id',
      'stop_id_missing',
      'the token that ended the answer is not among the sampled ids: a sampled token is left out',
      'SGLang: `no_stop_trim`; vLLM: a version whose `token_ids` hold the stop token',
    )
  }
  if (!verdicts.includes(true)) return warning('stop_id', 'stop_id_unproven', 'no end token to look for', null)
  return ok('stop_id', 'the stop token is among the sampled ids')
}

export function streamFinding(
  streamed: UpstreamAnswer,
  isStreamed: boolean,
  whole: UpstreamAnswer | null,
): ProbeFinding {
  const { promptIds, sampledIds, usage, logprobs } = streamed
  const cure = 'vLLM: a version whose chunks carry `token_ids`, or profile `sglang`, whose calls are buffered'
  if (!isStreamed) return fault('streaming', 'stream_refused', 'a streamed call was answered whole', cure)
  if (promptIds === null || sampledIds === null) {
    return fault('streaming', 'stream_without_ids', 'a streamed answer tells no ids', cure)
  }
  if (usage !== null && (usage.completionTokens !== sampledIds.length || usage.promptTokens !== promptIds.length)) {
    const seen = `a streamed answer tells ${sampledIds.length} ids, its usage ${usage.completionTokens} tokens`
    return fault('streaming', 'stream_ids_not_usage', seen, cure)
  }
  if (logprobs === null || logprobs.length !== sampledIds.length) {
    return fault('streaming', 'stream_logprobs', 'a streamed answer lacks logprobs of sampled ids', cure)
  }
  if (whole?.promptIds && !sameIds(whole.promptIds, promptIds)) {
    return fault('streaming', 'stream_prompt_ids', 'the same prompt has other ids when it is streamed', cure)
  }
  return ok('streaming', 'ids and logprobs come with the stream')
}

export const sameIds = (one: Int32Array, other: Int32Array): boolean =>
  one.length === other.length && one.every((id, index) => id === other[index])
